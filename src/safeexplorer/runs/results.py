"""A run reduced to what tables, figures and the report read: one small JSON file.

It is made from a run folder at any time. Numbers of an unfinished run are kept but never enter a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.runs.specs import RunSpec, spec_from_dict
from safeexplorer.runs.summary import FINAL_SHARE, falls_at, success_levels

FORMAT = 1
SAMPLES = 200  # of a curve
FALLS_GRAIN = 0.005  # of the falls-to-success staircase: exact up to 200 falls, then within half a percent
LATE_SHARE = 0.2  # of training, at its end: the objective gap
COST_SHARE = 0.05  # of training, at its end: falls per episode of the constrained methods
ESS_STEPS = 200  # recovery steps of an update; with fewer even a single effective one is more than 0.5%
AT_END = ("steps", "return_trailing", "falls", "radius")  # of a bin of updates, the last value
AVERAGED = ("recovery_rate", "segment_success", "importance_ess_share", "importance_log10_variance_ratio")
FINISHED, UNFINISHED, FAILED = "finished", "unfinished", "failed"


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


def result_from_dict(values: dict[str, Any], path: Path) -> Result:
    """A result from its file."""
    if values.get("format") != FORMAT:
        raise ValueError(f"{path}: format is {values.get('format')!r}; allowed: {FORMAT}")
    plain = {k: v for k, v in values.items() if k not in ("format", "key", "settings")}
    return Result(spec=spec_from_dict(values["settings"]), **plain)


# -- from a run folder ---------------------------------------------------------------------------------------


def collect_run(folder: Path) -> Result:
    """Read a run folder, finished or not."""
    failure = read_json(folder / "failure.json")
    facts = read_json(folder / "run.json") or failure
    spec = spec_from_dict(facts["settings"])
    if not (folder / "evaluations.csv").is_file():  # it stopped before it opened its records
        error = failure["error"] if failure else None
        return Result(folder.name, spec, FAILED if failure else UNFINISHED, 0, error, folder=folder)
    metrics, episodes = read_columns(folder / "metrics.csv"), read_columns(folder / "episodes.csv")
    evaluations = stochastic(read_columns(folder / "evaluations.csv"))
    done = int(metrics["update"][-1]) if len(metrics["update"]) else 0
    summary = read_json(folder / "summary.json")
    status = FINISHED if summary else FAILED if failure else UNFINISHED
    total = spec.settings.updates
    levels = success_levels(episodes["total_return"], episodes["fell"])
    return Result(
        name=folder.name,
        spec=spec,
        status=status,
        updates=done,
        error=failure["error"] if failure and not summary else None,
        provenance=facts["provenance"],
        recovery=facts["recovery"],
        numbers=numbers(metrics, episodes, evaluations, total) | {"seconds": (summary or {}).get("seconds")},
        levels=thin_levels(levels),
        curve=sample_curve(metrics) if done else {},
        evaluations={k: tidy_list(evaluations[k]) for k in ("steps", "total_return", "gap", "falls", "beta")},
        replay=read_json(folder / "replay.json"),
        folder=folder,
    )


def numbers(
    metrics: dict[str, np.ndarray],
    episodes: dict[str, np.ndarray],
    evaluations: dict[str, np.ndarray],
    updates: int,
) -> dict[str, float | None]:
    """The numbers that tables are made of."""
    if not len(metrics["update"]):
        return {}
    late, late_metrics = (share_rows(table, updates, LATE_SHARE) for table in (evaluations, metrics))
    final = share_rows(episodes, updates, FINAL_SHARE)["total_return"]
    cost = share_rows(episodes, updates, COST_SHARE)["fell"]
    counts = {
        name: int(metrics[name][-1])
        for name in ("steps", "falls", "episodes", "exits", "recovery_steps", "succeeded", "failed")
    }
    return counts | {
        "final_reward": mean(final),
        "final_episodes": len(final),
        "final_cost": mean(cost),
        "recovery_rate_late": mean(late_metrics["recovery_rate"]),
        "mixed_return_late": mean(late["mixed_return"]),
        "alone_return_late": mean(late["total_return"]),
        "gap_late": mean(late["gap"]),
        "alone_falls_late": mean(late["falls"]),
        "ess_max": largest(metrics["importance_ess_share"][enough_recovery(metrics)]),
        "log10_variance_ratio_max": largest(metrics["importance_log10_variance_ratio"]),
    }


def enough_recovery(metrics: dict[str, np.ndarray]) -> np.ndarray:
    """Updates whose effective sample size says something: as a share of n recovery steps it is at least 1/n."""
    return metrics["recovery_rate"] * np.diff(metrics["steps"], prepend=0.0) >= ESS_STEPS


def sample_curve(metrics: dict[str, np.ndarray]) -> dict[str, list[float | None]]:
    """At most `SAMPLES` points over the updates: totals as they stand, rates averaged over the updates between."""
    count = len(metrics["update"])
    edges = np.unique(np.linspace(0, count, min(SAMPLES, count) + 1).round().astype(int))
    curve = {name: tidy_list(metrics[name][edges[1:] - 1]) for name in AT_END}
    for name in AVERAGED:
        known = ~np.isnan(metrics[name])
        totals = np.add.reduceat(np.where(known, metrics[name], 0.0), edges[:-1])
        counts = np.add.reduceat(known, edges[:-1], dtype=int)
        curve[name] = tidy_list(np.where(counts > 0, totals / np.maximum(counts, 1), np.nan), 5)
    return curve


# -- many ----------------------------------------------------------------------------------------------------


def load_results(paths: Iterable[Path]) -> list[Result]:
    """Everything under these paths: run folders, result files, or folders of them. Of equal runs, the one furthest."""
    found: dict[str, Result] = {}
    for path in sorted(set(expand(paths))):
        result = collect_run(path) if path.is_dir() else result_from_dict(json.loads(path.read_text()), path)
        place = result.spec.key
        if place not in found or rank(result) > rank(found[place]):
            found[place] = result
    return sorted(found.values(), key=lambda result: result.spec.name)


def rank(result: Result) -> tuple:
    """Which of two records of the same run says more."""
    return result.finished, result.updates, bool(result.replay), bool(result.evaluations.get("steps"))


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
    path.write_text("{\n" + body + "\n}\n")
    return path


# -- small -----------------------------------------------------------------------------------------------------


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """A CSV table by column; nan where empty. The last line of a killed run may be cut: it is left out."""
    with open(path, "rb") as file:
        names = file.readline().decode().strip().split(",")
        text = file.read()
    text = text[: text.rfind(b"\n") + 1]
    lines = text.decode().splitlines()
    if b",," in text or b",\n" in text:
        rows = [[float(cell or "nan") for cell in line.split(",")] for line in lines]
        table = np.array(rows).reshape(-1, len(names))
    else:
        table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.zeros((0, len(names)))
    return dict(zip(names, table.T, strict=True))


def stochastic(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of the evaluations, those with the policy's noise: the ones Theorem 2 is about."""
    rows = table["deterministic"] == 0.0
    return {name: values[rows] for name, values in table.items()}


