"""Rollouts drawn as strings, and recordings of them in a file."""

import numpy as np

from safeexplorer.acting.trajectory import Rollout, blank_rollout
from safeexplorer.learning.networks import init_actor_critic


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


def three_episodes() -> tuple[dict, Rollout]:
    """Of one step each, the last under recovery, and a policy: observation 0, mean = bias = 0, sigma = 1, V = 0.

    So A = r, and the gradient has two entries: -mean(A a) for the bias and -mean(A (a^2 - 1)) for log sigma.
    """
    params = init_actor_critic(np.random.default_rng(0), 1, 1, ())
    params["critic"][0]["weight"][:] = 0.0
    rollout = drawn("FFX")._replace(
        observation=np.zeros((3, 1, 1), np.float32),
        action=np.float32([[[1]], [[-1]], [[0]]]),
        proposed=np.float32([[[1]], [[-1]], [[2]]]),
        task_reward=np.array([[1.0], [-1.0], [-3.0]]),
    )
    return params, rollout


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
