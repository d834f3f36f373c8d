"""Numbers over seeds. Every function takes finite values only: who calls decides what a missing run means."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FEWEST = 3  # runs of an interval: of two it would be nine deviations long to each side, of one there is none
# The 97.5% point of Student's t with 1, 2, 3, ... degrees of freedom; beyond, that of the last.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
           2.131)  # fmt: skip


class Interval(NamedTuple):
    """A point with its 95% interval, where there are enough runs for one."""

    point: float
    low: float | None
    high: float | None


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of what is left when the lowest and the highest floor(n / 4) values are cut off."""
    x = np.sort(np.asarray(values, float))
    cut = len(x) // 4
    return float(x[cut : len(x) - cut].mean())


def interval(values: Sequence[float]) -> Interval:
    """Interquartile mean m of n values with Tukey and McLaughlin's interval for trimmed means:

        m +- t(h - 1) sqrt(S / (h (h - 1))),   h = n - 2 floor(n / 4) values that are not cut off,

    S the squared differences from their mean once the values cut off are put at the ends of what is left. With three
    values this is Student's interval of the mean.
    """
    x = np.sort(np.asarray(values, float))
    point, cut = interquartile_mean(x), len(x) // 4
    kept = len(x) - 2 * cut
    if len(x) < FEWEST:
        return Interval(point, None, None)
    pulled_in = x.clip(x[cut], x[len(x) - cut - 1])
    squares = float(((pulled_in - pulled_in.mean()) ** 2).sum())
    reach = STUDENT[min(kept - 1, len(STUDENT)) - 1] * (squares / (kept * (kept - 1))) ** 0.5
    return Interval(point, point - reach, point + reach)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Mean of ours less mean of theirs with Welch's 95% interval; a single number of theirs is taken as exact."""
    means, errors, freedom = [], [], []
    for values in (ours, theirs):
        x = np.asarray(values, float)
        means.append(x.mean())
        errors.append(x.var(ddof=1) / len(x) if len(x) > 1 else 0.0)
        freedom.append(max(len(x) - 1, 1))
    point, error = float(means[0] - means[1]), sum(errors)
    shares = sum(e**2 / f for e, f in zip(errors, freedom, strict=True))
    degrees = int(error**2 / shares) if shares else len(STUDENT)
    reach = STUDENT[min(max(degrees, 1), len(STUDENT)) - 1] * error**0.5
    return Interval(point, point - reach, point + reach)


def improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """P(X > Y) + P(X = Y) / 2 for a run X of ours and a run Y of theirs: the share of pairs we win."""
    x, y = np.asarray(ours, float)[:, None], np.asarray(theirs, float)[None]
    return float(np.mean((x > y) + 0.5 * (x == y)))
