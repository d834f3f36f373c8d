"""Takeovers that the environment itself reports: a human's, a teleoperation stack's, a robot's own safety layer.

A step on which someone else's action was executed is a recovery step, whoever it was. Stacks name it differently:

    intervention      executed_action       ours
    is_intervention   action_intervention   gym-hil until 0.1.13, LeRobot
    is_intervention   teleop_action         gym-hil from 0.1.14
    intervene_flag    intervene_action      teleoperation wrappers
    (none)            intervene_action      HIL-SERL: the key is there only while someone intervenes

The masked gradient is unbiased if the takeover depends on the state and not on the action that the policy proposed
(Theorem 1). A person who reacts to what the policy is about to do breaks that a little; one who reacts to where the
robot is does not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from safeexplorer.acting.interventions import Situation
from safeexplorer.acting.mixed import MixedPolicy

FLAGS = ("intervention", "is_intervention", "intervene_flag")
ACTIONS = ("executed_action", "action_intervention", "teleop_action", "intervene_action")


class Takeover(NamedTuple):
    """Who was taken over in the step just made."""

    flag: np.ndarray  # [E] bool
    action: np.ndarray  # [E, ...] what was executed there; anything elsewhere


def speaks(info: dict[str, Any]) -> bool:
    """Does this `info` report a takeover, in any of the dialects?"""
    return any(key in info for key in (*FLAGS, "intervene_action"))


def takeover_of(info: dict[str, Any], count: int) -> Takeover:
    """The takeovers in the `info` of a vector environment of `count` robots that `speaks`."""
    name = next((key for key in FLAGS if key in info), None)
    source = next((key for key in ACTIONS if key in info), None)
    reported = info.get(f"_{name or source}", np.ones(count, bool))
    flag = np.asarray(reported, bool) & (np.asarray(info[name], bool) if name else True)
    if source is None:
        if flag.any():
            raise ValueError(
                f"info[{name!r}] reports a takeover without its action; allowed: {', '.join(ACTIONS)}"
            )
        return Takeover(flag, np.zeros(count))
    return Takeover(flag, _rows(info[source], flag))


def _rows(actions: Any, flag: np.ndarray) -> np.ndarray:
    """Stack what may be an object array with nothing in the rows of robots that nobody took over."""
    size = next((np.shape(actions[i]) for i in np.flatnonzero(flag)), ())
    rows = np.zeros((len(flag), *size))
    for i in np.flatnonzero(flag):
        rows[i] = actions[i]
    return rows


class ReportTakeovers(gymnasium.Wrapper):
    """One environment whose takeovers, in whatever dialect, are also reported as `intervention` and
    `executed_action`."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        *step, info = self.env.step(action)
        flag, executed = False, action
        if speaks(info):
            batched = {key: [value] for key, value in info.items() if key in (*FLAGS, *ACTIONS)}
            takeover = takeover_of(batched, 1)
            flag = bool(takeover.flag[0])
            executed = takeover.action[0] if flag else action
        return *step, info | {"intervention": flag, "executed_action": executed}


class Controller(NamedTuple):
    """A function of observations [k, n] as a recovery."""

    act: Callable[[np.ndarray], np.ndarray]


class RecoveryWrapper(gymnasium.Wrapper):
    """One environment in which a recovery acts outside a region, for use with any library.

    `info` says what happened: `intervention` (did the recovery act), `proposed_action`, `executed_action` and
    `segment` (the number of the recovery segment in this episode, -1 while the policy acts).
    """

    def __init__(
        self,
        env: gymnasium.Env,
        recovery: Any,
        intervention: Any,
        distance: Any = None,
        progress: float = 0.0,
    ):
        super().__init__(env)
        self.mixed, self.distance = MixedPolicy(intervention, Controller(recovery)), distance
        self.progress = progress  # of the curriculum, in [0, 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._segment, self._recovering = -1, False
        self._situation = self._look(observation, info, np.zeros(1, np.int64))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        acted = self.mixed.act(self._situation, np.asarray(action)[None], self.progress, rng=None)
        recovering = bool(acted.recovering[0])
        self._segment += recovering and not self._recovering
        self._recovering = recovering
        executed = acted.action[0] if recovering else action
        observation, *rest, info = self.env.step(executed)
        self._situation = self._look(observation, info, self._situation.step + 1)
        ours = {"intervention": recovering, "proposed_action": action, "executed_action": executed}
        return observation, *rest, info | ours | {"segment": self._segment if recovering else -1}

    def _look(self, observation: Any, info: dict[str, Any], step: np.ndarray) -> Situation:
        rows = np.asarray(observation)[None]
        if callable(self.distance):
            distance = np.asarray(self.distance(rows), np.float64)
        else:
            distance = np.array([info.get(self.distance or "distance", np.nan)], np.float64)
        return Situation(rows, distance, step)
