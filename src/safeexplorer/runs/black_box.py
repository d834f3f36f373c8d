"""The last two seconds before a fall."""

from pathlib import Path

import numpy as np

from safeexplorer.acting.accounting import Episode
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.writing import replacing, sweep
from safeexplorer.runs.exits import Recorded

LEAD_SECONDS = 2.0
UNKNOWN_RATE = 50  # steps per second of an environment that does not say its own


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
        sweep(folder)

    def before_step(self, step: int) -> None:
        """Note the pose in which this step begins."""
        self._poses[self.lead + step] = self._pose()

    def finish(self, rollout: Rollout, episodes: list[Episode], radius: float | None) -> None:
        """Save the falls of a rollout, then keep its last two seconds for the next."""
        self.history["action"][self.lead :] = rollout.action
        self.history["recovering"][self.lead :] = rollout.recovering
        there = np.isfinite(rollout.distance)
        self.history["distance"][self.lead :] = np.where(there, rollout.distance, -1.0)
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
        with replacing(self._path(number), on_disk=False) as file:
            np.savez(file, **window, **facts)

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
        for path in self.folder.glob("[0-9]*.npz"):
            if path.stem.isdecimal() and int(path.stem) > self.count:
                path.unlink()
