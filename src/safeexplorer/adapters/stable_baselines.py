"""Vector environments of Stable-Baselines3, which need not be installed for it."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv


class StableBaselinesEnv(VectorEnv):
    """A Stable-Baselines3 `VecEnv` in Gymnasium's terms: it resets within the step that ends an episode."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, env: Any):
        self.env, self.num_envs = env, env.num_envs
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(env.observation_space, env.num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(env.action_space, env.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict]:
        if seed is not None:
            self.env.seed(seed)
        return self.env.reset(), self._merged(self.env.reset_infos)

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        observation, reward, done, infos = self.env.step(actions)
        done = np.asarray(done, bool)
        truncated = done & [info.get("TimeLimit.truncated", False) for info in infos]
        if not done.any():
            return observation, reward, done, truncated, self._merged(infos)
        finals = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(done):
            finals[i] = infos[i]["terminal_observation"]
        now = [self.env.reset_infos[i] if done[i] else infos[i] for i in range(self.num_envs)]
        news = self._merged(now)
        news.update(final_obs=finals, _final_obs=done, _final_info=done)
        news["final_info"] = self._merged([infos[i] if done[i] else {} for i in range(self.num_envs)])
        return observation, reward, done & ~truncated, truncated, news

    def _merged(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for i, info in enumerate(infos):
            own = {k: v for k, v in info.items() if k not in ("terminal_observation", "episode")}
            merged = self._add_info(merged, own, i)
        return merged

    def close_extras(self, **kwargs: Any) -> None:
        self.env.close()
