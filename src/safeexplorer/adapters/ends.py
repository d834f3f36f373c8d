"""How an episode ended for good: by a fall, or because the task was done."""

from collections.abc import Callable
from typing import Any

import numpy as np

from safeexplorer.files.console import notice

SUCCESS = ("is_success", "success")  # keys of `info` that others use
NOT = "not "
ENOUGH = 100  # steps, after which a reward can be called unusual


class Ends:
    """Which terminations are falls.

    `fell` is a function of one robot's last (observation, info), a key of `info` such as "crashed", or a key with
    "not " before it, such as "not is_success". None: every termination is one, and a notice says so where `info` or
    the reward speaks of success.
    """

    def __init__(self, fell: Callable[[np.ndarray, dict[str, Any]], bool] | str | None):
        if fell is not None and not callable(fell) and not (isinstance(fell, str) and fell.removeprefix(NOT)):
            raise ValueError(
                f"fell is {fell!r}; allowed: a function of (observation, info), a key of info, "
                f"or {NOT + SUCCESS[0]!r}"
            )
        self.fell, self.noticed = fell, False
        self.steps, self.worst, self.best = 0, np.inf, -np.inf  # rewards of steps that ended nothing

    def watch(self, reward: np.ndarray, terminated: np.ndarray) -> None:
        """A last reward above the best before by the whole range of those before is that of a goal, not of a fall."""
        if self.fell is not None or self.noticed:
            return
        last, others = reward[terminated], reward[~terminated]
        if len(last) and self.steps >= ENOUGH and last.max() > 2 * self.best - self.worst:
            self._say(
                f"a reward of {last.max() + 0.0:g}, far above all before,",
                "fell=, a function of (observation, info)",
            )
        if len(others):
            self.steps += len(others)
            self.worst, self.best = min(self.worst, others.min()), max(self.best, others.max())

    def reached(self, terminated: np.ndarray, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """[E] bool: terminated, but not by a fall."""
        reached = np.zeros(len(terminated), bool)
        for robot in np.flatnonzero(terminated):
            reached[robot] = not self._fell(observation[robot], info_of(info, robot))
        return reached

    def _fell(self, observation: np.ndarray, info: dict[str, Any]) -> bool:
        if callable(self.fell):
            return bool(self.fell(observation, info))
        if self.fell is None:
            self._notice(info)
            return True
        key = self.fell.removeprefix(NOT)
        if key not in info:
            known = ", ".join(sorted(info)) or "nothing"
            raise ValueError(f"fell is {self.fell!r}; info of a terminated episode has: {known}")
        return bool(info[key]) != self.fell.startswith(NOT)

    def _notice(self, info: dict[str, Any]) -> None:
        said = next((key for key in SUCCESS if info.get(key)), None)
        if said is not None and not self.noticed:
            self._say(f"info[{said!r}] true", f"fell={NOT + said!r}")

    def _say(self, sign: str, remedy: str) -> None:
        self.noticed = True
        notice(
            f"an episode terminated with {sign} and is counted as a fall; if it is a success, say so with {remedy}"
        )


def info_of(info: dict[str, Any], robot: int) -> dict[str, Any]:
    """What the `info` of a vector environment tells of one robot."""
    mine = {}
    for key, values in info.items():
        told = info.get(f"_{key}")
        if key.startswith("_") or (told is not None and not told[robot]):
            continue
        if isinstance(values, dict):
            mine[key] = info_of(values, robot)
        elif isinstance(values, np.ndarray | list | tuple) and robot < len(values):
            mine[key] = values[robot]
    return mine
