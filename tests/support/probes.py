"""Tiny worlds whose answers are known in closed form."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import Intervention, NoIntervention
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import METHODS
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import init_learner, make_learn


class Probe(VectorEnv):
    """x' = x + move * a; reward(x, a) and the end of an episode are arguments; D = |x|, observation (x, t / limit)."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        reward: Callable[[np.ndarray, np.ndarray], np.ndarray],
        num_envs: int = 4,
        move: float = 0.0,
        limit: int = 5,
        falls_at_limit: bool = False,
        falls_beyond: float = np.inf,
    ):
        self.reward, self.num_envs, self.move, self.limit = reward, num_envs, move, limit
        self.falls_at_limit, self.falls_beyond = falls_at_limit, falls_beyond
        self.single_observation_space = Box(-np.inf, np.inf, (2,), np.float64)
        self.single_action_space = Box(-10.0, 10.0, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = np.zeros(self.num_envs), np.zeros(self.num_envs, int)
        return self._observe(), {"distance": np.abs(self.x)}

    def step(self, actions):
        action = np.asarray(actions)[:, 0].astype(float)
        reward = self.advance(action)
        self.t += 1
        over = self.t >= self.limit
        terminated = (over & self.falls_at_limit) | (np.abs(self.x) > self.falls_beyond)
        info = {}
        ended = terminated | over
        if ended.any():
            final = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended):
                final[i] = self._observe()[i]
            info = {
                "final_obs": final,
                "_final_obs": ended,
                "final_info": {"distance": np.abs(self.x)},
                "_final_info": ended,
            }
            self.x, self.t = np.where(ended, 0.0, self.x), np.where(ended, 0, self.t)
        return self._observe(), reward, terminated, over, info | {"distance": np.abs(self.x)}

    def advance(self, action):
        """Move on by one step; the reward."""
        reward = self.reward(self.x, action)
        self.x = self.x + self.move * action
        return reward

    def _observe(self):
        return np.stack([self.x, self.t / self.limit], axis=1)

    def get_state(self):
        return {"x": self.x.copy(), "t": self.t.copy()}

    def set_state(self, state):
        self.x, self.t = state["x"].copy(), state["t"].copy()


class Controller:
    """A plain function as a recovery."""

    def __init__(self, law: Callable[[np.ndarray], np.ndarray]):
        self.act = lambda observation: law(observation).astype(np.float32)[:, None]

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


def learn_on(
    env: Probe,
    method: str = "ppo",
    updates: int = 60,
    hyper: Hyperparameters | None = None,
    intervention: Intervention | None = None,
    recovery: Controller | None = None,
    learning_rate: float = 3e-3,
):
    """Train on a probe; parameters as numpy arrays and the rows of metrics."""
    hyper = hyper or Hyperparameters(gamma=0.9, epochs=4, minibatches=4)
    rng = np.random.default_rng(0)
    collector = Collector(env, recovery, intervention or NoIntervention(), 128)
    collector.reset(0)
    row = METHODS[method]
    state = init_learner(init_actor_critic(rng, 2, 1, (16, 16), row.critic_heads), hyper)
    learn, rows = make_learn(row, hyper), []
    size = 128 * env.num_envs
    for _ in range(updates):
        rollout = collector.collect(jax.device_get(state.params), 0.0, rng)
        order = np.stack([rng.permutation(size) for _ in range(hyper.epochs)]).astype(np.int32)
        state, metrics = learn(state, rollout, order, np.float32(learning_rate))
        rows.append({name: float(x) for name, x in metrics.items()})
    return jax.device_get(state.params), rows
