"""Observations and rewards in units of their own spread, so that one step size fits every robot.

Both stand still during a rollout and its update. What changes between updates is put into the networks' weights:
the policy and the value function are the same before and after.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import Layers, Params, normalised_observation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.moments import Moments, deviation, merge, no_moments
from safeexplorer.learning.networks import read_by

# Steps that mean 0 and deviation 1 count for: a robot at rest shows too little of its range.
BELIEVED = 100_000
SMALLEST_SCALE = 1e-8


class Normaliser:
    """(s - mean) / deviation, of all steps in which the policy had control."""

    def __init__(self, size: int):
        self.moments = believed(size)

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
        self.moments, params = taken_in(self.moments, rollout, params)
        return params

    def get_state(self) -> Moments:
        return self.moments

    def set_state(self, state: Moments) -> None:
        self.moments = Moments(*state)


def believed(size: int) -> Moments:
    """Before anything is seen."""
    return Moments(np.int64(BELIEVED), np.zeros(size), np.full(size, float(BELIEVED - 1)))


def normaliser(moments: Moments, xp: Any = np) -> Params:
    """Mean and deviation as the policy carries them."""
    return {"mean": moments.mean.astype(np.float32), "deviation": deviation(moments, xp).astype(np.float32)}


def taken_in(moments: Moments, rollout: Rollout, params: Params, xp: Any = np) -> tuple[Moments, Params]:
    """The moments with a rollout's observations, and the same networks in the new coordinates."""
    rows = rollout.observation.reshape(-1, rollout.observation.shape[-1])
    after = merge(moments, rows)
    old, new = normaliser(moments, xp), normaliser(after, xp)
    moved = {name: carried_over(params[name], old, new, name) for name in ("actor", "critic")}
    return after, params | moved


def carried_over(layers: Layers, before: Params, after: Params, network: str = "actor") -> Layers:
    """W' = W dev'/dev, b' = b + (mean' - mean)/dev W: (s - mean')/dev' W' + b' = (s - mean)/dev W + b."""
    first = layers[0]
    shift = read_by(network, layers, (after["mean"] - before["mean"]) / before["deviation"])
    stretch = read_by(network, layers, after["deviation"] / before["deviation"])
    moved = first | {
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

    def undone(self, params: Params) -> Params:
        """The parameters with a critic that counts in rewards as the task pays them."""
        last = {name: x * np.float32(self.scale) for name, x in params["critic"][-1].items()}
        return params | {"critic": [*params["critic"][:-1], last]}

    def cut(self) -> None:
        """New episodes begin everywhere."""
        self.running = np.zeros_like(self.running)

    def get_state(self) -> dict[str, Any]:
        return {"moments": self.moments, "running": self.running, "scale": np.array(self.scale)}

    def set_state(self, state: dict[str, Any]) -> None:
        self.moments, self.scale = Moments(*state["moments"]), float(state["scale"])
        if state["running"].shape == self.running.shape:  # else they are other robots
            self.running = state["running"].copy()
