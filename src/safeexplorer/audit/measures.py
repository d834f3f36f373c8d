"""What a rollout says about the recovery in it: who acted, how segments ended, who fell, where the trigger lies."""

from dataclasses import dataclass

import jax
import numpy as np

from safeexplorer.acting.accounting import Ledger
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.segments import find_segments

REEXIT_STEPS = 5  # leaving the region again within so many policy steps is chatter
compiled_segments = jax.jit(find_segments)
QUANTILES = {"min": 0.0, "q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9, "max": 1.0}


@dataclass(frozen=True)
class Shares:
    """How much the recovery acts."""

    steps: int  # T * E
    robots: int  # E
    recovery_steps: int
    recovery_rate: float  # alpha, of all steps
    episodes: int  # that ended in the rollout
    episodes_with_recovery: int
    episode_quantiles: dict[str, float] | None  # of the share of recovery steps in an episode

    policy_steps = property(lambda self: self.steps - self.recovery_steps)


@dataclass(frozen=True)
class SegmentFacts:
    """How long recoveries take and how they end."""

    count: int
    length_quantiles: dict[str, float] | None
    reentered: int  # back in the region
    fell: int
    timed_out: int  # the time limit came first
    open: int  # the rollout ended first
    success: float | None  # reentered / (reentered + fell)
    reexits: int  # re-entries that left again within REEXIT_STEPS policy steps of the same episode
    reexit_share: float | None  # of the re-entries

    decided = property(lambda self: self.reentered + self.fell)


@dataclass(frozen=True)
class Falls:
    """Who acted on the step that fell."""

    policy: int
    recovery: int

    total = property(lambda self: self.policy + self.recovery)


@dataclass(frozen=True)
class Region:
    """Is the trigger a threshold on D? Then every D under the policy lies below every D under the recovery."""

    largest_policy: float | None  # D where the policy acted
    smallest_recovery: float | None  # D where the recovery acted
    overlap: float  # share of recovery steps with a D up to the policy's largest


def measure_shares(rollout: Rollout) -> Shares:
    """Shares of steps and of episodes; what runs at the start counts as an episode that began there."""
    recovering = rollout.recovering
    episodes = Ledger(recovering.shape[1]).add(rollout, 0)
    shares = np.array([episode.recovery_share for episode in episodes])
    return Shares(
        steps=recovering.size,
        robots=recovering.shape[1],
        recovery_steps=int(recovering.sum()),
        recovery_rate=float(recovering.mean()),
        episodes=len(episodes),
        episodes_with_recovery=int((shares > 0).sum()),
        episode_quantiles=quantiles(shares),
    )


def measure_segments(rollout: Rollout) -> SegmentFacts:
    """Every maximal run of recovery steps within an episode, by its outcome."""
    found = compiled_segments(rollout, np.zeros(rollout.recovering.shape))
    start, length = np.asarray(found.start), np.asarray(found.length)
    robot, first = np.nonzero(start.T)  # in the order of time, robot by robot
    lengths = length[first, robot]
    last = first + lengths - 1
    fell = rollout.fell[last, robot]
    timed_out = (rollout.truncated | (rollout.terminated & ~rollout.fell))[last, robot]  # or at a goal
    still_open = ~fell & ~timed_out & (last == len(start) - 1)
    reentered = ~(fell | timed_out | still_open)
    again = reexits(rollout, robot, first, last) & reentered[:-1]
    returned, lost = int(reentered.sum()), int(fell.sum())
    return SegmentFacts(
        count=len(first),
        length_quantiles=quantiles(lengths),
        reentered=returned,
        fell=lost,
        timed_out=int(timed_out.sum()),
        open=int(still_open.sum()),
        success=returned / (returned + lost) if returned + lost else None,
        reexits=int(again.sum()),
        reexit_share=int(again.sum()) / returned if returned else None,
    )


def reexits(rollout: Rollout, robot: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """For each segment but the last: does the next one follow soon, in the same episode of the same robot?"""
    ended = np.cumsum(rollout.terminated | rollout.truncated, axis=0)
    same_robot = robot[1:] == robot[:-1]
    gap = first[1:] - last[:-1] - 1
    between = ended[np.maximum(first[1:] - 1, 0), robot[1:]] - ended[last[:-1], robot[:-1]]
    return same_robot & (gap <= REEXIT_STEPS) & (between == 0)


def measure_falls(rollout: Rollout) -> Falls:
    """Falls by who acted."""
    lost = int(rollout.fell[rollout.recovering].sum())
    return Falls(policy=int(rollout.fell.sum()) - lost, recovery=lost)


def measure_region(rollout: Rollout) -> Region:
    """D on both sides of the trigger. A NaN, which is outside by definition, is left out."""
    distance, known = rollout.distance, np.isfinite(rollout.distance)
    inside, outside = distance[known & ~rollout.recovering], distance[known & rollout.recovering]
    both = inside.size and outside.size
    return Region(
        largest_policy=float(inside.max()) if inside.size else None,
        smallest_recovery=float(outside.min()) if outside.size else None,
        overlap=float((outside <= inside.max()).mean()) if both else 0.0,
    )


def quantiles(values: np.ndarray) -> dict[str, float] | None:
    """None of nothing."""
    if not len(values):
        return None
    return {name: float(np.quantile(values, share)) for name, share in QUANTILES.items()}
