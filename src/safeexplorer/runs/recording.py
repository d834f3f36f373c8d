"""What a run writes down besides checkpoints. Every file is append-only or replaced whole, and its length is
part of the checkpoint, so that a resumed run continues it exactly."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from safeexplorer.acting.accounting import Episode
from safeexplorer.acting.trajectory import Rollout

LEAD_SECONDS = 2.0
UNKNOWN_RATE = 50  # steps per second of an environment that does not say its own


class Recorded(Protocol):
    """What the records ask of the environment: the built-in robots give their whole state, others what they show."""

    num_envs: int
    metadata: dict[str, Any]
    pose_name: str

    def snapshot(self, ids: Sequence[int]) -> dict[str, np.ndarray]:
        """Rows that describe robots `ids` now."""
        ...

    def pose(self) -> np.ndarray:
        """[E, k] how the robots look now."""
        ...


class ExitLog:
    """A bounded sample of first exits from the region: so many per update, uniformly (reservoir sampling).

    `exits.bin` holds records of the type described in `exits.json`: update, step, robot, radius and the full
    simulator state, from which the recovery can be replayed (the observation, where states cannot be taken).
    """

    HEAD = [("update", "<i8"), ("step", "<i8"), ("robot", "<i8"), ("radius", "<f8")]

    def __init__(self, folder: Path, env: Recorded, per_update: int, offset: int = 0):
        self.env, self.per_update = env, per_update
        state = [(k, v.dtype.str, v.shape[1:]) for k, v in env.snapshot([0]).items()]
        self.dtype = np.dtype([*self.HEAD, *((f"state/{name}", kind, shape) for name, kind, shape in state)])
        description = [
            [name, self.dtype[name].base.str, list(self.dtype[name].shape)] for name in self.dtype.names
        ]
        (folder / "exits.json").write_text(json.dumps(description))
        self._file = open(folder / "exits.bin", "ab")
        self._file.truncate(offset)
        self._file.seek(offset)

    def begin(self, update: int, radius: float | None, rng: np.random.Generator) -> None:
        """Start the sample of one update; an intervention without a radius has NaN."""
        self.update, self.radius, self.rng = update, np.nan if radius is None else radius, rng
        self.seen, self.kept = 0, np.zeros(self.per_update, self.dtype)
        self._next = 0 if self.per_update else math.inf  # which exit will be kept next, counted from 0
        self._chance = 1.0  # of any exit after the first ones to be kept

    def on_exit(self, step: int, robots: np.ndarray) -> None:
        """Keep the first exits, then each with the probability that makes the sample uniform."""
        before, self.seen = self.seen, self.seen + len(robots)
        while self._next < self.seen:
            full = self._next >= self.per_update
            place = int(self.rng.integers(self.per_update)) if full else self._next
            self.kept[place] = self._record(step, robots[self._next - before])
            self._next += self._gap()

    def _gap(self) -> int:
        """How many exits on the next one to keep is (Li's algorithm L): most exits then cost a comparison."""
        if self._next + 1 < self.per_update:
            return 1
        self._chance *= (1.0 - self.rng.random()) ** (1.0 / self.per_update)
        return int(self.rng.geometric(self._chance))

    def _record(self, step: int, robot: int) -> tuple:
        state = self.env.snapshot([robot])
        return (self.update, step, robot, self.radius, *(array[0] for array in state.values()))

    def finish(self) -> None:
        """Write the sample of this update."""
        self._file.write(self.kept[: min(self.seen, self.per_update)].tobytes())

    def offset(self) -> int:
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_exits(folder: Path) -> np.ndarray:
    """The records of an `ExitLog`."""
    description = json.loads((folder / "exits.json").read_text())
    dtype = np.dtype([(name, kind, tuple(shape)) for name, kind, shape in description])
    return np.fromfile(folder / "exits.bin", dtype)


def exit_states(records: np.ndarray) -> dict[str, np.ndarray]:
    """The simulator states of exit records, ready for `Simulation.set_state`."""
    names = [name for name in records.dtype.names if name.startswith("state/")]
    return {name.removeprefix("state/"): np.ascontiguousarray(records[name]) for name in names}


class BlackBox:
    """The last two seconds before each fall: poses (or observations), actions, who acted and the distance, as
    `falls/<n>.npz`.

    The first `kept` falls and the latest `kept` are on disk; what lies between is dropped.
    """

    def __init__(self, folder: Path, env: Recorded, action_size: int, rollout_steps: int, kept: int):
        self.folder, self.kept = folder, kept
        self.rate = env.metadata.get("render_fps") or UNKNOWN_RATE
        self.lead = round(LEAD_SECONDS * self.rate)
        shape = (self.lead + rollout_steps, env.num_envs)
        self.history = {
            env.pose_name: np.zeros((*shape, env.pose().shape[1])),
            "action": np.zeros((*shape, action_size), np.float32),
            "recovering": np.zeros(shape, bool),
            "distance": np.zeros(shape),
        }
        self._pose, self._poses = env.pose, self.history[env.pose_name]
        self.count = 0
        folder.mkdir(exist_ok=True)

    def before_step(self, step: int) -> None:
        """Note the pose in which this step begins."""
        self._poses[self.lead + step] = self._pose()

    def finish(
        self, rollout: Rollout, distances: np.ndarray, episodes: list[Episode], radius: float | None
    ) -> None:
        """Save the falls of a rollout, then keep its last two seconds for the next."""
        for name, array in (
            ("action", rollout.action),
            ("recovering", rollout.recovering),
            ("distance", np.where(np.isnan(distances), -1.0, distances)),  # -1: there is none
        ):
            self.history[name][self.lead :] = array
        fallen = [episode for episode in episodes if episode.fell]
        for number, episode in enumerate(fallen, start=self.count + 1):
            if number <= self.kept or number > self.count + len(fallen) - self.kept:  # else dropped at once
                self._save(number, episode, radius)
        self._drop_old(self.count + len(fallen))
        for array in self.history.values():
            array[: self.lead] = array[-self.lead :].copy()

    def _save(self, number: int, episode: Episode, radius: float | None) -> None:
        end = self.lead + episode.step + 1
        steps = slice(end - min(self.lead, episode.length), end)
        window = {name: array[steps, episode.robot] for name, array in self.history.items()}
        edge = np.nan if radius is None else radius
        facts = {"update": episode.update, "robot": episode.robot, "radius": edge, "rate": self.rate}
        np.savez(self._path(number), **window, **facts)

    def _drop_old(self, count: int) -> None:
        """Remove what is neither among the first falls nor, with `count` falls in all, among the latest."""
        for number in range(max(self.count - self.kept, self.kept) + 1, count - self.kept + 1):
            self._path(number).unlink(missing_ok=True)
        self.count = count

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.npz"

    def get_state(self) -> dict[str, np.ndarray]:
        """The two seconds that a fall early in the next rollout will need."""
        tail = {name: array[: self.lead] for name, array in self.history.items()}
        return tail | {"count": np.array(self.count)}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from `get_state`; falls saved after it are removed, they will happen again."""
        self.count = int(state["count"])
        for name, array in self.history.items():
            array[: self.lead] = state[name]
        for path in self.folder.glob("*.npz"):
            if int(path.stem) > self.count:
                path.unlink()


class Recorder:
    """Looks on during a rollout on behalf of the exit log, the black box and, if there is one, the re-roller."""

    def __init__(
        self, exits: ExitLog, black_box: BlackBox, note: Callable[[int, np.ndarray], None] | None = None
    ):
        self.exits, self.note = exits, note
        self.before_step = black_box.before_step

    def on_exit(self, step: int, robots: np.ndarray) -> None:
        self.exits.on_exit(step, robots)
        if self.note is not None:
            self.note(step, robots)
