"""The learning curves of one run, OmniSafe's or ours, by the same names.

Returns, costs (falls) and lengths are means of the last 50 episodes, as OmniSafe logs them; `spread` is the geometric
mean of the policy's deviations; `case` is CPO's own, not a number for other methods.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

EPOCH = 2048  # steps
WINDOW = 50
COLUMNS = ("steps", "return", "cost", "length", "spread", "case")
HALF_LOG = 0.5 * math.log(2 * math.pi * math.e)


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def theirs(folder: Path) -> dict[str, list[float]]:
    """Every epoch of one of their runs."""
    names = (
        "TotalEnvSteps",
        "Metrics/EpRet",
        "Metrics/EpCost",
        "Metrics/EpLen",
        "Train/Entropy",
        "Misc/OptimCase",
    )
    rows = np.array(
        [[float(row.get(name, "nan")) for name in names] for row in table(folder / "progress.csv")]
    )
    rows[:, 4] = np.exp(rows[:, 4] - HALF_LOG)
    return dict(zip(COLUMNS, rows.T.tolist(), strict=True))


def ours(folder: Path, actions: int) -> dict[str, list[float]]:
    """Every update of one of ours."""
    updates, episodes = table(folder / "metrics.csv"), table(folder / "episodes.csv")
    ended = np.array([int(row["update"]) for row in episodes])
    names = ("total_return", "fell", "length")
    numbers = np.array([[float(row[name]) for name in names] for row in episodes])
    ends = np.searchsorted(ended, np.arange(1, len(updates) + 1), side="right")
    means = [numbers[max(0, end - WINDOW) : end].mean(0) if end else [math.nan] * 3 for end in ends]
    rows = np.column_stack(
        [
            [float(row["steps"]) for row in updates],
            means,
            [math.exp(float(row["entropy"]) / actions - HALF_LOG) for row in updates],
            [float(row.get("case", "nan")) for row in updates],
        ]
    )
    return dict(zip(COLUMNS, rows.T.tolist(), strict=True))
