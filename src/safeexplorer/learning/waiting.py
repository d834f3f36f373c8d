"""The outcome gate that waits: recovery steps whose segment the rollout's end cut are imitated once it is known to
have ended well, and never if it ended in a fall."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from safeexplorer.acting.trajectory import Rollout

NOBODY, RELEASED = -1, -2


class Rows(NamedTuple):
    """Steps to imitate, [k, ...]; rows of weight 0 are padding."""

    observation: np.ndarray
    action: np.ndarray
    weight: np.ndarray


class WaitingRows:
    """Steps without an outcome, each with its robot, and steps that have one and are still to be learned from.

    There is room for `capacity` of them, the oldest first; the oldest give way to new ones and are never imitated.
    """

    def __init__(self, capacity: int, observation_size: int, action_size: int):
        self.observation = np.zeros((capacity, observation_size), np.float32)
        self.action = np.zeros((capacity, action_size), np.float32)
        self.owner = np.full(capacity, NOBODY, np.int64)  # the robot, RELEASED or NOBODY

    def hold_back(self, rollout: Rollout) -> Rollout:
        """The rollout with `undecided` filled in; steps of earlier rollouts are decided by what it shows."""
        ended = rollout.terminated | rollout.truncated
        undecided = np.zeros_like(rollout.recovering)
        for robot in range(ended.shape[1]):
            recovering, over = rollout.recovering[:, robot], ended[:, robot]
            stops = np.flatnonzero(~recovering | over)
            cut = not len(stops) or (recovering[-1] and not over[-1])
            back = cut and not rollout.next_outside[-1, robot]  # the rollout shows the re-entry and no more
            if len(stops):
                self._decide(robot, fell=bool((recovering & rollout.fell[:, robot])[stops[0]]))
            elif back:
                self._decide(robot, fell=False)
            if cut and not back:
                undecided[stops[-1] + 1 if len(stops) else 0 :, robot] = True
        self._keep(rollout, undecided)
        return rollout._replace(undecided=undecided)

    def _decide(self, robot: int, fell: bool) -> None:
        self.owner[self.owner == robot] = NOBODY if fell else RELEASED

    def _keep(self, rollout: Rollout, undecided: np.ndarray) -> None:
        steps, robots = np.nonzero(undecided)
        used, capacity = self.owner != NOBODY, len(self.owner)
        for name, new in (
            ("observation", rollout.observation[steps, robots]),
            ("action", rollout.action[steps, robots]),
            ("owner", robots),
        ):
            old = getattr(self, name)
            kept = np.concatenate([old[used], new])[-capacity:]
            empty = np.full(
                (capacity - len(kept), *old.shape[1:]), NOBODY if name == "owner" else 0, old.dtype
            )
            setattr(self, name, np.concatenate([empty, kept.astype(old.dtype)]))

    def release(self, count: int) -> Rows:
        """Up to `count` of the oldest steps that ended well, filled up to `count` with padding."""
        chosen = np.flatnonzero(self.owner == RELEASED)[:count]
        weight = np.zeros(count, np.float32)
        weight[: len(chosen)] = 1.0
        self.owner[chosen] = NOBODY
        rows = np.append(chosen, np.zeros(count - len(chosen), np.int64))
        return Rows(self.observation[rows], self.action[rows], weight)

    @property
    def waiting(self) -> int:
        """How many steps have no outcome yet."""
        return int((self.owner >= 0).sum())

    def cut(self) -> None:
        """New episodes begin everywhere: what is open will never have an outcome."""
        self.owner[self.owner >= 0] = NOBODY

    def get_state(self) -> dict[str, np.ndarray]:
        return {"observation": self.observation, "action": self.action, "owner": self.owner.copy()}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        if state["owner"].shape != self.owner.shape:  # they are other robots
            return
        self.observation, self.action = state["observation"].copy(), state["action"].copy()
        self.owner = state["owner"].copy()
