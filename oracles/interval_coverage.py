"""How often a 95% interval over a few seeds holds the true value: the one we draw beside those we do not.

    python oracles/interval_coverage.py            # prints; --write renews results/evidence/interval-coverage.json

Synthetic seeds from five laws that results of training runs look like. The truth is the mean for intervals of the mean
and the expected interquartile mean of so many seeds for the others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from safeexplorer.paper.statistics import interval

KEPT = Path(__file__).parent.parent / "results" / "evidence" / "interval-coverage.json"
SEEDS = (3, 4, 5, 7, 10)
SAMPLES, RESAMPLES, TRUTH = 4000, 999, 400_000
TAILS = [0.025, 0.975]

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
LAWS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 3)": lambda rng, shape: rng.standard_t(3, shape),
    "skewed (lognormal, 0.5)": lambda rng, shape: rng.lognormal(0.0, 0.5, shape),
    "very skewed (lognormal, 1)": lambda rng, shape: rng.lognormal(0.0, 1.0, shape),
    "one seed in five fails": lambda rng, shape: np.where(
        rng.random(shape) < 0.2, rng.normal(0.0, 0.3, shape), rng.normal(4.0, 0.5, shape)
    ),
}


def trimmed(x: np.ndarray) -> np.ndarray:
    """Interquartile means along the last axis."""
    return stats.trim_mean(x, 0.25, axis=-1)


def average(x: np.ndarray) -> np.ndarray:
    return x.mean(-1)


def resamples(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[samples, resamples, seeds]."""
    return x[:, rng.integers(x.shape[1], size=(RESAMPLES, x.shape[1]))]


def ours(x: np.ndarray, _: np.random.Generator) -> np.ndarray:
    return np.array([interval(row)[1:] for row in x]).T


def student(x: np.ndarray, _: np.random.Generator) -> np.ndarray:
    n = x.shape[1]
    reach = stats.t.ppf(TAILS[1], n - 1) * x.std(1, ddof=1) / n**0.5
    return np.array([x.mean(1) - reach, x.mean(1) + reach])


def percentile(statistic: Callable) -> Callable:
    return lambda x, rng: np.quantile(statistic(resamples(x, rng)), TAILS, axis=1)


def studentised(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n, drawn = x.shape[1], resamples(x, rng)
    errors = drawn.std(2, ddof=1) / n**0.5
    ratios = np.where(
        errors > 0, (drawn.mean(2) - x.mean(1)[:, None]) / np.where(errors > 0, errors, 1), np.nan
    )
    low, high = np.nanquantile(ratios, TAILS, axis=1)
    error = x.std(1, ddof=1) / n**0.5
    return np.array([x.mean(1) - high * error, x.mean(1) - low * error])


def accelerated(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """BCa of the interquartile mean."""
    n, spread, point = x.shape[1], trimmed(resamples(x, rng)), trimmed(x)
    below = (spread < point[:, None]).mean(1) + 0.5 * (spread == point[:, None]).mean(1)
    shift = stats.norm.ppf(below.clip(1e-3, 1 - 1e-3))
    left_out = np.stack([trimmed(np.delete(x, i, 1)) for i in range(n)], 1)
    pulls = left_out.mean(1, keepdims=True) - left_out
    scale = 6 * (pulls**2).sum(1) ** 1.5
    bend = np.divide((pulls**3).sum(1), scale, out=np.zeros(len(x)), where=scale > 0)
    ends = []
    for tail in TAILS:
        z = shift + stats.norm.ppf(tail)
        share = stats.norm.cdf(shift + z / (1 - bend * z))
        ends.append([np.quantile(row, s) for row, s in zip(spread, share, strict=True)])
    return np.array(ends)


INTERVALS = {
    "interquartile mean, t (ours)": (ours, trimmed),
    "interquartile mean, percentile bootstrap": (percentile(trimmed), trimmed),
    "interquartile mean, BCa bootstrap": (accelerated, trimmed),
    "mean, t": (student, average),
    "mean, percentile bootstrap": (percentile(average), average),
    "mean, studentised bootstrap": (studentised, average),
}


def coverage() -> dict[str, dict[str, dict[str, float]]]:
    """Interval -> law -> number of seeds -> share of samples whose interval holds the truth."""
    found: dict = {name: {law: {} for law in LAWS} for name in INTERVALS}
    for law, draw in LAWS.items():
        for seeds in SEEDS:
            rng = np.random.default_rng(seeds)
            samples, many = draw(rng, (SAMPLES, seeds)), draw(rng, (TRUTH, seeds))
            for name, (make, statistic) in INTERVALS.items():
                (low, high), truth = make(samples, rng), statistic(many).mean()
                found[name][law][str(seeds)] = round(float(((low <= truth) & (truth <= high)).mean()), 3)
    return found


def main() -> None:
    found = coverage()
    if "--write" in sys.argv:
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    kept = json.loads(KEPT.read_text())
    worst = max(
        abs(share - kept[name][law][seeds])
        for name, laws in found.items()
        for law, shares in laws.items()
        for seeds, share in shares.items()
    )
    for name, laws in found.items():
        print(
            f"{name}: "
            + "; ".join(f"{law} {min(s.values())} to {max(s.values())}" for law, s in laws.items())
        )
    print(f"largest difference from the kept numbers: {worst:.3f}")


if __name__ == "__main__":
    main()
