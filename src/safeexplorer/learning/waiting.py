"""The outcome gate that waits: recovery steps whose segment the rollout's end cut are imitated once it is known to
have ended well, and never if it ended in a fall. Everything has a fixed size, so that it works in numpy and in JAX
alike: `xp` is the array module."""

from typing import Any, NamedTuple

import numpy as np

from safeexplorer.acting.trajectory import Rollout

NOBODY, RELEASED = -1, -2


class Rows(NamedTuple):
    """Steps to imitate, [k, ...]; rows of weight 0 are padding."""

    observation: Any
    action: Any
    weight: Any


class Waiting(NamedTuple):
    """Steps without an outcome, each with its robot, and steps that have one and are still to be learned from.

    There is room for so many, the oldest first; the oldest give way to new ones and are never imitated.
    """

    observation: Any  # [k, n]
    action: Any  # [k, m]
    owner: Any  # [k] the robot, RELEASED or NOBODY


def nothing_waits(capacity: int, observation_size: int, action_size: int) -> Waiting:
    """An empty room."""
    rows = (np.zeros((capacity, size), np.float32) for size in (observation_size, action_size))
    return Waiting(*rows, np.full(capacity, NOBODY, np.int64))


def hold_back(waiting: Waiting, rollout: Rollout, xp: Any = np) -> tuple[Waiting, Any]:
    """Steps of earlier rollouts are decided by what this one shows; its own that have no outcome yet, [T, E], wait."""
    recovering, ended = rollout.recovering, rollout.terminated | rollout.truncated
    stops = ~recovering | ended  # where whatever was open has an end
    stopped, first = stops.any(0), stops.argmax(0)
    cut = recovering[-1] & ~ended[-1]
    back = cut & ~rollout.next_outside[-1]  # the rollout shows the re-entry and no more
    fell = stopped & xp.take_along_axis(recovering & rollout.fell, first[None], 0)[0]
    verdict = xp.where(fell, NOBODY, xp.where(stopped | back, RELEASED, xp.arange(len(cut))))
    owner = xp.where(waiting.owner >= 0, verdict[waiting.owner], waiting.owner)
    stops_later = xp.flip(xp.cumsum(xp.flip(stops, 0), 0), 0) > 0
    undecided = ~stops_later & cut & ~back
    return kept(waiting._replace(owner=owner), rollout, undecided, xp), undecided


def kept(waiting: Waiting, rollout: Rollout, undecided: Any, xp: Any = np) -> Waiting:
    """What waits, and behind it what has no outcome yet, as far as there is room: the newest."""
    robots = xp.broadcast_to(xp.arange(undecided.shape[1]), undecided.shape)
    new = xp.where(undecided, robots, NOBODY)
    size = waiting.observation.shape[1]
    observation, action = rollout.observation[..., :size], rollout.action
    fresh = (observation, action, new.astype(waiting.owner.dtype))
    rows = [
        xp.concatenate([old, x.reshape(-1, *old.shape[1:])]) for old, x in zip(waiting, fresh, strict=True)
    ]
    order = xp.argsort(rows[-1] != NOBODY, stable=True)[-len(waiting.owner) :]
    return Waiting(*(x[order] for x in rows))


def release(waiting: Waiting, count: int, xp: Any = np) -> tuple[Waiting, Rows]:
    """Up to `count` of the oldest steps that ended well, filled up to `count` with padding."""
    good = waiting.owner == RELEASED
    rank = xp.cumsum(good)
    chosen = xp.argsort(~good, stable=True)[np.arange(count) % len(good)]
    weight = (np.arange(count) < rank[-1]).astype(np.float32)
    rows = Rows(waiting.observation[chosen], waiting.action[chosen], weight)
    owner = xp.where(good & (rank <= count), NOBODY, waiting.owner)
    return waiting._replace(owner=owner), rows


class WaitingRows:
    """The room of a learner on the host."""

    def __init__(self, capacity: int, observation_size: int, action_size: int):
        self.rows = nothing_waits(capacity, observation_size, action_size)

    def hold_back(self, rollout: Rollout) -> Rollout:
        """The rollout with `undecided` filled in; steps of earlier rollouts are decided by what it shows."""
        self.rows, undecided = hold_back(self.rows, rollout)
        return rollout._replace(undecided=undecided)

    def release(self, count: int) -> Rows:
        """Up to `count` of the oldest steps that ended well, filled up to `count` with padding."""
        self.rows, rows = release(self.rows, count)
        return rows

    @property
    def waiting(self) -> int:
        """How many steps have no outcome yet."""
        return int((self.rows.owner >= 0).sum())

    def cut(self) -> None:
        """New episodes begin everywhere: what is open will never have an outcome."""
        self.rows = self.rows._replace(owner=np.minimum(self.rows.owner, NOBODY))

    def get_state(self) -> dict[str, np.ndarray]:
        return self.rows._asdict()

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        if state["owner"].shape == self.rows.owner.shape:  # else they are other robots
            self.rows = Waiting(**state)
