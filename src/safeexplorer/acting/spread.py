"""How widely a policy may explore after the hand-over: log sigma between a floor and a ceiling.

Both begin at the copy's. Falls take the ceiling back where noise is dear: on some robots a narrow policy falls less and
earns more, on others it falls as often and earns less.
"""

import math

import numpy as np

from safeexplorer.acting.evidence import QUANTILE
from safeexplorer.acting.plan import (
    CALM,
    CHEAP,
    CLOSING,
    FADING,
    FIRST,
    LOWEST,
    MOST,
    NEAR_CEILING,
    OPENING,
    RESTLESS,
    Plan,
)

UPDATES, FEWEST = 200, 40  # whose costs of noise are remembered, and without which nothing is known of them


class NoiseCosts:
    """What the policy's noise cost in the last updates: -d ln J / d ln sigma of each."""

    def __init__(self) -> None:
        self.costs = np.zeros(UPDATES)  # the newest last
        self.filled = 0

    def add(self, cost: float) -> None:
        """Of one update."""
        self.costs = np.append(self.costs[1:], cost)
        self.filled = min(self.filled + 1, UPDATES)

    @property
    def known(self) -> bool:
        """Are they enough to say something?"""
        return self.filled >= FEWEST

    def interval(self) -> tuple[float, float]:
        """Around their mean, each end with 95% confidence; unbounded where too little is known."""
        if not self.known:
            return -math.inf, math.inf
        known = self.costs[UPDATES - self.filled :]
        half = QUANTILE * float(known.std(ddof=1)) / math.sqrt(self.filled)
        return float(known.mean()) - half, float(known.mean()) + half

    def get_state(self) -> dict[str, np.ndarray]:
        return {"costs": self.costs.copy(), "filled": np.array(self.filled)}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self.costs, self.filled = state["costs"].copy(), int(state["filled"])


class Spread:
    """The limits of log sigma; told of every period by `adapt`."""

    def __init__(self, plan: Plan, action_scale: np.ndarray):
        self.plan = plan
        self.initial_log_std = np.log(plan.initial_spread * action_scale)  # [m], the copy's
        # The ceiling beside its start, but for the fading; above it in haste alone.
        self.opened = FIRST if plan.begin_as_recovery else 0.0
        self.falls = 0  # in all since the hand-over, but for those that the recovery alone would have had
        self.noise, self.cheap = NoiseCosts(), False  # what it costs, and whether falls count for nothing
        self.excuses = True  # may they?

    def adapt(
        self, falls: int, exit_rate: float, log_std: np.ndarray | None, share: float, haste: float
    ) -> None:
        """After a period with so many falls and exits per step of a policy with `log_std`; `share` of training is
        over."""
        self._price(share)
        if falls > 0:
            self._take_back(falls, log_std, share)
        elif exit_rate < CALM:
            widest = max(math.log(haste) * 0.5**self.falls, self.opened)
            slower = 1.0 if self.cheap else 1.0 + 10.0 * self.falls
            self.opened = min(self.opened + OPENING / slower, widest)
        elif exit_rate > RESTLESS and self.opened > 0.0:
            self.opened = max(self.opened - OPENING, 0.0)

    def _price(self, share: float) -> None:
        """Is noise cheap? From when it is known to be until it is known not to be; late in training, when the ceiling
        comes down by itself, it becomes so no more."""
        lowest, highest = self.noise.interval()
        if lowest > CHEAP or not self.excuses:
            self.cheap = False
        elif highest < CHEAP and share < FADING:
            self.cheap = True

    def _take_back(self, falls: int, log_std: np.ndarray | None, share: float) -> None:
        """The ceiling below the spread with which the policy fell; where noise is cheap, what haste opened alone."""
        self.falls += falls
        if self.cheap:
            self.opened = min(self.opened, self.opened * 0.5**falls)
            return
        if log_std is not None:
            fell_with = float((log_std - self.initial_log_std).mean()) + self._faded(share)[1]
            self.opened = min(self.opened, fell_with)
        if self.opened > 0.0:
            self.opened *= 0.5**falls
        self.opened = max(self.opened - CLOSING * min(falls, MOST), min(LOWEST, self.opened))

    def _faded(self, share: float) -> tuple[float, float]:
        """How far the floor and the ceiling have come down by themselves."""
        fade, late = self.plan.spread_fade, max(share - FADING, 0.0) / (1.0 - FADING)
        return fade * min(share / FADING, 1.0), fade / 2.0 * min(late, 1.0)

    def limits(self, share: float, haste: float) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest log sigma, [m] each, when `share` of training is over.

        The floor, under which nothing is explored, fades first: the policy may be as sure as it likes by then. The
        ceiling fades when there is most to lose. PPO has no reason of its own to explore widely: in haste the floor
        stays with the ceiling in the first half of training, and where noise is cheap it brings back what falls took.
        """
        floor, ceiling = self._faded(share)
        if haste > 1.0 and share < FADING:
            floor = ceiling
        elif self.cheap and self.falls > 0:
            floor = min(floor, ceiling + NEAR_CEILING)
        return self.initial_log_std + self.opened - floor, self.initial_log_std + self.opened - ceiling

    def get_state(self) -> dict[str, np.ndarray]:
        """As arrays."""
        own = {"whole": np.array([self.falls, self.cheap], np.int64), "opened": np.array(self.opened)}
        return own | self.noise.get_state()

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from `get_state`."""
        self.falls, self.cheap = int(state["whole"][0]), bool(state["whole"][1])
        self.opened = float(state["opened"])
        self.noise.set_state(state)
