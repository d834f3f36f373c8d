"""The small files of a run: what does not hold together is a line with the file's name."""

from pathlib import Path
from typing import Any

from safeexplorer.files.reading import NUMBER, read_json, read_json_if_any

STRETCHES = [{"update": int, "provenance": dict}]
RUN = {
    "settings": dict,
    "updates?": int,
    "provenance?": dict,
    "recovery?": dict,
    "stretches?": STRETCHES,
    "spaces?": [dict],
    "world?": {"observation": [[NUMBER]]},
}
SUMMARY = dict.fromkeys(("steps", "updates", "falls", "seconds"), NUMBER)
SUMMARY |= {"records?": {"*": {"bytes": int, "sha256": str}}}
FAILURE = {"settings": dict, "error": str}
REPLAY = {"exits": int, "survived": {"count": int, "total": int}}


def read_facts(folder: Path) -> dict[str, Any]:
    """`run.json`: what the run is."""
    return read_json(folder / "run.json", RUN)


def read_failure(folder: Path) -> dict[str, Any] | None:
    """`failure.json`: why a campaign gave the run up."""
    return read_json_if_any(folder / "failure.json", FAILURE)


def read_replay(folder: Path) -> dict[str, Any] | None:
    """`replay.json`: the recovery from the logged exits."""
    return read_json_if_any(folder / "replay.json", REPLAY)
