"""From the recovery to the policy: who acts, in how large a region, and how widely the policy may explore.

At first the recovery acts alone and is imitated, with more and more of the policy's noise on its actions. When the
policy is its copy, measured on steps that it was not trained on, it gets the region in which the recovery rests. From
then on the region grows where exits are proven to end well, stands still where too little is known, and shrinks where
they are known to end in falls; every fall takes the policy's spread back. All of it follows from past rollouts, and M
stands still during a rollout and its update, as Theorem 1 asks.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from safeexplorer.acting.evidence import Exits, FirstExits, wilson_interval
from safeexplorer.acting.interventions import Intervention, SafeRegion, Situation
from safeexplorer.acting.trajectory import Rollout

PERIOD = 8192  # steps of all robots, at least, between two decisions
# The copy:
COPY = 0.1  # held-out actions within this share of the spread it starts with, root mean square
PATIENCE = 8  # periods in which it must improve ...
IMPROVEMENT = 0.05  # ... by this share, else it is as good as it gets
# By how much the noise on the recovery grows in a period, up to the spread that the copy starts with.
SHAKING = 0.5
BROKEN = 0.5  # share of episodes; a recovery that alone falls in more is none
# The region:
REST = 0.95  # quantile of the recovery's own distances that the first one holds ...
MARGIN = 1.1  # ... with this factor to spare
NEEDED = 2e-3  # exits per step of the policy; with fewer a larger one is of no use
SLOWEST, FASTEST = 0.02, 0.1  # growth per period; between them as the share of the policy's steps that exit
SHRINKING = 0.05, 0.5  # per period, least and most; between them as the share of the exits that fell
DOUBLINGS = 2  # of what must be proven, at most
SMALLEST = 0.5  # of the first one
# The spread, in log sigma:
CALM = 1e-2  # exits per step of the policy; with more it does not open, and more of them must end well
FIRST = -1.0  # at the hand-over, below the start
OPENING = 0.2  # per calm period without a fall, and an eleventh of it after one, up to the start
CLOSING, MOST, LOWEST = 0.2, 3, -2.0  # by a fall, by how many of a period at most, and how far in all
FADING = 0.5  # of training: until then the floor fades, after it the ceiling


@dataclass(frozen=True)
class Plan:
    """The numbers of a hand-over; one set for all robots."""

    updates: int  # N
    begin_as_recovery: bool = True
    by_evidence: bool = True  # the radius follows the exits; else the intervention's own clock
    hold_spread: bool = True
    largest_radius: float = math.inf
    imitation_share: float = 0.2  # of all updates, at most
    safe_share: float = 0.99  # of the exits must be proven to end without a fall
    initial_spread: float = 0.1  # standard deviation at the hand-over, as a share of half the action range
    spread_fade: float = 2.0  # by how much the floor under log sigma falls, and the ceiling by half of it


class Handover:
    """The state of a hand-over, told of every rollout by `observe`."""

    def __init__(self, plan: Plan, num_envs: int, action_scale: np.ndarray):
        """`action_scale`: half the range of each number of an action; wider ones than most are taken as most."""
        self.plan = plan
        self.action_scale = np.minimum(action_scale, np.median(action_scale))
        self.alone = plan.begin_as_recovery or plan.by_evidence  # the recovery acts alone
        self.update = self.begun = 0  # updates so far, and those in which the recovery was alone
        self.steps = 0  # of the present period
        # The recovery alone. Of its copy: squared errors in this period, and over how many steps; the best error of all
        # periods before, then those of the last ones. The last distances, the newest last.
        self.squares, self.measured = 0.0, 0
        self.errors = np.full(PATIENCE + 1, np.inf)
        self.distances, self.known = np.zeros(PERIOD), 0
        self.own_falls = self.own_steps = self.own_episodes = 0
        # Share of the policy's noise on its actions; how often that was too much; falls of this period, and of one
        # without noise.
        self.shake, self.setbacks, self.period_falls, self.usual_falls = 0.0, 0, 0, 0
        self.radius = self.first_radius = 0.0
        self.falls = 0  # in all since the hand-over, but for those that the recovery alone would have had
        # Log sigma below its start, but for the fading.
        self.opened = FIRST if plan.begin_as_recovery else 0.0
        self.exits, self.first_exits = Exits(num_envs), FirstExits(num_envs)

    # -- told after every rollout --------------------------------------------------------------------------

    def observe(
        self, rollout: Rollout, squared_errors: np.ndarray | None = None, log_std: np.ndarray | None = None
    ) -> bool:
        """Learn from a rollout: with the copy's errors on it, squared, from before it was trained on it, and with the
        spread that it was collected with. True if the policy takes over now."""
        self.update += 1
        self.steps += rollout.terminated.size
        if self.alone:
            return self._watch_recovery(rollout, squared_errors)
        self.exits.add(rollout, self.radius)
        self.first_exits.add(rollout)
        if self.steps >= PERIOD:
            self.steps = 0
            self._adapt(log_std)
            self.exits.next_period()
        return False

    def _watch_recovery(self, rollout: Rollout, squared_errors: np.ndarray | None) -> bool:
        seen = rollout.distance[np.isfinite(rollout.distance)]
        self.distances, self.known = np.append(self.distances, seen)[-PERIOD:], self.known + len(seen)
        falls = int(rollout.fell.sum())
        self.own_falls, self.period_falls = self.own_falls + falls, self.period_falls + falls
        self.own_steps += rollout.terminated.size
        self.own_episodes += int((rollout.terminated | rollout.truncated).sum())
        if squared_errors is not None:
            self.squares += float(squared_errors.sum())
            self.measured += squared_errors.size
        over = self.update >= self.plan.imitation_share * self.plan.updates or self._is_broken()
        if self.steps < PERIOD and not over:
            return False
        self.steps = 0
        over = self._is_copy() or over
        self._shake()
        if not over:
            return False
        rest = np.quantile(self.distances[-self.known :], REST) if self.known else 0.0
        self.first_radius = self.radius = min(MARGIN * float(rest), self.plan.largest_radius)
        self.alone, self.begun = False, self.update
        return True

    def _is_broken(self) -> bool:
        """Does the recovery itself fall more often than not? Then nothing is won by waiting."""
        broken = wilson_interval(self.own_falls, self.own_episodes)[0] > BROKEN
        if broken:
            fell = f"{self.own_falls:,} of {self.own_episodes:,}"
            told = "is it the right controller, and is every termination a fall (fell=)? The policy takes over now"
            warnings.warn(f"the recovery alone fell in {fell} episodes: {told}", stacklevel=2)
        return broken

    @property
    def steady(self) -> bool:
        """Is the recovery shaken as much as it will be? One fall may be chance, two are not."""
        return self.shake == 1.0 or self.setbacks > 1

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
        if self.measured:
            error = math.sqrt(self.squares / self.measured)
            self.errors = np.concatenate([[self.errors[:2].min()], self.errors[2:], [error]])
            self.squares, self.measured = 0.0, 0
        stalled = self.errors[1:].min() > (1.0 - IMPROVEMENT) * self.errors[0]
        close = self.errors[-1] < COPY * self.plan.initial_spread
        return not self.plan.begin_as_recovery or (self.steady and close) or stalled

    def _adapt(self, log_std: np.ndarray | None) -> None:
        """After a period: what falls take back from the spread, and where the region goes."""
        falls, steps = self.exits.period()
        # As the recovery alone would.
        falls -= int(2.0 * steps * wilson_interval(self.own_falls, self.own_steps)[0])
        rate, (lowest, highest) = self.exits.rate(), self.exits.safe_share(self.radius)
        if falls > 0:
            self._take_back(falls, log_std)
        elif rate < CALM and self.opened < 0.0:
            self.opened = min(self.opened + OPENING / (1.0 + 10.0 * self.falls), 0.0)
        if not self.plan.by_evidence:
            return
        if highest < 1.0 - self._doubt():
            self.radius = self._smaller(self.radius / (1.0 + np.clip(1.0 - highest, *SHRINKING)))
        elif lowest >= self.asked and rate >= NEEDED:
            growth = 1.0 + min(max(rate, SLOWEST), FASTEST)
            self.radius = min(self.radius * growth, self.plan.largest_radius)

    def _smaller(self, radius: float) -> float:
        """At most this radius: the largest of the past that is proven, if there is one."""
        past = self.exits.radii()
        proven = [r for r in past[past <= radius] if self.exits.safe_share(r)[0] >= 1.0 - self._doubt()]
        return max(*(proven or [radius]), SMALLEST * self.first_radius)

    def _take_back(self, falls: int, log_std: np.ndarray | None) -> None:
        """The ceiling below the spread with which the policy fell."""
        self.falls += falls
        if log_std is not None:
            fell_with = float((log_std - self.initial_log_std).mean()) + self._faded()[1]
            self.opened = min(self.opened, fell_with)
        self.opened = max(self.opened - CLOSING * min(falls, MOST), LOWEST)

    def cut(self) -> None:
        """New episodes begin everywhere."""
        self.exits.cut()
        self.first_exits.cut()

    # -- asked ---------------------------------------------------------------------------------------------

    @property
    def imitating(self) -> bool:
        """Is the recovery to be copied now?"""
        return self.alone and self.plan.begin_as_recovery

    def shaking(self, gaussian: bool) -> float:
        """Share of the policy's noise that is put on the recovery's actions; of choices, how many are drawn anew."""
        share = self.shake if self.imitating else 0.0
        return share if gaussian else share * self.plan.initial_spread

    @property
    def asked(self) -> float:
        """The share of exits that must be proven to end well; each of the first two falls halves the doubt."""
        _, falls = self.exits.near(self.radius)
        return 1.0 - self._doubt() * 0.5 ** min(falls, DOUBLINGS)

    def _doubt(self) -> float:
        """The share of exits that may fall. Where more than one step in a hundred exits it is less, down to a tenth:
        falls per step are as many as there."""
        return (1.0 - self.plan.safe_share) * CALM / min(max(self.exits.rate(), CALM), 10.0 * CALM)

    @property
    def initial_log_std(self) -> np.ndarray:
        """Of the copy, [m]."""
        return np.log(self.plan.initial_spread * self.action_scale)

    def _faded(self) -> tuple[float, float]:
        """How far the floor and the ceiling have come down by themselves."""
        share, fade = self.update / self.plan.updates, self.plan.spread_fade
        late = max(share - FADING, 0.0) / (1.0 - FADING)
        return fade * min(share / FADING, 1.0), fade / 2.0 * min(late, 1.0)

    def spread(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The lowest and the highest log sigma, [m] each; None: not held.

        Both begin at the copy's. The floor, under which nothing is explored, fades first: the policy may be as sure as
        it likes by then. The ceiling fades when there is most to lose.
        """
        start = self.initial_log_std
        if self.imitating:
            return start, start
        if self.alone or not self.plan.hold_spread:
            return None
        floor, ceiling = self._faded()
        return start + self.opened - floor, start + self.opened - ceiling

    # -- records and resuming ------------------------------------------------------------------------------

    columns = ("imitation_error", "safe_exits_low", "safe_exits_high", "exit_rate", "beta_bound", "gap_bound")

    def report(self, gamma: float) -> dict[str, float | None]:
        """How it stands, in numbers."""
        nothing = dict.fromkeys(self.columns)
        if self.alone or self.begun == self.update:
            error = float(self.errors[-1])
            return nothing | {"imitation_error": error if math.isfinite(error) else None}
        lowest, highest = self.exits.safe_share(self.radius)
        beta, gap = self.first_exits.bounds(gamma)
        known = (None, lowest, highest, self.exits.rate(), beta, gap)
        return dict(zip(self.columns, known, strict=True))

    WHOLE = ("alone", "update", "begun", "steps", "measured", "known")
    WHOLE += ("own_falls", "own_steps", "own_episodes", "setbacks", "period_falls", "usual_falls", "falls")
    NUMBERS = ("radius", "first_radius", "opened", "squares", "shake")

    def get_state(self) -> dict[str, dict[str, np.ndarray]]:
        """Everything, as arrays of finite numbers."""
        own = {
            "whole": np.array([getattr(self, name) for name in self.WHOLE], np.int64),
            "numbers": np.array([getattr(self, name) for name in self.NUMBERS]),
            "errors": np.where(np.isfinite(self.errors), self.errors, -1.0),
            "distances": self.distances,
        }
        return {"own": own, "exits": self.exits.get_state(), "first_exits": self.first_exits.get_state()}

    def set_state(self, state: dict[str, dict[str, np.ndarray]]) -> None:
        """Go on from `get_state`."""
        own = state["own"]
        for name, number in zip(self.WHOLE, own["whole"], strict=True):
            setattr(self, name, int(number))
        for name, number in zip(self.NUMBERS, own["numbers"], strict=True):
            setattr(self, name, float(number))
        self.alone = bool(self.alone)
        self.errors = np.where(own["errors"] < 0, np.inf, own["errors"])
        self.distances = own["distances"]
        self.exits.set_state(state["exits"])
        self.first_exits.set_state(state["first_exits"])


@dataclass(frozen=True)
class HandedOver:
    """M is empty while the recovery acts alone; afterwards the region by evidence, or what `after` says."""

    after: Intervention
    handover: Handover

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        if self.handover.alone:
            return np.ones(len(situation.step), bool)
        if self.handover.plan.by_evidence:
            return ~(situation.distance <= self.handover.radius)
        return self.after.takes_over(situation, progress)


def handed_over(intervention: Intervention, handover: Handover | None) -> Intervention:
    """The intervention as the hand-over lets it act."""
    after = intervention.after if isinstance(intervention, HandedOver) else intervention
    return after if handover is None else HandedOver(after, handover)


def radius_of(intervention: Intervention, progress: float) -> float | None:
    """d of the safe region now; None for other interventions."""
    if isinstance(intervention, HandedOver):
        handover = intervention.handover
        own = handover.alone or handover.plan.by_evidence
        return handover.radius if own else radius_of(intervention.after, progress)
    return float(intervention.radius(progress)) if isinstance(intervention, SafeRegion) else None
