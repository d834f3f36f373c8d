"""The numbers of a run, from its records: every table, figure, page and `summary.json` has them from here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.files.reading import read_json_if_any
from safeexplorer.files.tables import read_columns
from safeexplorer.runs.facts import SUMMARY, read_facts

Columns = dict[str, np.ndarray]

TRAILING = 100  # episodes
FINAL_SHARE = 0.1  # of training, at its end: the final reward
LATE_SHARE = 0.2  # the objective gap
COST_SHARE = 0.05  # cost per episode
COUNTS = ("steps", "falls", "episodes", "exits", "recovery_steps", "succeeded", "failed")
BOUNDS = ("beta_bound", "gap_bound")  # of a run with a hand-over: what it knows of the policy alone
ESS_STEPS = 200  # recovery steps of an update; with fewer even a single effective one is more than 0.5%
SAMPLES = 200  # of a curve
AT_END = ("steps", "return_trailing", "falls", "radius")  # of a bin of updates, the last value
AVERAGED = ("recovery_rate", "segment_success", "importance_ess_share", "importance_log10_variance_ratio")
FALLS_GRAIN = 0.005  # of the falls-to-success staircase: exact up to 200 falls, then within half a percent


def read_summary(folder: Path) -> dict[str, Any] | None:
    """`summary.json` of a run that has finished: whole, and in agreement with its `run.json`. None without one."""
    path = folder / "summary.json"
    summary = read_json_if_any(path, SUMMARY)
    if summary is None:
        return None
    for name in ("steps", "updates", "falls", "seconds"):
        if summary[name] < 0:
            raise ValueError(
                f"{path} is damaged: {name} is {summary[name]!r}; allowed: a number of at least 0"
            )
    planned = read_facts(folder).get("updates")
    if summary["updates"] != planned:
        raise ValueError(f"{path} is of {summary['updates']} updates, the run of {planned}")
    return summary


def is_finished(folder: Path) -> bool:
    """Has the run ended, and says so in a file that can be read?"""
    try:
        return read_summary(folder) is not None
    except (ValueError, OSError):
        return False


def summarise_run(folder: Path, seconds: float) -> dict[str, Any]:
    """A finished run in a few numbers."""
    facts = read_facts(folder)
    head = {name: facts["settings"][name] for name in ("robot", "method", "seed")}
    found = numbers(*read_records(folder), facts["updates"])
    return head | {"updates": facts["updates"]} | found | {"seconds": seconds}


def read_records(folder: Path) -> tuple[Columns, Columns, Columns]:
    """Metrics, episodes, and of the evaluations those with the policy's noise: the ones Theorem 2 is about."""
    metrics, episodes, evaluations = (
        read_columns(folder / f"{name}.csv") for name in ("metrics", "episodes", "evaluations")
    )
    if (
        "trailing_return" not in evaluations
    ):  # an older release compared J with the last 100 training episodes
        evaluations |= {"trailing_return": evaluations["mixed_return"]}
        evaluations |= dict.fromkeys(("mixed_return", "gap"), np.full(len(evaluations["update"]), np.nan))
    return metrics, episodes, rows(evaluations, evaluations["deterministic"] == 0.0)


def numbers(
    metrics: Columns, episodes: Columns, evaluations: Columns, updates: int
) -> dict[str, float | None]:
    """What tables are made of; None where there is nothing to average."""
    if not len(metrics["update"]):
        return {}
    final, late = share_rows(metrics, updates, FINAL_SHARE), share_rows(metrics, updates, LATE_SHARE)
    ended, alone = share_rows(episodes, updates, FINAL_SHARE), share_rows(evaluations, updates, LATE_SHARE)
    counts = {name: int(metrics[name][-1]) for name in COUNTS}
    bounds = {name: mean(late[name]) for name in BOUNDS if name in metrics}
    return (
        counts
        | bounds
        | {
            "final_reward": mean(ended["total_return"]),
            "final_episodes": len(ended["total_return"]),
            "final_cost": final_cost(metrics, episodes, updates),
            "recovery_rate": tidy(counts["recovery_steps"] / counts["steps"], 9),
            "recovery_rate_final": mean(final["recovery_rate"]),
            "recovery_rate_late": mean(late["recovery_rate"]),
            "trailing_return_late": mean(alone["trailing_return"]),
            "mixed_return_late": mean(alone["mixed_return"]),
            "alone_return_late": mean(alone["total_return"]),
            "gap_late": mean(alone["gap"]),
            "alone_falls_late": mean(alone["falls"]),
            "ess_max": largest(metrics["importance_ess_share"][enough_recovery(metrics)]),
            "log10_variance_ratio_max": largest(metrics["importance_log10_variance_ratio"]),
        }
    )


