"""The mixed-policy rollout: the main policy acts inside M, the recovery outside it.

Nothing here depends on the method. Log-probabilities and values are left to the learner: parameters do not
change during a rollout, so one batch afterwards gives the same numbers and the loop stays a few numpy calls.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.networks import Params, for_rows
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.checkpoint import under


class Acts(Protocol):
    """What the rollout asks of a recovery policy."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """[k, n] -> [k, m], executed as given."""
        ...


class Observer(Protocol):
    """Looks on while a rollout is collected; must not touch the environment's state."""

    def before_step(self, step: int) -> None:
        """Called at every step, before anyone acts."""
        ...

    def on_exit(self, step: int, robots: np.ndarray) -> None:
        """Called when robots enter a recovery segment, before the recovery acts on it."""
        ...


class Collector:
    """Steps E robots T steps at a time and remembers where they are in between."""

    def __init__(
        self,
        env: VectorEnv,
        recovery: Acts | None,
        intervention: Intervention,
        rollout_steps: int,
        sampled: bool = False,
        observer: Observer | None = None,
    ):
        if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset_mode is {env.metadata.get('autoreset_mode')}; allowed: SAME_STEP")
        self.env, self.recovery, self.intervention = env, recovery, intervention
        self.steps, self.sampled, self.observer = rollout_steps, sampled, observer
        shape = (rollout_steps, env.num_envs)
        n = env.single_observation_space.shape[0]
        m = (env.single_action_space.shape or (1,))[0]  # a choice is one number
        self.distances = np.zeros(shape)  # [T, E] D(s_t)
        self._observation = np.zeros((rollout_steps + 1, env.num_envs, n), np.float32)
        self._next_observation = np.zeros((*shape, n), np.float32)
        self._proposed, self._action = np.zeros((*shape, m), np.float32), np.zeros((*shape, m), np.float32)
        self._reward, self._log_density = np.zeros(shape), np.zeros(shape, np.float32)
        self._terminated, self._truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self._outside = np.zeros((rollout_steps + 1, env.num_envs), bool)
        self._next_outside = np.zeros(shape, bool)
        # [E] robots that the next step will only reset; None where resets take no step
        self._waiting: np.ndarray | None = getattr(env, "waiting", None)
        self._idle = None if self._waiting is None else np.zeros(shape, bool)

    def reset(self, seed: int) -> None:
        """Start new episodes everywhere."""
        observation, info = self.env.reset(seed=seed)
        count = self.env.num_envs
        self.observation, self.distance = observation, self._distance_of(info)
        self.step = np.zeros(count, np.int64)
        self.open = np.zeros(count, bool)  # in the middle of a recovery segment

    def collect(self, params: Params, progress: float, rng: np.random.Generator) -> Rollout:
        """T steps under the mixed policy. The arrays of the result are reused by the next call."""
        takes_over, env = self.intervention.takes_over, self.env
        noise = draw_noise(params, self._proposed.shape[:2], rng)
        params = params | {"actor": for_rows(params["actor"], env.num_envs)}
        open_before = self.open
        self._log_density.fill(0.0)
        for t in range(self.steps):
            observation = self._observation[t]
            observation[:] = self.observation
            situation = Situation(self.observation, self.distance, self.step)
            outside = self._outside[t] = takes_over(situation, progress)
            if self._waiting is not None:
                self._idle[t] = self._waiting
                outside = self._outside[t] = outside & ~self._waiting
            proposed = self._proposed[t] = propose(params, observation, noise[t])
            action = self._action[t]
            action[:] = proposed
            self.distances[t] = self.distance
            if self.observer is not None:
                self.observer.before_step(t)
            if np.count_nonzero(outside):
                self._recover(t, outside, open_before, rng)
            after, self._reward[t], terminated, truncated, info = env.step(action)
            self._terminated[t], self._truncated[t] = terminated, truncated
            self.observation, self.distance = after, self._distance_of(info)
            self.step = self.step + 1
            if "intervention" in info:
                outside = self._note_takeovers(t, info)
            open_before = outside
            if self._idle is not None and self._idle[t].any():
                self._pass_over(t)
            if "final_obs" in info:
                open_before = outside & ~(terminated | truncated)
                self._end_episodes(t, info, progress)
        self.open = open_before
        return self._finish(progress)

    @staticmethod
    def _distance_of(info: dict[str, Any]) -> np.ndarray:
        return info["distance"]

    def _recover(
        self, t: int, outside: np.ndarray, open_before: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Let the recovery act on the robots outside M, and report first exits."""
        robots = slice(None) if np.count_nonzero(outside) == outside.size else outside.nonzero()[0]
        exits = outside > open_before
        if self.observer is not None and np.count_nonzero(exits):
            self.observer.on_exit(t, np.flatnonzero(exits))
        observation = self.observation[robots]
        if self.sampled:
            self._action[t, robots], self._log_density[t, robots] = self.recovery.sample(observation, rng)
        else:
            self._action[t, robots] = self.recovery.act(observation)

    def _note_takeovers(self, t: int, info: dict[str, Any]) -> np.ndarray:
        """Someone in the environment acted instead of the action it was sent: a recovery step, whoever it was."""
        taken = info["intervention"]
        self._action[t, taken] = info["executed_action"][taken]
        self._outside[t] |= taken
        return self._outside[t]

    def _pass_over(self, t: int) -> None:
        """A step that was only a reset stands alone: nothing leads to it or follows from it."""
        idle = self._idle[t]
        self._truncated[t, idle], self._next_outside[t, idle] = True, False
        self._next_observation[t, idle] = self._observation[t, idle]
        self.step[idle] = 0

    def _end_episodes(self, t: int, info: dict[str, Any], progress: float) -> None:
        """Keep the last observation of episodes that ended at t; a fall on the last allowed step is a fall."""
        robots = np.flatnonzero(info["_final_obs"])
        final = np.stack(info["final_obs"][robots])
        self._next_observation[t, robots] = final
        distance = self._distance_of(info["final_info"])[robots]
        situation = Situation(final, distance, self.step[robots])
        self._next_outside[t, robots] = self.intervention.takes_over(situation, progress)
        self._truncated[t] &= ~self._terminated[t]
        self.step[robots] = 0

    def _finish(self, progress: float) -> Rollout:
        """Fill in what the next step tells about this one, and hand the rollout over."""
        self._observation[-1] = self.observation
        situation = Situation(self.observation, self.distance, self.step)
        self._outside[-1] = self.intervention.takes_over(situation, progress)
        goes_on = ~(self._terminated | self._truncated)
        np.copyto(self._next_observation, self._observation[1:], where=goes_on[..., None])
        np.copyto(self._next_outside, self._outside[1:], where=goes_on)
        nothing = np.zeros_like(self._log_density)
        return Rollout(
            observation=self._observation[:-1],
            next_observation=self._next_observation,
            proposed=self._proposed,
            action=self._action,
            task_reward=self._reward,
            terminated=self._terminated,
            truncated=self._truncated,
            recovering=self._outside[:-1],
            next_outside=self._next_outside,
            recovery_log_density=self._log_density,
            reroll_value=nothing,
            reroll_count=nothing,
            idle=self._idle,
        )

    @property
    def executed(self) -> np.ndarray:
        """[T, E, m] what the robots were sent in the last rollout, before the bounds."""
        return self._action

    def get_state(self) -> dict[str, np.ndarray]:
        """Where the robots are: everything that the next rollout depends on."""
        own = {
            "observation": self.observation,
            "distance_bits": self.distance.view(np.int64),  # NaN, outside every region, may be saved too
            "step": self.step,
            "open": self.open,
        }
        world = {f"world/{name}": array for name, array in self.env.get_state().items()}
        memory = self.recovery.get_state() if self.recovery is not None else {}
        return own | world | {f"recovery/{name}": array for name, array in memory.items()}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        """Go on from a state taken by `get_state`; False where the environment could only begin new episodes."""
        if self.recovery is not None:
            self.recovery.set_state(under("recovery/", state))
        if self.env.set_state(under("world/", state)) is False:
            return False
        self.observation, self.distance = state["observation"], state["distance_bits"].view(np.float64)
        self.step, self.open = state["step"].copy(), state["open"]
        return True
