"""A user's recorded rollouts: an `.npz` of arrays [T, E, ...], or [T, ...] for one robot, as a `Rollout`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.adapters import takeovers as dialects
from safeexplorer.files.archives import read_npz
from safeexplorer.runs.policies import policy_from_arrays

REQUIRED = {
    "observation": "[T, E, n] what the robot saw",
    "action": "[T, E, m] what was executed",
    "reward": "[T, E] the task's own reward",
    "terminated": "[T, E] bool, a fall",
    "truncated": "[T, E] bool, the time limit",
    "intervention": "[T, E] bool, the recovery acted",
}
OPTIONAL = {
    "proposed": "[T, E, m] the policy's own sample, at every step",
    "next_observation": "[T, E, n] the observation after the step",
    "distance": "[T, E] D(s), where a threshold on it is the trigger",
    "recovery_log_density": "[T, E] log mu(a | s) of a sampled recovery",
    "log_prob": "[T, E] log pi(a | s) of the executed action",
}
POLICY = "policy/"  # before the names of a policy's weights
# Other recorders' names.
PLURALS = {f"{name}s": name for name in ("observation", "action", "reward", "next_observation")}
FLAGS = (*dialects.FLAGS, "intervene_flags")
TAKEOVERS = ("intervene_action", "intervene_actions", "action_intervention")


class Recording(NamedTuple):
    """A rollout from a file; what was not recorded is None."""

    rollout: Rollout  # its `distance`, `proposed` and `recovery_log_density` may be None
    log_prob: np.ndarray | None
    params: Params | None
    notes: tuple[str, ...]  # what was assumed


def read_recording(path: Path) -> Recording:
    """Check every array of a file and put them together."""
    file = RecordingFile(path)
    observation = file.vectors("observation")
    recovering, action, proposed = who_acted(file)
    terminated = file.flags("terminated")
    truncated = file.flags("truncated") & ~terminated
    ended = terminated | truncated
    next_observation, notes = what_followed(file, observation, ended)
    rollout = Rollout(
        observation=observation,
        next_observation=next_observation,
        distance=file.steps("distance", optional=True, nan=True),
        proposed=proposed,
        action=action if proposed is None else np.where(recovering[..., None], action, proposed),
        task_reward=file.steps("reward"),
        terminated=terminated,
        truncated=truncated,
        recovering=recovering,
        # No step follows that tells on which side an episode's last state lies; the one before stands in.
        next_outside=np.where(ended, recovering, np.concatenate([recovering[1:], recovering[-1:]])),
        recovery_log_density=file.steps("recovery_log_density", optional=True),
    )
    log_prob = file.steps("log_prob", optional=True)
    params, unused = file.policy(), file.unused()
    if unused:
        notes = (*notes, f"arrays not used: {', '.join(unused)}")
    return Recording(rollout, log_prob, params, notes)


def who_acted(file: RecordingFile) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Where the recovery acted, what was executed, and what the policy had proposed (None: not recorded).

    With a takeover array, `action` may hold what was executed or what was asked for: if it differs from the takeover
    anywhere, it is the policy's own. Without a flag, rows of NaN are those where nobody took over.
    """
    flag, takeover = file.first(FLAGS), file.first(TAKEOVERS)
    action = file.vectors("action")
    proposed = file.vectors("proposed", action.shape[-1]) if file.has("proposed") else None
    if flag is None and takeover is None:
        raise file.error("intervention", "is missing", f"one of {', '.join((*FLAGS, *TAKEOVERS))}")
    recovering = None if flag is None else file.flags(flag)
    if takeover is None:
        return recovering, action, proposed
    taken = file.vectors(takeover, action.shape[-1], nan=True)
    if recovering is None:
        recovering = ~np.isnan(taken).all(-1)
    if np.isnan(taken[recovering]).any():
        raise file.error(takeover, "holds NaN where the recovery acted", "a whole action there")
    executed = np.where(recovering[..., None], taken, action).astype(action.dtype)
    if proposed is None and (executed != action).any():
        proposed = action
    return recovering, executed, proposed