def share_rows(table: dict[str, np.ndarray], updates: int, share: float) -> dict[str, np.ndarray]:
    """The rows of the last `share` of training."""
    rows = table["update"] > (1.0 - share) * updates
    return {name: values[rows] for name, values in table.items()}


def thin_levels(levels: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Of levels whose falls differ by less than the grain, the highest: falls are never understated."""
    kept: list[tuple[float, int]] = []
    begin = -1
    for level, falls in levels:
        if kept and falls <= begin * (1 + FALLS_GRAIN):
            kept.pop()
        else:
            begin = falls
        kept.append((tidy(level, 9), falls))
    return kept


def mean(values: np.ndarray) -> float | None:
    """Of what is there; None if nothing is."""
    values = values[~np.isnan(values)]
    return tidy(float(values.mean()), 9) if len(values) else None


def largest(values: np.ndarray) -> float | None:
    """Of what is there; None if nothing is."""
    values = values[~np.isnan(values)]
    return tidy(float(values.max())) if len(values) else None


def tidy(value: float | None, digits: int = 7) -> float | None:
    """So many significant digits, None for nan."""
    if value is None or np.isnan(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def tidy_list(values: np.ndarray, digits: int = 7) -> list[float | None]:
    return [tidy(value, digits) for value in values.tolist()]


def read_json(path: Path) -> Any:
    """The content, or None where there is no such file."""
    return json.loads(path.read_text()) if path.is_file() else None
