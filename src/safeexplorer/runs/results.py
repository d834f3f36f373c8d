"""A run reduced to what tables, figures and the report read: one small JSON file.

It is made from a run folder at any time. Numbers of an unfinished run are kept but never enter a table.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from safeexplorer.files.console import notice
from safeexplorer.files.reading import NUMBER, read_json
from safeexplorer.files.writing import write_text
from safeexplorer.runs.facts import REPLAY, STRETCHES, read_facts, read_failure, read_replay
from safeexplorer.runs.seals import check_seals
from safeexplorer.runs.specs import RunSpec, spec_from_dict
from safeexplorer.runs.stretches import stretches_of
from safeexplorer.runs.summary import (
    COUNTS,
    falls_at,
    numbers,
    read_records,
    read_summary,
    sample_curve,
    success_levels,
    thin_levels,
    tidy_list,
)

FORMAT = 2
COUNTED = ("updates", "seconds", "final_episodes", *COUNTS)
FINISHED, UNFINISHED, FAILED = "finished", "unfinished", "failed"
COLUMNS = {"*": [NUMBER | None]}
SHAPE = {
    "format": int,
    "settings": dict,
    "name": str,
    "status": str,
    "updates": int,
    "error?": str,
    "provenance": dict,
    "recovery?": dict,
    "numbers": {"*": NUMBER | None},
    "levels": [[NUMBER]],
    "curve": COLUMNS,
    "evaluations": COLUMNS,
    "replay?": REPLAY,
    "stretches?": STRETCHES,
    "records?": dict,
}


@dataclass(frozen=True)
class Result:
    """One run."""

    name: str
    spec: RunSpec
    status: str
    updates: int  # done
    error: str | None = None  # of a failed run
    provenance: dict[str, Any] = field(default_factory=dict)
    recovery: dict[str, Any] | None = None
    numbers: dict[str, float | None] = field(default_factory=dict)
    levels: list[tuple[float, int]] = field(default_factory=list)
    curve: dict[str, list[float | None]] = field(default_factory=dict)
    evaluations: dict[str, list[float | None]] = field(default_factory=dict)
    replay: dict[str, Any] | None = None  # the recovery from the logged exits
    stretches: list[dict[str, Any]] = field(default_factory=list)  # where versions changed; see `stretches`
    records: dict[str, str] = field(default_factory=dict)  # SHA-256 of the tables it was made from
    folder: Path | None = None  # where it was read from; not part of the file

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    @property
    def share_done(self) -> float:
        return self.updates / self.spec.settings.updates

    def falls_to(self, bar: float) -> int | None:
        """Falls before the trailing mean return first reaches `bar`."""
        return falls_at(self.levels, bar)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {k: v for k, v in self.__dict__.items() if k not in ("spec", "folder")}
        return {"format": FORMAT, "key": self.spec.key, "settings": self.spec.settings.as_dict(), **plain}


def read_result(path: Path) -> Result:
    """A result from its file."""
    return result_from_dict(read_json(path, SHAPE), path)


def result_from_dict(values: dict[str, Any], path: Path) -> Result:
    """A result from the content of its file."""
    if values["format"] not in (1, FORMAT):
        raise ValueError(f"{path}: format is {values['format']}; allowed: 1, {FORMAT}")
    if values["format"] == 1:  # its J_mix was that of the last 100 training episodes
        values["numbers"]["trailing_return_late"] = values["numbers"].pop("mixed_return_late", None)
        values["numbers"].pop("gap_late", None)
        values["evaluations"].pop("gap", None)
    plain = {k: v for k, v in values.items() if k not in ("format", "key", "settings") and v is not None}
    known = [f.name for f in fields(Result) if f.name not in ("spec", "folder")]
    unknown = sorted(set(plain) - set(known))
    if unknown:
        raise ValueError(f"{path}: unknown key {unknown[0]!r}; known: {', '.join(known)}")
    return checked(Result(spec=spec_from_dict(values["settings"]), **plain), path)


def checked(result: Result, path: Path) -> Result:
    """A result that can be shown: known status, counts of at least 0, numbers that are finite or not there."""
    allowed = (FINISHED, UNFINISHED, FAILED)
    if result.status not in allowed:
        raise ValueError(f"{path}: status is {result.status!r}; allowed: {', '.join(allowed)}")
    planned = result.spec.settings.updates
    if result.updates > planned:
        raise ValueError(f"{path}: updates is {result.updates}; the run has {planned}")
    for name, value in {"updates": result.updates, **result.numbers}.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not (number or value is None) or (name in COUNTED and value is not None and value < 0):
            low = " of at least 0" if name in COUNTED else ""
            raise ValueError(f"{path}: {name} is {value!r}; allowed: a finite number{low}")
    if any(falls < 0 for _, falls in result.levels):
        raise ValueError(f"{path}: levels hold negative falls")
    for name, column in (result.curve | result.evaluations).items():
        if not all(x is None or math.isfinite(x) for x in column):
            raise ValueError(f"{path}: {name} holds what is no finite number")
    return result


# -- from a run folder ---------------------------------------------------------------------------------------


def collect_run(folder: Path) -> Result:
    """Read a run folder, finished or not."""
    failure = read_failure(folder)
    facts = failure if failure and not (folder / "run.json").is_file() else read_facts(folder)
    spec = spec_from_dict(facts["settings"])
    if not (folder / "evaluations.csv").is_file():  # it stopped before it opened its records
        error = failure["error"] if failure else None
        return Result(folder.name, spec, FAILED if failure else UNFINISHED, 0, error, folder=folder)
    records = check_seals(folder, ["metrics", "episodes", "evaluations"])
    metrics, episodes, evaluations = read_records(folder)
    summary = read_summary(folder)
    result = Result(
        name=folder.name,
        spec=spec,
        status=FINISHED if summary else FAILED if failure else UNFINISHED,
        updates=int(metrics["update"][-1]) if len(metrics["update"]) else 0,
        error=failure["error"] if failure and not summary else None,
        provenance=facts.get("provenance", {}),
        recovery=facts.get("recovery"),
        numbers=numbers(metrics, episodes, evaluations, spec.settings.updates)
        | {"seconds": (summary or {}).get("seconds")},
        levels=thin_levels(success_levels(episodes["total_return"], episodes["fell"])),
        curve=sample_curve(metrics),
        evaluations={k: tidy_list(evaluations[k]) for k in ("steps", "total_return", "gap", "falls", "beta")},
        replay=read_replay(folder),
        stretches=stretches_of(facts),
        records=records,
        folder=folder,
    )
    if summary and summary["updates"] != result.updates:
        raise ValueError(
            f"{folder}: summary.json is of {summary['updates']} updates, metrics.csv of {result.updates}"
        )
    return checked(result, folder)


# -- many ----------------------------------------------------------------------------------------------------


def collect_all(paths: Sequence[Path], out: Path, unfinished: bool, say: Callable[[str], None]) -> None:
    """A small result file in `out` for every run under these paths; those not finished only if asked for."""
    written = 0
    for result in read_all(sorted(path for path in set(expand(paths)) if path.is_dir()), say):
        if not result.finished and not unfinished:
            say(f"{result.folder}: {result.status}, left out")
            continue
        path = write_result(result, out)
        written += 1
        say(f"{path}: {path.stat().st_size / 1024:.0f} kB")
    if not written:
        raise ValueError(f"no finished run in {', '.join(map(str, paths))}")


def load_results(paths: Iterable[Path], say: Callable[[str], None] = notice) -> list[Result]:
    """Everything under these paths: run folders, result files, or folders of them. Of equal runs, the one furthest.

    What cannot be read is named with the reason, counted and left out.
    """
    found: dict[str, Result] = {}
    for result in read_all(sorted(set(expand(paths))), say):
        place = result.spec.key
        if place not in found or rank(result) > rank(found[place]):
            found[place] = result
    return sorted(found.values(), key=lambda result: result.spec.name)


def read_all(paths: Sequence[Path], say: Callable[[str], None]) -> Iterator[Result]:
    """The results that can be read."""
    damaged = 0
    for path in paths:
        try:
            yield collect_run(path) if path.is_dir() else read_result(path)
        except (ValueError, OSError, KeyError, TypeError, AttributeError, IndexError) as error:
            damaged += 1
            reason = (
                str(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {error}"
            )
            say(f"left out: {reason}" if str(path) in reason else f"left out: {path}: {reason}")
    if damaged:
        say(f"{damaged} of {len(paths)} could not be read and {'is' if damaged == 1 else 'are'} left out")


def rank(result: Result) -> tuple:
    """Which of two records of the same run says more."""
    return result.finished, result.updates, bool(result.replay), bool(result.evaluations.get("gap"))


def expand(paths: Iterable[Path]) -> Iterable[Path]:
    """Run folders (with their metrics) and result files, wherever they lie under the paths."""
    for path in map(Path, paths):
        if path.is_file() or is_run(path):
            yield path
        elif path.is_dir():
            yield from (folder for folder in path.rglob("*/") if is_run(folder))
            yield from (entry for entry in path.glob("*.json"))
        else:
            raise ValueError(f"{path} is neither a run folder, nor a result file, nor a folder of them")


def is_run(folder: Path) -> bool:
    """A run of `safeexplorer train`, or one that could not even start. Recoveries in training keep other records."""
    return (folder / "episodes.csv").is_file() or (folder / "failure.json").is_file()


def write_result(result: Result, folder: Path) -> Path:
    """One line per field, so that a change shows in a diff."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.spec.name}.json"
    body = ",\n".join(
        f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in result.as_dict().items()
    )
    write_text(path, "{\n" + body + "\n}\n")
    return path
