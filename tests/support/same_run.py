"""Two run folders that should hold the same run, byte for byte."""

from __future__ import annotations

from pathlib import Path

from safeexplorer.files.checkpoint import checkpoints, load_checkpoint

RECORDS = ("metrics.csv", "episodes.csv", "evaluations.csv", "exits.bin")


def final_state(folder: Path) -> tuple[dict[str, bytes], dict]:
    """Every array of the last checkpoint as bytes, and its plain state without the clock."""
    arrays, state = load_checkpoint(checkpoints(folder / "checkpoints")[-1])
    return {name: array.tobytes() for name, array in arrays.items()}, state | {"seconds": None}


def assert_same_run(one: Path, other: Path) -> None:
    assert final_state(one) == final_state(other)
    for name in RECORDS:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    falls = [sorted(path.name for path in (run / "falls").iterdir()) for run in (one, other)]
    assert falls[0] == falls[1]
