"""Observations and rewards in units of their own spread, so that one step size fits every robot.

Both stand still during a rollout and its update. What changes between updates is put into the networks' weights:
the policy and the value function are the same before and after.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import Layers, Params, normalised_observation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.moments import Moments, deviation, merge, no_moments

BELIEVED = (
    100_000  # steps that mean 0 and deviation 1 count for: a robot at rest shows too little of its range
)
SMALLEST_SCALE = 1e-8


class Normaliser:
    """(s - mean) / deviation, of all steps in which the policy had control."""

    def __init__(self, size: int):
        self.moments = Moments(np.int64(BELIEVED), np.zeros(size), np.full(size, float(BELIEVED - 1)))

    @property
    def params(self) -> Params:
        """What the actor needs of it."""
        return normaliser(self.moments)

    def of(self, observation: np.ndarray) -> np.ndarray:
        """Observations as the networks see them."""
        return normalised_observation(self.params, observation)

    def apply(self, rollout: Rollout) -> Rollout:
        """The rollout as the networks see it."""
        observation, after = self.of(rollout.observation), self.of(rollout.next_observation)
        return rollout._replace(observation=observation, next_observation=after)

    def add(self, rollout: Rollout, params: Params) -> Params:
        """Take the rollout in; the same networks in the new coordinates."""
        before = self.params
        self.moments = merge(self.moments, rollout.observation.reshape(-1, rollout.observation.shape[-1]))
        after = self.params
        moved = {name: carried_over(params[name], before, after) for name in ("actor", "critic")}
        return params | moved

    def get_state(self) -> Moments:
        return self.moments

    def set_state(self, state: Moments) -> None:
        self.moments = Moments(*state)


def normaliser(moments: Moments) -> Params:
    """Mean and deviation as the policy carries them."""
    return {"mean": moments.mean.astype(np.float32), "deviation": deviation(moments).astype(np.float32)}


def carried_over(layers: Layers, before: Params, after: Params) -> Layers:
    """W' = W dev'/dev, b' = b + (mean' - mean)/dev W: (s - mean')/dev' W' + b' = (s - mean)/dev W + b."""
    first = layers[0]
    shift = (after["mean"] - before["mean"]) / before["deviation"]
    stretch = after["deviation"] / before["deviation"]
    moved = {
        "weight": first["weight"] * jnp.asarray(stretch)[:, None],
        "bias": first["bias"] + jnp.asarray(shift) @ first["weight"],
    }
    return [moved, *layers[1:]]


class RewardScale:
    """Rewards divided by the standard deviation of their discounted sums: values of about one, whatever a task pays."""

    def __init__(self, num_envs: int, gamma: float):
        self.gamma, self.moments = gamma, no_moments()
        self.running = np.zeros(num_envs)  # sum of discounted rewards of the episode in hand
        self.scale = 1.0

    def add(self, rollout: Rollout, params: Params) -> Params:
        """Take the rollout in; the same critic in the new unit."""
        sums = np.empty_like(rollout.task_reward)
        goes_on = ~(rollout.terminated | rollout.truncated)
        for t, reward in enumerate(rollout.task_reward):
            sums[t] = self.running = self.gamma * self.running + reward
            self.running = self.running * goes_on[t]
        self.moments = merge(self.moments, sums.reshape(-1))
        before = self.scale
        self.scale = max(float(np.sqrt(self.moments.squares / self.moments.count)), SMALLEST_SCALE)
        last = {name: x * np.float32(before / self.scale) for name, x in params["critic"][-1].items()}
        return params | {"critic": [*params["critic"][:-1], last]}

    def apply(self, rollout: Rollout) -> Rollout:
        """The rollout with rewards in the present unit."""
        return rollout._replace(task_reward=rollout.task_reward / self.scale)

    def cut(self) -> None:
        """New episodes begin everywhere."""
        self.running = np.zeros_like(self.running)

    def get_state(self) -> dict[str, Any]:
        return {"moments": self.moments, "running": self.running, "scale": np.array(self.scale)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.moments, self.scale = Moments(*state["moments"]), float(state["scale"])
        if state["running"].shape == self.running.shape:  # else they are other robots
            self.running = state["running"].copy()
