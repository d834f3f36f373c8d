"""Running mean and deviation, as if all data had been seen at once."""

from typing import Any, NamedTuple

import numpy as np

SMALLEST_DEVIATION = 1e-2


class Moments(NamedTuple):
    """Of `count` samples: their mean and their summed squared distance from it."""

    count: Any
    mean: Any
    squares: Any


def no_moments(shape: tuple[int, ...] = ()) -> Moments:
    """Nothing seen yet."""
    return Moments(np.zeros((), np.int64), np.zeros(shape), np.zeros(shape))


def merge(moments: Moments, samples: Any) -> Moments:
    """With more samples [k, ...]: the pairwise update of Chan, Golub and LeVeque, in the precision of the moments."""
    samples = samples.astype(moments.mean.dtype)
    more, mean = len(samples), samples.mean(0)
    count = moments.count + more
    shift = mean - moments.mean
    squares = ((samples - mean) ** 2).sum(0) + shift**2 * (moments.count * more / count)
    count = count.astype(moments.count.dtype)
    return Moments(count, moments.mean + shift * (more / count), moments.squares + squares)


def deviation(moments: Moments, xp: Any = np) -> Any:
    """The sample deviation (ddof = 1), at least 0.01; 1 before there are two samples."""
    spread = xp.sqrt(moments.squares / xp.maximum(moments.count - 1, 1))
    return xp.where(moments.count < 2, 1.0, xp.maximum(spread, SMALLEST_DEVIATION))