def what_followed(
    file: RecordingFile, observation: np.ndarray, ended: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """s_{t+1}; where it was not recorded and no step of the episode follows, s_t stands in."""
    if file.has("next_observation"):
        return file.vectors("next_observation", observation.shape[-1]), ()
    unknown = ended.copy()
    unknown[-1] = True
    following = np.concatenate([observation[1:], observation[-1:]])
    note = (
        f"next_observation is not recorded: {int(unknown.sum())} values after the last step of an episode or of the "
        "recording are read from the observation before it"
    )
    return np.where(unknown[..., None], observation, following), (note,)


class RecordingFile:
    """The arrays of a file, each checked when it is asked for. Nothing is ever unpickled."""

    def __init__(self, path: Path):
        self.path, self.arrays, self.read = path, read_npz(path), set()
        for plural, name in PLURALS.items():
            if plural in self.arrays and name not in self.arrays:
                self.arrays[name] = self.arrays.pop(plural)
        reward = self._numbers("reward")
        if reward.ndim not in (1, 2) or not reward.size:
            raise self.error("reward", f"has shape {reward.shape}", "[T, E], or [T] for one robot")
        self.recorded = reward.shape  # (T, E), or (T,)
        self.shape = reward.shape if reward.ndim == 2 else (*reward.shape, 1)

    def has(self, name: str) -> bool:
        return name in self.arrays

    def first(self, names: tuple[str, ...]) -> str | None:
        """The one array of those names that is there; two could disagree."""
        found = [name for name in names if self.has(name)]
        if len(found) > 1:
            raise self.error(found[1], f"stands beside {found[0]}", "one of them")
        return found[0] if found else None

    def steps(self, name: str, optional: bool = False, nan: bool = False) -> np.ndarray | None:
        """One number per step, [T, E]; None if it is optional and not there."""
        if optional and not self.has(name):
            return None
        array = self._numbers(name, nan)
        if array.shape != self.recorded:
            raise self.error(name, f"has shape {array.shape}", f"{self.recorded}, as reward")
        return array.reshape(self.shape)

    def flags(self, name: str) -> np.ndarray:
        """One bool per step, [T, E]; 0 and 1 are accepted."""
        array = self.steps(name)
        others = array[(array != 0) & (array != 1)]
        if others.size:
            raise self.error(name, f"holds {others[0]:g}", "bool, or 0 and 1")
        return array.astype(bool)

    def vectors(self, name: str, size: int | None = None, nan: bool = False) -> np.ndarray:
        """One vector per step, [T, E, k]."""
        array = self._numbers(name, nan)
        if array.shape[:-1] != self.recorded or not array.shape[-1]:
            steps = ", ".join(map(str, self.recorded))
            raise self.error(name, f"has shape {array.shape}", f"({steps}, size): reward has {self.recorded}")
        if size not in (None, array.shape[-1]):
            raise self.error(name, f"has vectors of {array.shape[-1]}", str(size))
        return array.reshape(*self.shape, -1)

    def policy(self) -> Params | None:
        """The policy's weights, if they are in the file."""
        weights = {k.removeprefix(POLICY): v for k, v in self.arrays.items() if k.startswith(POLICY)}
        self.read |= {POLICY + name for name in weights}
        return policy_from_arrays(weights, str(self.path)) if weights else None

    def unused(self) -> list[str]:
        return sorted(self.arrays.keys() - self.read)

    def error(self, name: str, got: str, expected: str) -> ValueError:
        return ValueError(f"{self.path}: {name} {got}; expected {expected}")

    def _numbers(self, name: str, nan: bool = False) -> np.ndarray:
        if not self.has(name):
            expected = f"{(REQUIRED | OPTIONAL)[name]} (required: {', '.join(REQUIRED)})"
            if name in ("terminated", "truncated"):
                expected += "; a `done` does not tell falls from time limits"
            raise self.error(name, "is missing", expected)
        self.read.add(name)
        array = self.arrays[name]
        if array.dtype.kind not in "bfiu":
            raise self.error(name, f"is of type {array.dtype}", "numbers")
        array = array if array.dtype.kind == "f" else array.astype(np.float32)
        bad = np.isinf(array) if nan else ~np.isfinite(array)
        if bad.any():
            place = ", ".join(map(str, np.argwhere(bad)[0]))
            raise self.error(name, f"holds {array[bad][0]:g} at [{place}]", "finite numbers")
        return array
