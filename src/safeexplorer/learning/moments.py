"""Running mean and deviation, as if all data had been seen at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SMALLEST_DEVIATION = 1e-2


class Moments(NamedTuple):
    """Of `count` samples: their mean and their summed squared distance from it."""

    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def no_moments(shape: tuple[int, ...] = ()) -> Moments:
    """Nothing seen yet."""
    return Moments(np.zeros((), np.int64), np.zeros(shape), np.zeros(shape))


def merge(moments: Moments, samples: np.ndarray) -> Moments:
    """With more samples [k, ...]: the pairwise update of Chan, Golub and LeVeque."""
    samples = np.asarray(samples, np.float64)
    more, mean = len(samples), samples.mean(0)
    count = moments.count + more
    shift = mean - moments.mean
    squares = ((samples - mean) ** 2).sum(0) + shift**2 * (moments.count * more / count)
    return Moments(np.int64(count), moments.mean + shift * (more / count), moments.squares + squares)


def deviation(moments: Moments) -> np.ndarray:
    """The sample deviation (ddof = 1), at least 0.01; 1 before there are two samples."""
    if moments.count < 2:
        return np.ones_like(moments.mean)
    return np.maximum(np.sqrt(moments.squares / (moments.count - 1)), SMALLEST_DEVIATION)
