"""Rollouts from one physical robot, in the shape that the simulated ones have."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from safeexplorer.acting.collector import Observer
from safeexplorer.acting.copying import Rehearsal
from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.acting.trajectory import Rollout, blank_rollout
from safeexplorer.realtime.loop import RobotLoop
from safeexplorer.realtime.rows import Policy, Rows

RECORDED = ("observation", "next_observation", "distance", "terminated", "truncated", "recovering")


class RobotCollector:
    """What `acting.collector.Collector` is to E simulated robots, for one real one.

    Each rollout is whole in itself: its first row begins an episode, its last row ends one. Between rollouts the
    recovery holds the robot. A row in which anyone but the policy acted, for whatever reason, is a recovery row.
    The observer is told afterwards, row by row; `observation`, `distance` and `episode_step` are those of the row then.
    """

    num_envs, pose_name = 1, "observation"
    physical = True  # it does what the recovery or the policy says, nothing in between

    def __init__(self, loop: RobotLoop, rollout_steps: int, observer: Observer | None = None):
        if not (isinstance(rollout_steps, int) and rollout_steps > 0):
            raise ValueError(f"rollout_steps is {rollout_steps!r}; allowed: a positive whole number")
        self.loop, self.rollout_steps, self.observer = loop, rollout_steps, observer
        self.mixed = MixedPolicy(loop.pilot.intervention, loop.pilot.recovery)
        self.single_observation_space = loop.hardware.observation_space
        self.single_action_space = loop.hardware.action_space
        self.metadata = {"render_fps": round(loop.rate)}
        self.executed = np.zeros((rollout_steps, 1, loop.sizes[1]), np.float32)  # [T, 1, m] the commands sent
        self.asked_to_stop: threading.Event | None = None  # of the run that collects
        self.rehearsal = Rehearsal()
        self.reset(0)

    def under(self, intervention: Intervention) -> RobotCollector:
        """The same collector, who acts being decided by `intervention` from now on."""
        self.loop.pilot.intervention = intervention
        self.mixed = self.mixed._replace(intervention=intervention)
        return self

    def reset(self, seed: int) -> None:
        """Nothing to do: every rollout begins an episode, and no seed moves a robot."""
        self.observation, self.distance = np.zeros((1, self.loop.sizes[0]), np.float32), np.full(1, np.nan)
        self.episode_step, self.open = np.zeros(1, np.int64), np.zeros(1, bool)

    def arm(self, params: Params) -> None:
        """Arm the loop, the robot being upright and the policy's mean having been tried on the first reading."""
        self.loop.await_upright()
        self.loop.arm(self._policy(params, np.zeros((1, self.loop.sizes[1]), np.float32)))

    def collect(self, params: Params, progress: float, rng: np.random.Generator) -> Rollout:
        """T rows under the mixed policy; blocks while the robot moves. `params` are numpy arrays."""
        noise, (_, radius, share) = draw_noise(params, (self.rollout_steps,), rng), self.rehearsal
        policy = self._policy(params, np.float32(share) * noise if radius else noise)
        within = {"within": radius} if radius else {}  # the copy of the recovery is tried
        rows = self.loop.record(policy, self.rollout_steps, progress, self.asked_to_stop, **within)
        self.executed = rows.sent[:, None]
        self._tell(rows)
        proposed, recovering = propose(params, rows.observation, noise), rows.recovering[:, None]
        usable = np.isfinite(proposed).all(1, keepdims=True)
        columns = {name: getattr(rows, name) for name in RECORDED} | {
            "proposed": np.where(recovering, np.where(usable, proposed, rows.sent), rows.sample),
            "action": np.where(
                recovering, np.where(np.isnan(rows.advice), rows.sent, rows.advice), rows.sample
            ),
            "task_reward": self._rewards(rows),
            "next_outside": self._next_outside(rows),
        }
        return self.blank()._replace(**{name: column[:, None] for name, column in columns.items()})

    def blank(self) -> Rollout:
        """A rollout in which nothing happened, to compile the learner with before the robot is armed."""
        return blank_rollout((self.rollout_steps, 1), *self.loop.sizes)

    @staticmethod
    def _policy(params: Params, noise: np.ndarray) -> Policy:
        """mean(s) + sigma * noise of the row, [n] -> [m]."""
        return lambda observation, row: propose(params, observation[None], noise[row])[0]

    def _tell(self, rows: Rows) -> None:
        if self.observer is None:
            return
        ended, open_before = rows.terminated | rows.truncated, False
        for t in range(self.rollout_steps):
            self.observation, self.distance = rows.observation[t : t + 1], rows.distance[t : t + 1]
            self.episode_step = rows.step[t : t + 1]
            self.observer.before_step(t)
            if rows.recovering[t] and not open_before:
                self.observer.on_exit(t, np.array([0]))
            open_before = rows.recovering[t] and not ended[t]

    def _next_outside(self, rows: Rows) -> np.ndarray:
        """Who acted next; at the end of an episode, who would have."""
        ended = rows.terminated | rows.truncated
        outside = np.append(rows.recovering[1:], False)
        final, measure = rows.next_observation[ended], self.loop.pilot.distance
        distance = np.full(len(final), np.nan) if measure is None else np.asarray(measure(final), float)
        situation = Situation(final, distance, rows.step[ended] + 1)
        outside[ended] = self.mixed.intervention.takes_over(situation, rows.progress)
        return outside

    def _rewards(self, rows: Rows) -> np.ndarray:
        steps = zip(rows.observation, rows.sent, rows.next_observation, strict=True)
        reward = np.array([self.loop.hardware.reward(*step) for step in steps], float)
        if not np.isfinite(reward).all():
            t = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise ValueError(f"hardware.reward of row {t} is {reward[t]}; allowed: a finite number")
        return reward

    # -- records ---------------------------------------------------------------------------------------------

    def snapshot(self, ids: Sequence[int]) -> dict[str, np.ndarray]:
        """What is written down about an exit."""
        return {"observation": self.observation}

    def pose(self) -> np.ndarray:
        """What the black box keeps of an instant."""
        return self.observation

    # -- resuming --------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, np.ndarray]:
        """Nothing: a run goes on between episodes only, from wherever the robot then is."""
        return {}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        """Go on with a new episode: the one in hand cannot be put back."""
        self.reset(0)
        return False
