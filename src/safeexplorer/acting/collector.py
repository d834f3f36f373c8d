"""The mixed-policy rollout: the main policy acts inside M, the recovery outside it.

Nothing here depends on the method. Log-probabilities and values are left to the learner: parameters do not
change during a rollout, so one batch afterwards gives the same numbers and the loop stays a few numpy calls.
"""

from functools import partial
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from safeexplorer.acting.copying import Rehearsal
from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.mixed import Acts, MixedPolicy
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import draw_noise, propose, shaken
from safeexplorer.acting.trajectory import Rollout, blank_rollout
from safeexplorer.files.checkpoint import under


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

    physical = False  # a robot that nothing may shake

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
        self.env, self.mixed = env, MixedPolicy(intervention, recovery, sampled)
        self.rollout_steps, self.observer = rollout_steps, observer
        self.rehearsal = Rehearsal()
        n = env.single_observation_space.shape[0]
        m = (env.single_action_space.shape or (1,))[0]  # a choice is one number
        self._rollout = blank_rollout((rollout_steps, env.num_envs), n, m)

    def reset(self, seed: int) -> None:
        """Start new episodes everywhere."""
        self.observation, info = self.env.reset(seed=seed)
        self.distance = info["distance"]
        self.episode_step = np.zeros(self.env.num_envs, np.int64)
        self.open = np.zeros(self.env.num_envs, bool)  # in the middle of a recovery segment

    def collect(self, params: Params, progress: float, rng: np.random.Generator) -> Rollout:
        """T steps under the mixed policy. The arrays of the result are reused by the next call."""
        rollout, env = self._rollout, self.env
        noise = draw_noise(params, (self.rollout_steps, env.num_envs), rng)
        for t in range(self.rollout_steps):
            rollout.observation[t], rollout.distance[t] = self.observation, self.distance
            rollout.proposed[t] = propose(params, rollout.observation[t], noise[t])
            if self.observer is not None:
                self.observer.before_step(t)
            report = partial(self._report_exits, t)
            acted = self.mixed.act(self._situation(), rollout.proposed[t], progress, rng, report)
            rollout.recovering[t], rollout.action[t], rollout.recovery_log_density[t] = acted
            step = env.step(self._sent(params, acted.action, noise[t], rng))
            self.observation, rollout.task_reward[t], rollout.terminated[t], rollout.truncated[t], info = step
            self.distance, rollout.reached[t] = info["distance"], info.get("reached", False)
            self.episode_step = self.episode_step + 1
            if "intervention" in info:
                self._note_takeovers(t, info)
            self.open = rollout.recovering[t]
            if "final_obs" in info:
                self._end_episodes(t, info, progress)
        self._look_ahead(progress)
        return rollout

    def _sent(
        self, params: Params, action: np.ndarray, noise: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """What the robots are sent: the action that is stored, but for a rehearsal."""
        shaking, radius, share = self.rehearsal
        sent = shaken(params, action, noise, shaking, rng) if shaking else action
        if not radius:
            return sent
        own = shaken(params, propose(params, self.observation), noise, share, rng)
        return np.where((self.distance <= radius)[:, None], own, sent)

    def _situation(self) -> Situation:
        return Situation(self.observation, self.distance, self.episode_step)

    def _report_exits(self, t: int, recovering: np.ndarray) -> None:
        """Tell the observer of first exits."""
        exits = recovering > self.open
        if self.observer is not None and np.count_nonzero(exits):
            self.observer.on_exit(t, np.flatnonzero(exits))

    def _note_takeovers(self, t: int, info: dict[str, Any]) -> None:
        """Someone in the environment acted instead of the action it was sent: a recovery step, whoever it was."""
        taken = info["intervention"]
        self._rollout.action[t, taken] = info["executed_action"][taken]
        self._rollout.recovering[t] |= taken

    def _end_episodes(self, t: int, info: dict[str, Any], progress: float) -> None:
        """Keep the last observation of episodes that ended at t; a fall on the last allowed step is a fall."""
        rollout, robots = self._rollout, np.flatnonzero(info["_final_obs"])
        final = np.stack(info["final_obs"][robots])
        rollout.next_observation[t, robots] = final
        situation = Situation(final, info["final_info"]["distance"][robots], self.episode_step[robots])
        rollout.next_outside[t, robots] = self.mixed.intervention.takes_over(situation, progress)
        self.open = self.open & ~(rollout.terminated[t] | rollout.truncated[t])
        rollout.truncated[t] &= ~rollout.terminated[t]
        self.episode_step[robots] = 0

    def _look_ahead(self, progress: float) -> None:
        """Fill in what the next step tells about this one, where the episode goes on."""
        rollout = self._rollout
        goes_on = ~(rollout.terminated | rollout.truncated)
        outside = self.mixed.intervention.takes_over(self._situation(), progress)
        shift(rollout.next_observation, rollout.observation, self.observation, goes_on[..., None])
        shift(rollout.next_outside, rollout.recovering, outside, goes_on)

    @property
    def executed(self) -> np.ndarray:
        """[T, E, m] what the robots were sent in the last rollout, before the bounds."""
        return self._rollout.action

    def get_state(self) -> dict[str, np.ndarray]:
        """Where the robots are: everything that the next rollout depends on."""
        own = {
            "observation": self.observation,
            "distance_bits": self.distance.view(np.int64),  # NaN, outside every region, may be saved too
            "step": self.episode_step,
            "open": self.open,
        }
        world = {f"world/{name}": array for name, array in self.env.get_state().items()}
        recovery = self.mixed.recovery
        memory = recovery.get_state() if recovery is not None else {}
        return own | world | {f"recovery/{name}": array for name, array in memory.items()}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        """Go on from a state taken by `get_state`; False where the environment could only begin new episodes."""
        if self.mixed.recovery is not None:
            self.mixed.recovery.set_state(under("recovery/", state))
        if self.env.set_state(under("world/", state)) is False:
            return False
        self.observation, self.distance = state["observation"], state["distance_bits"].view(np.float64)
        self.episode_step, self.open = state["step"].copy(), state["open"]
        return True


def shift(following: np.ndarray, now: np.ndarray, last: np.ndarray, where: np.ndarray) -> None:
    """following[t] = now[t + 1], and `last` at the end."""
    np.copyto(following[:-1], now[1:], where=where[:-1])
    np.copyto(following[-1], last, where=where[-1])
