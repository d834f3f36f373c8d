"""From the recovery to the policy: who acts, in how large a region, and how widely the policy may explore.

At first the recovery acts alone and is copied (`copying`). The policy then gets the region in which the recovery rests.
From then on the region grows where exits are proven to end well, stands still where too little is known, and shrinks
where they are known to end in falls; where noise is dear, every fall takes the policy's spread back (`spread`). All of
it follows from past rollouts, and M stands still during a rollout and its update, as Theorem 1 asks.
"""

from dataclasses import dataclass

import numpy as np

from safeexplorer.acting.copying import Copying, Rehearsal
from safeexplorer.acting.evidence import Exits, FirstExits, wilson_interval
from safeexplorer.acting.interventions import Intervention, SafeRegion, Situation
from safeexplorer.acting.plan import (
    CALM,
    DECISIONS,
    DOUBLINGS,
    FASTEST,
    NEEDED,
    PERIOD,
    SHRINKING,
    SLOWEST,
    SMALLEST,
    Plan,
)
from safeexplorer.acting.spread import Spread
from safeexplorer.acting.trajectory import Rollout


class Handover:
    """The state of a hand-over, told of every rollout by `observe`."""

    def __init__(self, plan: Plan, num_envs: int, action_scale: np.ndarray):
        """`action_scale`: half the range of each number of an action; wider ones than most are taken as most."""
        self.plan = plan
        self.action_scale = np.minimum(action_scale, np.median(action_scale))
        self.alone = plan.begin_as_recovery or plan.by_evidence  # the recovery acts alone
        self.update = self.begun = 0  # updates so far, and those in which the recovery was alone
        self.steps = 0  # of the present period
        self.copying = Copying(plan)
        self.radius = self.first_radius = 0.0
        self.most_haste = plan.haste
        self.exits, self.first_exits = Exits(num_envs), FirstExits(num_envs)
        self.spread = Spread(plan, self.action_scale)

    # -- told after every rollout --------------------------------------------------------------------------

    def observe(
        self,
        rollout: Rollout,
        squared_errors: np.ndarray | None = None,
        log_std: np.ndarray | None = None,
        noise_cost: float | None = None,
    ) -> bool:
        """Learn from a rollout: with the copy's errors on it, squared, from before it was trained on it, and with the
        spread that it was collected with and what that cost. True if the policy takes over now."""
        self.update += 1
        if self.alone:
            copied = self.copying.observe(rollout, squared_errors, self.update)
            self.radius = self.first_radius = self.copying.radius
            self.alone, self.begun = not copied, self.update if copied else 0
            return copied
        self.steps += rollout.terminated.size
        if noise_cost is not None:
            self.spread.noise.add(noise_cost)
        self.exits.add(rollout, self.radius)
        self.first_exits.add(rollout)
        if self.steps >= PERIOD / self.haste:
            self.steps = 0
            self._adapt(log_std)
            self.exits.next_period()
        return False

    def _adapt(self, log_std: np.ndarray | None) -> None:
        """After a period: what falls take back from the spread, and where the region goes."""
        falls, steps = self.exits.period()
        # As the recovery alone would.
        falls -= int(2.0 * steps * wilson_interval(self.copying.falls, self.copying.alone_steps)[0])
        rate, (lowest, highest) = self.exits.rate(), self.exits.safe_share(self.radius)
        self.spread.adapt(falls, rate, log_std, self.share, self.haste)
        if not self.plan.by_evidence:
            return
        if highest < 1.0 - self._doubt(least_rate=0.0):
            self.radius = self._smaller(self.radius / (1.0 + np.clip(1.0 - highest, *SHRINKING)))
        elif lowest >= self.asked and rate >= NEEDED:
            growth = min(max(rate, SLOWEST) * self.haste, FASTEST)
            self.radius = min(self.radius * (1.0 + growth), self.plan.largest_radius)

    def _smaller(self, radius: float) -> float:
        """At most this radius: the largest of the past that is proven, if there is one."""
        past = self.exits.radii()
        proven = [r for r in past[past <= radius] if self.exits.safe_share(r)[0] >= 1.0 - self._doubt()]
        return max(*(proven or [radius]), SMALLEST * self.first_radius)

    def spare_the_robot(self) -> None:
        """A physical one: it is not shaken, no training is short enough for less evidence, and every fall narrows the
        policy, whatever its noise costs."""
        self.copying.shakes, self.most_haste, self.spread.excuses = False, 1.0, False

    def cut(self) -> None:
        """New episodes begin everywhere."""
        self.exits.cut()
        self.first_exits.cut()

    # -- asked ---------------------------------------------------------------------------------------------

    @property
    def imitating(self) -> bool:
        """Is the recovery to be copied now?"""
        return self.alone and self.plan.begin_as_recovery

    def rehearsal(self, gaussian: bool) -> Rehearsal:
        """What is sent to the robots in the next rollout instead of the recovery's actions."""
        return self.copying.rehearsal(gaussian) if self.imitating else Rehearsal()

    @property
    def haste(self) -> float:
        """By how much decisions come sooner than after PERIOD steps: as many times as DECISIONS periods are more than
        there are from the hand-over to the end."""
        periods = max(self.plan.updates - self.begun, 1) * min(self.plan.batch / PERIOD, 1.0)
        return max(min(DECISIONS / periods, self.most_haste), 1.0)

    @property
    def asked(self) -> float:
        """The share of exits that must be proven to end well; each of the first two falls halves the doubt."""
        _, falls = self.exits.near(self.radius)
        return 1.0 - self._doubt() * 0.5 ** min(falls, DOUBLINGS)

    def _doubt(self, least_rate: float = CALM) -> float:
        """The share of exits that may fall. Where more than one step in a hundred exits it is less, down to a tenth:
        falls per step are as many as there. Where fewer exit it is more, down to a rate of `least_rate`. In haste it is
        more: as many falls of fewer steps."""
        rate = min(max(self.exits.rate(), least_rate), 10.0 * CALM)
        most = (1.0 - self.plan.safe_share) * CALM * self.haste  # falls per step
        return min(most / rate, 1.0) if rate > 0.0 else 1.0

    @property
    def share(self) -> float:
        """Of training, that is over."""
        return self.update / self.plan.updates

    def limits(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The lowest and the highest log sigma, [m] each; None: not held."""
        if self.imitating:
            return self.spread.initial_log_std, self.spread.initial_log_std
        if self.alone or not self.plan.hold_spread:
            return None
        return self.spread.limits(self.share, self.haste)

    # -- records and resuming ------------------------------------------------------------------------------

    columns = (
        "imitation_error",
        "safe_exits_low",
        "safe_exits_high",
        "exit_rate",
        "noise_cost_low",
        "noise_cost_high",
        "beta_bound",
        "gap_bound",
    )

    def report(self, gamma: float) -> dict[str, float | None]:
        """How it stands, in numbers."""
        nothing = dict.fromkeys(self.columns)
        if self.alone or self.begun == self.update:
            return nothing | self.copying.report()
        lowest, highest = self.exits.safe_share(self.radius)
        beta, gap = self.first_exits.bounds(gamma)
        cost = self.spread.noise.interval() if self.spread.noise.known else (None, None)
        known = (None, lowest, highest, self.exits.rate(), *cost, beta, gap)
        return dict(zip(self.columns, known, strict=True))

    WHOLE = ("alone", "update", "begun", "steps")
    NUMBERS = ("radius", "first_radius")

    @property
    def _parts(self) -> dict[str, Copying | Exits | FirstExits | Spread]:
        names = "copying", "exits", "first_exits", "spread"
        return {name: getattr(self, name) for name in names}

    def get_state(self) -> dict[str, dict[str, np.ndarray]]:
        """Everything, as arrays of finite numbers."""
        own = {
            "whole": np.array([getattr(self, name) for name in self.WHOLE], np.int64),
            "numbers": np.array([getattr(self, name) for name in self.NUMBERS]),
        }
        return {"own": own} | {name: part.get_state() for name, part in self._parts.items()}

    def set_state(self, state: dict[str, dict[str, np.ndarray]]) -> None:
        """Go on from `get_state`."""
        for name, number in zip(self.WHOLE, state["own"]["whole"], strict=True):
            setattr(self, name, int(number))
        for name, number in zip(self.NUMBERS, state["own"]["numbers"], strict=True):
            setattr(self, name, float(number))
        self.alone = bool(self.alone)
        for name, part in self._parts.items():
            part.set_state(state[name])


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
