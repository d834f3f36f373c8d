"""A small environment in JAX with Brax's interface, and the same behind a Gymnasium face."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode


@jax.tree_util.register_dataclass
@dataclass
class State:
    """As in Brax: a dataclass that JAX knows."""

    x: Any
    obs: Any
    reward: Any
    done: Any
    metrics: dict = field(default_factory=dict)
    info: dict = field(default_factory=dict)

    def replace(self, **changes: Any) -> State:
        return replace(self, **changes)


class JaxDrift:
    """x is pushed by the action and away from the middle, from x0 in [-0.3, 0.3]; beyond 1 it has fallen.

    privileged: `obs` is a dictionary, and the critic sees the start too. goal: x beyond it ends the episode as well.
    """

    observation_size, action_size = 2, 1

    def __init__(self, privileged: bool = False, goal: float | None = None, growth: float = 1.2):
        self.privileged, self.goal, self.growth = privileged, goal, growth

    def reset(self, rng: Any) -> State:
        x = jax.random.uniform(rng, (), minval=-0.3, maxval=0.3)
        info = {"start": x, "is_success": jnp.zeros(())}
        return self._look(State(x, None, jnp.zeros(()), jnp.zeros(()), {"gap": jnp.abs(x)}, info))

    def step(self, state: State, action: Any) -> State:
        x = self.growth * state.x + 0.2 * action[0]
        fell = jnp.abs(x) > 1.0
        reached = jnp.zeros((), bool) if self.goal is None else ~fell & (x > self.goal)
        info = {**state.info, "is_success": reached.astype(jnp.float32)}
        done, metrics = (fell | reached).astype(jnp.float32), {"gap": jnp.abs(x)}
        return self._look(State(x, None, 1.0 - jnp.abs(x), done, metrics, info))

    def _look(self, state: State) -> State:
        rows = jnp.stack([state.x, state.x**2])
        if self.privileged:
            rows = {"state": rows, "privileged_state": jnp.concatenate([rows, state.info["start"][None]])}
        return state.replace(obs=rows)


def far(observation: Any) -> Any:
    """D = |x|."""
    return jnp.abs(observation[:, 0])


def pull_back(observation: Any) -> Any:
    """Push towards the middle."""
    return -jnp.sign(observation[:, :1])


def too_weak(observation: Any) -> Any:
    """Push towards the middle, and fall from far out."""
    return -0.2 * jnp.sign(observation[:, :1])


class GymnasiumFace(gymnasium.vector.VectorEnv):
    """E copies of a JAX environment as a same-step vector environment, which begins episode k of robot e with the key
    fold_in(fold_in(key, e), k)."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, env: Any, num_envs: int, limit: int):
        self.env, self.num_envs, self.limit = env, num_envs, limit
        n, m = env.observation_size, env.action_size
        self.single_observation_space = Box(-np.inf, np.inf, (n,), np.float32)
        self.single_action_space = Box(-1.0, 1.0, (m,), np.float32)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._step, self._reset = jax.jit(env.step), jax.jit(env.reset)

    def reset(self, *, seed: int | None = None, options: Any = None):
        self.key = jax.random.split(jax.random.PRNGKey(seed))[0]
        self.episode = np.zeros(self.num_envs, int)
        self.t = np.zeros(self.num_envs, int)
        self.states = [self._begin(e) for e in range(self.num_envs)]
        return self._rows(), {}

    def _begin(self, robot: int) -> State:
        key = jax.random.fold_in(jax.random.fold_in(self.key, robot), int(self.episode[robot]))
        return self._reset(key)

    def _rows(self) -> np.ndarray:
        return np.stack([np.asarray(state.obs) for state in self.states])

    def step(self, actions: np.ndarray):
        self.states = [self._step(s, jnp.asarray(a)) for s, a in zip(self.states, actions, strict=True)]
        self.t += 1
        reward = np.array([float(state.reward) for state in self.states])
        terminated = np.array([bool(state.done) for state in self.states])
        truncated = ~terminated & (self.t >= self.limit)
        ended, info = terminated | truncated, {}
        if ended.any():
            info = {"final_obs": self._rows(), "_final_obs": ended}
            for robot in np.flatnonzero(ended):
                self.episode[robot] += 1
                self.t[robot] = 0
                self.states[robot] = self._begin(robot)
        return self._rows(), reward, terminated, truncated, info
