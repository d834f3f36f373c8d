"""Rollouts drawn as strings, and recordings of them in a file."""

import numpy as np

from safeexplorer.acting.trajectory import Rollout, blank_rollout


def drawn(*robots: str) -> Rollout:
    """One string per robot: '.' the policy acts, 'r' the recovery; 'F' and 'X' fall under the one and the other;
    'T' and 'L' meet the time limit under the one and the other."""
    letters = np.array([list(robot) for robot in robots]).T
    return blank_rollout(
        letters.shape,
        observation=np.arange(letters.size, dtype=np.float32).reshape(*letters.shape, 1),
        distance=None,
        terminated=np.isin(letters, ["F", "X"]),
        truncated=np.isin(letters, ["T", "L"]),
        recovering=np.isin(letters, ["r", "X", "L"]),
    )


def native(rollout: Rollout) -> dict[str, np.ndarray]:
    """A rollout in our own words."""
    return {
        "observation": rollout.observation,
        "action": rollout.action,
        "reward": rollout.task_reward,
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "intervention": rollout.recovering,
        "proposed": rollout.proposed,
        "next_observation": rollout.next_observation,
    }


def written(tmp_path, arrays):
    path = tmp_path / "rollouts.npz"
    np.savez(path, **arrays)
    return path
