"""A saved agent: one file with the policy, the optimiser and the settings, or the newest checkpoint of a run folder."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space

from safeexplorer.adapters.spaces import describe_space, space_of
from safeexplorer.files.archives import read_npz
from safeexplorer.files.checkpoint import flatten
from safeexplorer.files.writing import replacing
from safeexplorer.runs.policies import newest_checkpoint, run_spaces
from safeexplorer.runs.settings import Settings, from_dict, stored_settings

FORMAT = 1


class Saved(NamedTuple):
    settings: Settings
    num_timesteps: int
    spaces: list[Space]  # of observations and actions
    arrays: dict[str, np.ndarray]


def write_saved(
    path: str | os.PathLike,
    settings: Settings,
    num_timesteps: int,
    spaces: list[Space],
    learner: dict[str, Any],
) -> Path:
    """The file that `read_saved` reads."""
    path = with_suffix(Path(path))
    facts = {
        "format": FORMAT,
        "settings": settings.as_dict(),
        "num_timesteps": num_timesteps,
        "spaces": [describe_space(space) for space in spaces],
    }
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, facts=text, **flatten({"learner": learner}))
    return path


def read_saved(path: str | os.PathLike) -> Saved:
    """What `write_saved` wrote, or the newest checkpoint in a run folder."""
    path = Path(path)
    return read_run(path) if path.is_dir() else read_file(with_suffix(path))


def read_file(path: Path) -> Saved:
    if not path.is_file():
        raise ValueError(f"there is no saved agent at {path}")
    try:
        arrays = read_npz(path, ["facts"])
        facts = json.loads(arrays["facts"].tobytes())
        if facts["format"] != FORMAT:
            raise ValueError(f"its format is {facts['format']!r}; this release reads {FORMAT}")
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{name} holds a number that is not finite")
        spaces = [space_of(text) for text in facts["spaces"]]
        return Saved(from_dict(facts["settings"]), facts["num_timesteps"], spaces, arrays)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"{path} is no saved agent: {error}") from error


def read_run(folder: Path) -> Saved:
    settings, (arrays, update) = stored_settings(folder), newest_checkpoint(folder)
    return Saved(settings, update * settings.batch_size, list(run_spaces(folder)), arrays)


def with_suffix(path: Path) -> Path:
    return path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
