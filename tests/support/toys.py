"""Small environments of one's own, as a user of the library would write them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode

import safeexplorer.adapters.environments  # noqa: F401  the robots are registered on import


class Drift(gymnasium.Env):
    """x drifts at random and is pushed by the action; beyond 1 it has fallen. Episodes end at random, too."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, limit: int = 12):
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.x, self.t = self.np_random.uniform(-0.3, 0.3), 0
        return self._look(), self._info()

    def step(self, action):
        self.x += 0.2 * float(self.push(action)) + 0.15 * self.np_random.standard_normal()
        self.t += 1
        fell, over = abs(self.x) > 1.0, self.t >= self.limit
        return self._look(), 1.0 - abs(self.x), fell, over and not fell, self._info()

    def push(self, action) -> float:
        return np.clip(np.asarray(action).reshape(-1)[0], -1.0, 1.0)

    def distance(self) -> float:
        return abs(self.x)

    def _look(self) -> np.ndarray:
        return np.array([self.x, self.t / self.limit], np.float32)

    def _info(self) -> dict[str, Any]:
        return {"gap": abs(self.x)}


class Choice(Drift):
    """The same with three choices: left, nothing, right, numbered from 5."""

    action_space = Discrete(3, start=5)

    def push(self, action) -> float:
        return int(action) - 6


class Stepper(gymnasium.vector.VectorEnv):
    """A next-step environment that resets a robot only by stepping them all."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    num_envs = 2
    single_observation_space, single_action_space = Drift.observation_space, Drift.action_space
    observation_space = gymnasium.vector.utils.batch_space(Drift.observation_space, 2)
    action_space = gymnasium.vector.utils.batch_space(Drift.action_space, 2)


def far(observation: np.ndarray) -> np.ndarray:
    """D = |x|."""
    return np.abs(observation[:, 0].astype(np.float64))


def pull_back(observation: np.ndarray) -> np.ndarray:
    """Push towards the middle."""
    return -np.sign(observation[:, :1])


def choose_back(observation: np.ndarray) -> np.ndarray:
    """The same as a choice of `Choice`."""
    return 6 - np.sign(observation[:, 0])