def final_cost(metrics: Columns, episodes: Columns, updates: int) -> float | None:
    """Cost per episode over the last 5% of training: what a constrained method was given a limit for, else falls."""
    fell = share_rows(episodes, updates, COST_SHARE)["fell"]
    if "cost_ended" not in metrics or not len(fell):
        return mean(fell)
    return tidy(float(share_rows(metrics, updates, COST_SHARE)["cost_ended"].sum()) / len(fell), 9)


def enough_recovery(metrics: Columns) -> np.ndarray:
    """Updates whose effective sample size says something: as a share of n recovery steps it is at least 1/n."""
    return metrics["recovery_rate"] * np.diff(metrics["steps"], prepend=0.0) >= ESS_STEPS


# -- curves ------------------------------------------------------------------------------------------------


def sample_curve(metrics: Columns) -> dict[str, list[float | None]]:
    """At most `SAMPLES` points over the updates: totals as they stand, rates averaged over the updates between."""
    count = len(metrics["update"])
    if not count:
        return {}
    edges = np.unique(np.linspace(0, count, min(SAMPLES, count) + 1).round().astype(int))
    curve = {name: tidy_list(metrics[name][edges[1:] - 1]) for name in AT_END}
    for name in AVERAGED:
        known = ~np.isnan(metrics[name])
        totals = np.add.reduceat(np.where(known, metrics[name], 0.0), edges[:-1])
        counts = np.add.reduceat(known, edges[:-1], dtype=int)
        curve[name] = tidy_list(np.where(counts > 0, totals / np.maximum(counts, 1), np.nan), 5)
    return curve


# -- falls to success --------------------------------------------------------------------------------------


def success_levels(returns: Sequence[float], fell: Sequence[float]) -> list[tuple[float, int]]:
    """(the highest trailing mean return so far, falls until then): one pair per number of falls.

    All that `falls_at` needs to give the exact falls to success for any bar.
    """
    if len(returns) < TRAILING:
        return []
    trailing = np.convolve(returns, np.full(TRAILING, 1.0 / TRAILING), "valid")
    highest, falls = np.maximum.accumulate(trailing), np.cumsum(fell)[TRAILING - 1 :]
    last = np.append(np.diff(falls) > 0, True)  # the best level at each number of falls
    levels, falls = highest[last], falls[last]
    new = np.append(True, np.diff(levels) > 0)
    return [(float(level), int(count)) for level, count in zip(levels[new], falls[new], strict=True)]


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


def falls_at(levels: Sequence[tuple[float, int]], bar: float) -> int | None:
    """Falls before the mean return of the last 100 episodes first reaches `bar`; None if it never does."""
    return next((int(falls) for level, falls in levels if level >= bar), None)


# -- small -------------------------------------------------------------------------------------------------


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Over runs: mean and sample standard deviation (ddof = 1); one value has no deviation."""
    x = np.asarray(values, float)
    return float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else None


def rows(table: Columns, chosen: np.ndarray) -> Columns:
    return {name: values[chosen] for name, values in table.items()}


def share_rows(table: Columns, updates: int, share: float) -> Columns:
    """The rows of the last `share` of training."""
    return rows(table, table["update"] > (1.0 - share) * updates)


def mean(values: np.ndarray) -> float | None:
    """Of what is there; None if nothing is."""
    values = values[~np.isnan(values)]
    return tidy(float(values.mean()), 9) if len(values) else None


def largest(values: np.ndarray) -> float | None:
    """Of what is there; None if nothing is."""
    values = values[~np.isnan(values)]
    return tidy(float(values.max())) if len(values) else None


def tidy(value: float | None, digits: int = 7) -> float | None:
    """So many significant digits; None for what is no finite number."""
    if value is None or not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def tidy_list(values: np.ndarray, digits: int = 7) -> list[float | None]:
    return [tidy(value, digits) for value in values.tolist()]
