"""What the records of a run were when it was saved: a changed digit is noticed before it is shown or replayed."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safeexplorer.files.checkpoint import DamagedCheckpoint, checkpoints, load_state
from safeexplorer.runs.summary import read_summary

FILES = {name: f"{name}.csv" for name in ("metrics", "episodes", "evaluations")} | {"exits": "exits.bin"}


def seals_of(folder: Path) -> dict[str, dict[str, Any]]:
    """{record: {"bytes", "sha256"}} from the summary, else from the newest checkpoint; older runs have none."""
    summary = read_summary(folder)
    if summary is not None:
        return summary.get("records", {})
    for path in reversed(checkpoints(folder / "checkpoints")):
        try:
            state = load_state(path)
        except DamagedCheckpoint:
            continue
        digests = state.get("digests", {})
        return {name: {"bytes": state["offsets"][name], "sha256": digests[name]} for name in digests}
    return {}


def check_seals(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Refuse records that are shorter than when they were saved, or other; their digests."""
    seals = {name: seal for name, seal in seals_of(folder).items() if name in names}
    for name, seal in seals.items():
        path, size = folder / FILES[name], seal["bytes"]
        with open(path, "rb") as file:
            start = file.read(size)
        if len(start) < size:
            raise ValueError(f"{path} has {len(start)} bytes; {size} were saved")
        if hashlib.sha256(start).hexdigest() != seal["sha256"]:
            raise ValueError(f"{path} was changed after it was saved: its SHA-256 is another")
    return {name: seal["sha256"] for name, seal in seals.items()}
