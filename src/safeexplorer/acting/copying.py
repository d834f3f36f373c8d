"""Before the hand-over: the recovery acts alone and is copied, then its copy is tried where it rests.

A copy of what a recovery does at rest knows nothing of the states that noise leads to, so the recovery is shaken; and
nothing of those that its own errors lead to, so it is tried: inside the first region the copy acts, outside the
recovery, and at every step what the recovery would do is imitated.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from safeexplorer.acting.evidence import wilson_interval
from safeexplorer.acting.plan import (
    BROKEN,
    CALM,
    COPY,
    FIRST,
    IMPROVEMENT,
    MARGIN,
    PATIENCE,
    PERIOD,
    REST,
    SHAKING,
    TRIAL,
    Plan,
)
from safeexplorer.acting.trajectory import Rollout


class Rehearsal(NamedTuple):
    """What is sent to the robots instead of the recovery's actions, which are stored."""

    shaking: float = 0.0  # share of the policy's noise on the recovery's actions
    radius: float = 0.0  # within which the policy's own are sent ...
    noise: float = 0.0  # ... with this share of its noise


class Copying:
    """How the recovery fares alone, and how well it is copied; told of every rollout by `observe`."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.shakes = plan.begin_as_recovery  # may noise be put on the recovery's actions?
        self.steps = 0  # of the present period
        # Of the recovery alone, in all; the last distances, the newest last.
        self.falls = self.alone_steps = self.episodes = 0
        self.distances, self.known = np.zeros(PERIOD), 0
        # Share of the policy's noise on its actions; how often that was too much; falls of this period, and of one
        # without noise.
        self.shake, self.setbacks, self.period_falls, self.usual_falls = 0.0, 0, 0, 0
        # Of the copy: squared errors in this period, or exits once it is tried, and over how many steps; the best share
        # of all periods before, then those of the last ones.
        self.wrong, self.judged = 0.0, 0
        self.errors = np.full(PATIENCE + 1, np.inf)
        self.trying = False
        self.radius = 0.0  # within which the recovery rests; 0 before that is known

    def observe(self, rollout: Rollout, squared_errors: np.ndarray | None, update: int) -> bool:
        """Learn from a rollout, the copy's errors on it being from before it was trained on it. True: the policy is as
        much of a copy as it will be."""
        self.steps += rollout.terminated.size
        if self.trying:
            self._try(rollout)
        else:
            self._watch(rollout, squared_errors)
        copies = self.plan.begin_as_recovery
        most = self.plan.imitation_share * (1.0 - TRIAL if copies and not self.trying else 1.0)
        broken = not self.trying and self._is_broken()
        late = broken or update >= most * self.plan.updates
        if self.steps < PERIOD and not late:
            return False
        self.steps = 0
        done = self._is_copy() or late
        if self.trying:
            return done
        self._shake()
        if done:
            rest = np.quantile(self.distances[-self.known :], REST) if self.known else 0.0
            self.radius = min(MARGIN * float(rest), self.plan.largest_radius)
            self.trying, self.errors[:] = copies and self.radius > 0.0 and not broken, np.inf
        return done and not self.trying

    def _watch(self, rollout: Rollout, squared_errors: np.ndarray | None) -> None:
        """The recovery alone."""
        seen = rollout.distance[np.isfinite(rollout.distance)]
        self.distances, self.known = np.append(self.distances, seen)[-PERIOD:], self.known + len(seen)
        falls = int(rollout.fell.sum())
        self.alone_steps += rollout.terminated.size
        self.falls, self.period_falls = self.falls + falls, self.period_falls + falls
        self.episodes += int((rollout.terminated | rollout.truncated).sum())
        if squared_errors is not None:
            self.wrong += float(squared_errors.sum())
            self.judged += squared_errors.size

    def _try(self, rollout: Rollout) -> None:
        """The copy inside, the recovery outside: how many of the copy's steps leave the region."""
        inside, ended = rollout.distance <= self.radius, rollout.terminated | rollout.truncated
        self.wrong += float((inside[:-1] & ~inside[1:] & ~ended[:-1]).sum())
        self.judged += int(inside[:-1].sum())

    def _is_broken(self) -> bool:
        """Does the recovery itself fall more often than not? Then nothing is won by waiting."""
        broken = wilson_interval(self.falls, self.episodes)[0] > BROKEN
        if broken:
            fell = f"{self.falls:,} of {self.episodes:,}"
            told = "is it the right controller, and is every termination a fall (fell=)? The policy takes over now"
            warnings.warn(f"the recovery alone fell in {fell} episodes: {told}", stacklevel=2)
        return broken

    @property
    def steady(self) -> bool:
        """Is the recovery shaken as much as it will be? One fall may be chance, two are not."""
        return not self.shakes or self.shake == 1.0 or self.setbacks > 1

    def _shake(self) -> None:
        """The recovery is shaken as far as it stays up, at most as much as the policy that will take over."""
        before, falls = self.shake, self.period_falls
        if before == 0.0 and not self.setbacks:
            self.usual_falls = falls
        if falls > 2 * self.usual_falls:
            self.shake, self.setbacks = max(before - SHAKING, 0.0), self.setbacks + 1
        elif not self.steady:
            self.shake = min(before + SHAKING, 1.0)
        self.period_falls = 0
        if self.shake != before:  # other states: their errors do not compare
            self.errors[:] = np.inf

    def _is_copy(self) -> bool:
        """Is the policy as close to the recovery as it will get?"""
        if self.trying and not self.judged:  # nobody is inside: nothing can be tried
            return True
        if self.judged:
            share = self.wrong / self.judged
            error = share if self.trying else math.sqrt(share)
            self.errors = np.concatenate([[self.errors[:2].min()], self.errors[2:], [error]])
            self.wrong, self.judged = 0.0, 0
        stalled = self.errors[1:].min() > (1.0 - IMPROVEMENT) * self.errors[0]
        if self.trying:
            return self.errors[-1] < CALM or stalled
        close = self.errors[-1] < COPY * self.plan.initial_spread
        return not self.plan.begin_as_recovery or (self.steady and close) or stalled

    def rehearsal(self, gaussian: bool) -> Rehearsal:
        """What is sent in the next rollout. Of choices, a share is drawn anew."""
        if self.trying:
            return Rehearsal(0.0, self.radius, math.exp(FIRST) if gaussian else self.plan.initial_spread)
        return Rehearsal(self.shake if gaussian else self.shake * self.plan.initial_spread)

    def report(self) -> dict[str, float | None]:
        """The error of the copy, or how often it leaves the region."""
        error = float(self.errors[-1])
        return {"exit_rate" if self.trying else "imitation_error": error if math.isfinite(error) else None}

    WHOLE = ("steps", "falls", "alone_steps", "episodes", "known", "setbacks", "period_falls", "usual_falls")
    WHOLE += ("judged", "trying")
    NUMBERS = ("shake", "wrong", "radius")

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays of finite numbers."""
        return {
            "whole": np.array([getattr(self, name) for name in self.WHOLE], np.int64),
            "numbers": np.array([getattr(self, name) for name in self.NUMBERS]),
            "errors": np.where(np.isfinite(self.errors), self.errors, -1.0),
            "distances": self.distances,
        }

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from `get_state`."""
        for name, number in zip(self.WHOLE, state["whole"], strict=True):
            setattr(self, name, int(number))
        for name, number in zip(self.NUMBERS, state["numbers"], strict=True):
            setattr(self, name, float(number))
        self.trying = bool(self.trying)
        self.errors = np.where(state["errors"] < 0, np.inf, state["errors"])
        self.distances = state["distances"]
