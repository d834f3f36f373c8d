"""Who acts: the main-policy set M of the partition policy (Theorem 1).

An intervention sees the state and the time of each robot, never the proposed action and never the
parameters. That is the hypothesis of the unbiasedness theorem (mu and M independent of theta), so no
intervention written against this protocol can break it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from safeexplorer.acting.schedules import Schedule, auto, constant

LAST = float(np.nextafter(1.0, 0.0))  # progress at the end of training


class Situation(NamedTuple):
    """What an intervention may look at, for E robots."""

    observation: np.ndarray  # [E, n]
    distance: np.ndarray  # [E] D(s), NaN where the environment has none
    step: np.ndarray  # [E] steps since the episode began


class Intervention(Protocol):
    """The complement of M, as a function of the situation and the training progress in [0, 1)."""

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        """[E] bool: True where the recovery acts."""
        ...


@dataclass(frozen=True)
class NoIntervention:
    """M is everything: plain PPO."""

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        return np.zeros(len(situation.step), bool)


@dataclass(frozen=True)
class SafeRegion:
    """M = R(d) = {s : D(s) <= d}, d following the curriculum (Corollary 2). A NaN distance is outside.

    `radius` is a schedule, one number for all of training, or, if nothing is said, "auto": as the evidence allows
    (`schedules.auto` takes the largest sensible one). `distance` says where D comes from, in an environment of your
    own: a function of observations [E, n] -> [E], a key of `info`, or the name of a method.
    """

    radius: Schedule | float | str = "auto"
    distance: Callable[[np.ndarray], np.ndarray] | str = "distance"

    def __post_init__(self) -> None:
        if self.radius == "auto":
            object.__setattr__(self, "radius", auto())
        if not callable(self.radius):
            if not isinstance(self.radius, int | float) or not 0 <= self.radius < float("inf"):
                raise ValueError(
                    f"radius is {self.radius!r}; allowed: a schedule, a number of at least 0, or auto"
                )
            object.__setattr__(self, "radius", constant(float(self.radius)))
        for progress in (0.0, 0.5, LAST):
            known("radius", self.radius(progress), progress, 0.0)

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        return outside(situation.distance, known("radius", self.radius(progress), progress, 0.0))


def known(name: str, value: float, progress: float, low: float = -math.inf) -> float:
    """What a schedule gives now, refused where it is no number: with a NaN one side would act for ever, unnoticed."""
    if not value >= low:
        raise ValueError(
            f"{name} is {value} at progress {progress:.3g}; allowed: a number"
            + f" of at least {low:g}" * (low > -math.inf)
        )
    return value


def outside(distance: Any, radius: Any) -> Any:
    """Not D <= d: a NaN is outside."""
    return ~(distance <= radius)


@dataclass(frozen=True)
class JumpStart:
    """M = {(s, t) : t >= h}: a teacher leads each episode up to the hand-off step (Corollary, JSRL)."""

    handoff: Schedule  # progress -> h, e.g. shrinking to 0

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        return situation.step < known("handoff", self.handoff(progress), progress)


@dataclass(frozen=True)
class StateShield:
    """M = where the shield does not engage, decided by the observation alone (Corollary, shielded RL)."""

    engages: Callable[[np.ndarray], np.ndarray]  # [E, n] -> [E] bool

    def takes_over(self, situation: Situation, progress: float) -> np.ndarray:
        return np.asarray(self.engages(situation.observation), bool)


@dataclass(frozen=True)
class ReportedTakeovers(NoIntervention):
    """Nobody here takes over: the environment reports in `info` when someone else acted (see `takeovers`)."""
