"""Curves of several runs on common steps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from safeexplorer.runs.results import Result

POINTS = 200  # of an averaged curve
SMOOTHING = 9  # points of the moving average of the gap


class Envelope(NamedTuple):
    """Over the runs: mean, smallest and largest, where at least one run has a value."""

    steps: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def on_grid(runs: Sequence[Result], column: str, source: str = "curve") -> tuple[np.ndarray, np.ndarray]:
    """Steps [P] and the runs' values [runs, P] on them; steps where no run has a value are left out."""
    found = [getattr(run, source) for run in runs]
    tables = [table for table in found if table.get("steps") and column in table]
    most = max((table["steps"][-1] for table in tables), default=0)
    steps = np.linspace(0, most, POINTS + 1)[1:]
    rows = []
    for table in tables:
        x, y = np.array(table["steps"], float), np.array(table[column], float)
        known = ~np.isnan(y)
        if known.any():
            rows.append(np.interp(steps, x[known], y[known], left=np.nan, right=np.nan))
    values = np.array(rows).reshape(-1, len(steps))
    known = ~np.isnan(values).all(axis=0)
    return steps[known], values[:, known]


def envelope(steps: np.ndarray, rows: np.ndarray) -> Envelope | None:
    """Of curves from `on_grid`; None without any."""
    if not rows.size:
        return None
    return Envelope(steps, np.nanmean(rows, 0), np.nanmin(rows, 0), np.nanmax(rows, 0))


def smooth(rows: np.ndarray) -> np.ndarray:
    """A moving average that shrinks at the ends and passes over what is missing."""
    if not rows.size:
        return rows
    half = SMOOTHING // 2
    padded = np.pad(rows, ((0, 0), (half, half)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHING, axis=1)
    counts = (~np.isnan(windows)).sum(-1)
    return np.where(counts > 0, np.nansum(windows, -1) / np.maximum(counts, 1), np.nan)
