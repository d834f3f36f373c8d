"""Pre-training of a recovery policy: soft actor-critic on the recovery flavour of a robot.

While the accelerator makes the updates of one step batch, the processor steps the robots: actions of step t
are drawn from the parameters that have seen the transitions up to step t - 2. The order is fixed, so a run
depends on its settings alone, and a resumed one ends in the same parameters as an uninterrupted one.
"""

from typing import Any

import jax
import numpy as np
from gymnasium.vector import VectorEnv

from safeexplorer.files.checkpoint import flatten, under, unflatten_like
from safeexplorer.pretraining.sac import (
    Box,
    Replay,
    Transitions,
    empty_replay,
    init_sac,
    insert,
    make_act,
    make_learn,
    pack,
)
from safeexplorer.pretraining.settings import RecoverySettings

COUNTERS = ("vector_steps", "updates", "episodes", "falls")
COUNTERS += ("window_episodes", "window_return", "window_length")
LOSSES = ["q_loss", "policy_loss", "alpha", "entropy"]
METRICS = ["steps", "updates", "episodes", "falls", "episode_return", "episode_length", *LOSSES]


class Trainer:
    """E robots, the learner and the replay memory, advanced one step batch at a time."""

    def __init__(self, env: VectorEnv, settings: RecoverySettings):
        self.env, self.settings = env, settings
        space = env.single_action_space
        n, m = env.single_observation_space.shape[0], space.shape[0]
        self.low, self.high = space.low, space.high
        box = Box.between(self.low, self.high)
        capacity = settings.replay // env.num_envs * env.num_envs
        self.learner = init_sac(np.random.default_rng(settings.seed), n, m, settings)
        self.replay = empty_replay(capacity, n, m)
        self._act = make_act(box, settings.seed)
        self._learn = make_learn(box, n, settings)
        self._insert = jax.jit(insert, donate_argnums=0)
        for counter in COUNTERS:
            setattr(self, counter, 0)
        self.losses: dict[str, Any] = {}
        self.observation = env.reset(seed=settings.seed)[0].astype(np.float32)
        self.pending = np.zeros((0, self.replay.rows.shape[1]), np.float32)  # made, not yet in the replay

    @property
    def steps(self) -> int:
        """Environment steps made."""
        return self.vector_steps * self.env.num_envs

    def advance(self) -> None:
        """Act, learn from the step before, step the robots."""
        warming_up = self.steps < self.settings.learning_starts
        action = np.asarray(self._act(self.learner.actor, self.observation, self.vector_steps, warming_up))
        self._absorb(warming_up)
        after, reward, terminated, truncated, info = self.env.step(action)
        after = after.astype(np.float32)
        successor = after.copy()
        ended = terminated | truncated
        if ended.any():
            successor[ended] = np.stack(info["final_obs"][ended])
            self._count(info["final_info"], ended, terminated)
        self.pending = pack(Transitions(self.observation, action, successor, reward, terminated))
        self.observation = after
        self.vector_steps += 1

    def _absorb(self, warming_up: bool) -> None:
        """Give the pending transitions to the replay, and update unless it is too early."""
        if not len(self.pending):
            return
        if warming_up:
            self.replay = self._insert(self.replay, self.pending)
            return
        self.learner, self.replay, self.losses = self._learn(
            self.learner, self.replay, self.pending, self.vector_steps
        )
        self.updates += self.settings.updates_per_step

    def _count(self, final_info: dict[str, np.ndarray], ended: np.ndarray, terminated: np.ndarray) -> None:
        self.falls += int(terminated.sum())
        self.episodes += int(ended.sum())
        self.window_episodes += int(ended.sum())
        self.window_return += float(final_info["episode_return"][ended].sum())
        self.window_length += int(final_info["episode_length"][ended].sum())

    def metrics(self) -> dict[str, Any]:
        """One row: totals so far, means over the episodes finished since the last row, the latest losses."""
        count, losses = self.window_episodes, jax.device_get(self.losses)
        row = {
            "steps": self.steps,
            "updates": self.updates,
            "episodes": self.episodes,
            "falls": self.falls,
            "episode_return": self.window_return / count if count else None,
            "episode_length": self.window_length / count if count else None,
            **{name: float(losses[name]) if losses else None for name in LOSSES},
        }
        self.window_episodes = self.window_return = self.window_length = 0
        if not all(value is None or np.isfinite(value) for value in row.values()):
            raise FloatingPointError(f"soft actor-critic diverged at {self.steps:,} steps: {row}")
        return row

    def provenance(self) -> dict[str, Any]:
        """Where the present actor comes from."""
        return {
            "robot": self.settings.robot,
            "flavour": self.settings.flavour,
            "settings": self.settings.as_dict(),
            "environment_steps": self.steps,
            "updates": self.updates,
            "falls": self.falls,
            "device": jax.devices()[0].device_kind,
        }

    def get_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything the next step depends on: arrays by path, and plain counters."""
        filled = min(int(self.replay.count), self.replay.rows.shape[0])
        arrays = {
            "learner": self.learner,
            "replay": np.asarray(self.replay.rows[:filled]),
            "count": self.replay.count,
            "observation": self.observation,
            "pending": self.pending,
            "world": self.env.get_state(),
        }
        return flatten(arrays), {counter: getattr(self, counter) for counter in COUNTERS}

    def set_state(self, arrays: dict[str, np.ndarray], counters: dict[str, Any]) -> None:
        """Go on from a state taken by `get_state`."""
        learner = unflatten_like({"learner": self.learner}, arrays)["learner"]
        self.learner = jax.tree.map(jax.numpy.asarray, learner)
        rows = self.replay.rows.at[: len(arrays["replay"])].set(arrays["replay"])
        self.replay = Replay(rows, jax.numpy.asarray(arrays["count"]))
        self.observation, self.pending = arrays["observation"], arrays["pending"]
        self.env.set_state(under("world/", arrays))
        for counter in COUNTERS:
            setattr(self, counter, counters[counter])
