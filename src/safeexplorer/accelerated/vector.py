"""The copies of a JAX environment as a Gymnasium vector environment, for whoever steps robots from the host."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from safeexplorer.accelerated.environments import JaxEnvironments, Moved, Robots

SEEDS = 2**31  # raw keys hold no larger seed where numbers have 32 bits


class JaxVector(VectorEnv):
    """Same-step resets and `distance` in `info`, as `adapters.environments` has them. Observations are the policy's."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    pose_name = "observation"

    def __init__(self, envs: JaxEnvironments):
        self.copies, self.num_envs = envs, envs.num_envs
        self.single_observation_space = Box(-np.inf, np.inf, (envs.sizes.observation,), np.float32)
        self.single_action_space = Box(-1.0, 1.0, (envs.action_size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._step, self._look = jax.jit(self._moved), jax.jit(self._seen)

    def _seen(self, robots: Robots) -> tuple[Any, Any]:
        return self.copies.policy_rows(self.copies.rows(robots.state)), self.copies.distance(robots.state)

    def _moved(self, robots: Robots, action: Any) -> tuple[Moved, Robots, tuple[Any, Any]]:
        moved, robots = self.copies.step(robots, action)
        moved = moved._replace(observation=self.copies.policy_rows(moved.observation))
        return moved, robots, self._seen(robots)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin new episodes everywhere."""
        self.robots = self.copies.reset(0 if seed is None else seed % SEEDS)
        observation, distance = jax.device_get(self._look(self.robots))
        return observation, {"distance": distance.astype(np.float64)}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step everywhere; actions are held within -1 and 1."""
        moved, self.robots, seen = self._step(self.robots, jnp.asarray(actions, jnp.float32))
        moved, (observation, distance) = jax.device_get((moved, seen))
        ended = moved.terminated | moved.truncated
        info: dict[str, Any] = {"distance": distance.astype(np.float64), "reached": moved.reached}
        if ended.any():
            last = {"distance": moved.distance.astype(np.float64)}
            info |= {
                "final_obs": moved.observation,
                "_final_obs": ended,
                "final_info": last,
                "_final_info": ended,
            }
        return observation, moved.reward.astype(np.float64), moved.terminated, moved.truncated, info

    # -- records: nothing of thousands of robots is written down ---------------------------------------------

    def snapshot(self, ids: Any) -> dict[str, np.ndarray]:
        return {"observation": np.zeros((len(ids), 0))}

    def pose(self) -> np.ndarray:
        return np.zeros((self.num_envs, 0))

    def get_state(self) -> dict[str, np.ndarray]:
        return {}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        return False
