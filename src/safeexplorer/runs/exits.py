"""The states in which a run left the region: a bounded sample, from which the recovery can be replayed."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from safeexplorer.files.reading import read_json
from safeexplorer.files.tables import BEGINNING, Growing, Mark
from safeexplorer.files.writing import write_text
from safeexplorer.runs.seals import check_seals


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


class ExitLog(Growing):
    """A bounded sample of first exits from the region: so many per update, uniformly (reservoir sampling).

    `exits.bin` holds records of the type described in `exits.json`: update, step, robot, radius and the full
    simulator state, from which the recovery can be replayed (the observation, where states cannot be taken).
    """

    HEAD = [("update", "<i8"), ("step", "<i8"), ("robot", "<i8"), ("radius", "<f8")]

    def __init__(self, folder: Path, env: Recorded, per_update: int, mark: Mark = BEGINNING):
        self.env, self.per_update = env, per_update
        state = [(k, v.dtype.str, v.shape[1:]) for k, v in env.snapshot([0]).items()]
        self.dtype = np.dtype([*self.HEAD, *((f"state/{name}", kind, shape) for name, kind, shape in state)])
        description = [
            [name, self.dtype[name].base.str, list(self.dtype[name].shape)] for name in self.dtype.names
        ]
        write_text(folder / "exits.json", json.dumps(description))
        super().__init__(folder / "exits.bin", mark)

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
        self.write(self.kept[: min(self.seen, self.per_update)].tobytes())


def read_exits(folder: Path) -> np.ndarray:
    """The records of an `ExitLog`, as they were saved."""
    check_seals(folder, ["exits"])
    path = folder / "exits.json"
    description = read_json(path, list)
    try:
        dtype = np.dtype([(name, kind, tuple(shape)) for name, kind, shape in description])
    except (ValueError, TypeError, SyntaxError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if dtype.hasobject or dtype.descr[: len(ExitLog.HEAD)] != ExitLog.HEAD:
        raise ValueError(f"{path} is damaged: it does not begin with {[name for name, _ in ExitLog.HEAD]}")
    return np.fromfile(folder / "exits.bin", dtype)


def exit_states(records: np.ndarray) -> dict[str, np.ndarray]:
    """The simulator states of exit records, ready for `Simulation.set_state`."""
    names = [name for name in records.dtype.names if name.startswith("state/")]
    return {name.removeprefix("state/"): np.ascontiguousarray(records[name]) for name in names}
