"""A finished run in a few numbers, read back from its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.runs.recording import read_table

FINAL_SHARE = 0.1  # of training, at its end
TRAILING = 100  # episodes


def summarise_run(folder: Path, seconds: float | None = None) -> dict[str, Any]:
    """Final reward, falls, recovery rate and counts of the run in `folder`."""
    facts = json.loads((folder / "run.json").read_text())
    metrics, episodes = read_table(folder / "metrics.csv"), read_table(folder / "episodes.csv")
    last = metrics[-1]
    return {
        "robot": facts["settings"]["robot"],
        "method": facts["settings"]["method"],
        "seed": facts["settings"]["seed"],
        "updates": int(last["update"]),
        "steps": int(last["steps"]),
        "final_reward": final_reward(episodes, facts["updates"]),
        "falls": int(last["falls"]),
        "episodes": int(last["episodes"]),
        "exits": int(last["exits"]),
        "recovery_rate": last["recovery_steps"] / last["steps"],
        "recovery_rate_final": float(
            np.mean([row["recovery_rate"] for row in metrics if in_final_share(row, facts)])
        ),
        "seconds": seconds,
    }


def in_final_share(row: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Does this row belong to the last tenth of training?"""
    return row["update"] > (1.0 - FINAL_SHARE) * facts["updates"]


def final_reward(episodes: list[dict[str, Any]], updates: int) -> float | None:
    """Mean task return of the episodes that ended in the last 10% of training; None if none did."""
    returns = [e["total_return"] for e in episodes if e["update"] > (1.0 - FINAL_SHARE) * updates]
    return float(np.mean(returns)) if returns else None


def falls_to_success(episodes: list[dict[str, Any]], bar: float) -> int | None:
    """Falls before the mean return of the last 100 episodes first reaches `bar`; None if it never does."""
    levels = success_levels([e["total_return"] for e in episodes], [e["fell"] for e in episodes])
    return falls_at(levels, bar)


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


def falls_at(levels: Sequence[tuple[float, int]], bar: float) -> int | None:
    """The falls of the first level that reaches `bar`."""
    return next((int(falls) for level, falls in levels if level >= bar), None)
