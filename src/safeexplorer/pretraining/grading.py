"""How good a recovery is, from randomised resets. Shares come with Wilson's 95% interval."""

import math
from typing import Any, NamedTuple

import numpy as np

from safeexplorer.acting.evidence import wilson_interval
from safeexplorer.recovery import CheckedRecovery
from safeexplorer.robots.robot import Robot
from safeexplorer.robots.simulation import Simulation

HORIZON = 250  # steps, the length of a recovery-training episode
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of d_max
NEVER = -1
Z = 1.959964  # of the normal distribution: 95% lie within


class Share(NamedTuple):
    """k of n, with Wilson's interval."""

    count: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.count / self.total if self.total else math.nan

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.total else "-"


def share(happened: np.ndarray) -> Share:
    """How often, of a bool array. Of nothing, nothing is known: [0, 1]."""
    count, total = int(happened.sum()), len(happened)
    return Share(count, total, *wilson_interval(count, total, Z))


class Outcomes(NamedTuple):
    """What became of R starts, for K radii."""

    start: np.ndarray  # [R] D at the start
    fell_at: np.ndarray  # [R] the step that fell, or NEVER
    entered_at: np.ndarray  # [R, K] the first step after which D <= d, before any fall, or NEVER


def follow(env: Simulation, recovery: CheckedRecovery, radii: np.ndarray, horizon: int) -> Outcomes:
    """Let the recovery act from the present states, `horizon` steps or until each robot fell.

    `radii` is [E, K]. The environment must not truncate within the horizon.
    """
    observation, start = env.observe(), env.distance()
    fell_at = np.full(env.num_envs, NEVER)
    entered_at = np.full(radii.shape, NEVER)
    for step in range(1, horizon + 1):
        observation, _, terminated, _, info = env.step(recovery.act(observation))
        up = fell_at == NEVER
        fell_at[up & terminated] = step
        up &= ~terminated
        new = up[:, None] & (entered_at == NEVER) & (info["distance"][:, None] <= radii)
        entered_at[new] = step
        if not up.any():
            break
    return Outcomes(start, fell_at, entered_at)


def grade(
    robot: Robot,
    recovery: CheckedRecovery,
    resets: int = 2000,
    seed: int = 0,
    threads: int = 1,
    batch: int = 250,
) -> dict[str, Any]:
    """Survival and re-entry from `resets` randomised resets: the numbers of one recovery, ready for JSON.

    The starts depend on the seed and on `batch` alone: all recoveries are graded from the same ones.
    """
    radii = np.array([robot.initial_radius, *(fraction * robot.max_radius for fraction in FRACTIONS)])
    parts = []
    for first in range(0, resets, batch):
        count = min(batch, resets - first)
        env = Simulation(robot, count, flavour="recovery", threads=threads, max_episode_steps=HORIZON + 1)
        env.reset(seed=seed + first)
        parts.append(follow(env, recovery, np.tile(radii, (count, 1)), HORIZON))
        env.close()
    outcomes = Outcomes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return {
        "robot": robot.name,
        "recovery": recovery.name,
        "sha256": recovery.digest,
        "resets": resets,
        "seed": seed,
        "batch": batch,
        "horizon": HORIZON,
        "survived": share(outcomes.fell_at == NEVER)._asdict(),
        "reentry": [reentry_row(robot, d, outcomes, k) for k, d in enumerate(radii)],
    }


def reentry_row(robot: Robot, radius: float, outcomes: Outcomes, k: int) -> dict[str, Any]:
    """Entry into R(d) within the horizon: of all resets, of those that start outside, of the survivors."""
    entered = outcomes.entered_at[:, k] != NEVER
    outside, survived = outcomes.start > radius, outcomes.fell_at == NEVER
    took = outcomes.entered_at[entered & outside, k]
    return {
        "radius": float(radius),
        "fraction": float(radius / robot.max_radius),
        "of_all": share(entered)._asdict(),
        "of_outside": share(entered[outside])._asdict(),
        "of_survivors": share(entered[survived])._asdict(),
        "median_steps": float(np.median(took)) if len(took) else None,
    }
