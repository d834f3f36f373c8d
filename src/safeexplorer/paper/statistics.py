"""Numbers over seeds. Every function takes finite values only: who calls decides what a missing run means.

Resampling is stratified as in Agarwal et al. (2021): runs are drawn with replacement within each task, never across.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A point with its bootstrap interval."""

    point: float
    low: float
    high: float


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation (ddof = 1); one value has no deviation."""
    x = np.asarray(values, float)
    return float(x.mean()), float(x.std(ddof=1)) if len(x) > 1 else None


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean of what is left when the lowest and the highest quarter are cut off.

    floor(n / 4) values go at each end, as in scipy.stats.trim_mean(values, 0.25).
    """
    x = np.sort(np.asarray(values, float), axis=axis)
    n = x.shape[axis]
    cut = n // 4
    return np.take(x, np.arange(cut, n - cut), axis=axis).mean(axis=axis)


def stratified_resamples(
    tasks: Sequence[np.ndarray], rng: np.random.Generator, count: int = RESAMPLES
) -> np.ndarray:
    """[count, all runs]: each row draws, task by task, as many runs with replacement as the task has."""
    draws = [task[rng.integers(len(task), size=(count, len(task)))] for task in map(np.asarray, tasks)]
    return np.concatenate(draws, axis=1)


def bootstrap(
    tasks: Sequence[Sequence[float]],
    rng: np.random.Generator,
    statistic: Callable[[np.ndarray], np.ndarray] = interquartile_mean,
    count: int = RESAMPLES,
) -> Interval:
    """`statistic` over all runs of all tasks, with its 95% percentile interval."""
    pooled = [np.asarray(task, float) for task in tasks]
    spread = statistic(stratified_resamples(pooled, rng, count))
    low, high = np.quantile(spread, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(statistic(np.concatenate(pooled)[None])[0]), float(low), float(high))


def improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """P(X > Y) + P(X = Y) / 2 for a run X of ours and a run Y of theirs: the share of pairs we win."""
    x, y = np.asarray(ours, float)[:, None], np.asarray(theirs, float)[None]
    return float(np.mean((x > y) + 0.5 * (x == y)))


def probability_of_improvement(
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
    rng: np.random.Generator,
    count: int = RESAMPLES,
) -> Interval:
    """`improvement` averaged over tasks, each side resampled within each task."""
    point = float(np.mean([improvement(x, y) for x, y in zip(ours, theirs, strict=True)]))
    spread = np.zeros(count)
    for x, y in zip(ours, theirs, strict=True):
        a, b = (stratified_resamples([np.asarray(side, float)], rng, count) for side in (x, y))
        wins = (a[:, :, None] > b[:, None, :]) + 0.5 * (a[:, :, None] == b[:, None, :])
        spread += wins.mean(axis=(1, 2)) / len(ours)
    low, high = np.quantile(spread, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(point, float(low), float(high))
