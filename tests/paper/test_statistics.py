"""Statistics against scipy, rliable's numbers, and arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given

from safeexplorer.paper.statistics import (
    bootstrap,
    improvement,
    interquartile_mean,
    mean_and_deviation,
    probability_of_improvement,
    stratified_resamples,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rliable.json").read_text())
finite = st.floats(-1e6, 1e6)


@given(arrays.arrays(float, st.integers(1, 30), elements=finite))
def test_interquartile_mean_is_scipys_trimmed_mean(values):
    assert interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25), abs=1e-6)


@given(arrays.arrays(float, (3, 8), elements=finite))
def test_interquartile_mean_of_rows_is_that_of_each_row(rows):
    assert interquartile_mean(rows) == pytest.approx(
        [scipy.stats.trim_mean(row, 0.25) for row in rows], abs=1e-6
    )


def test_mean_and_sample_deviation():
    # mean 4; squares of the differences 4 + 0 + 4 = 8, over n - 1 = 2: deviation 2
    assert mean_and_deviation([2.0, 4.0, 6.0]) == (4.0, 2.0)
    assert mean_and_deviation([3.0]) == (3.0, None)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_intervals_are_rliables(case):
    """rliable's 20,000 resamples against ours: the ends differ by the noise of a percentile alone."""
    ours = np.array(case["ours"]).T  # tasks x runs
    point, low, high = bootstrap(ours, np.random.default_rng(1), count=20_000)
    width = case["iqm_interval"][1] - case["iqm_interval"][0]
    assert point == pytest.approx(case["iqm"], rel=1e-12)
    assert (low, high) == pytest.approx(case["iqm_interval"], abs=0.04 * width)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_probability_of_improvement_is_rliables(case):
    ours, theirs = np.array(case["ours"]).T, np.array(case["theirs"]).T
    point, low, high = probability_of_improvement(ours, theirs, np.random.default_rng(1))
    assert point == pytest.approx(case["improvement"], rel=1e-12)
    assert (low, high) == pytest.approx(case["improvement_interval"], abs=0.08)


def test_improvement_counts_pairs_and_halves_ties():
    # pairs (2,1) (2,2) (3,1) (3,2): three wins and one tie of four
    assert improvement([2.0, 3.0], [1.0, 2.0]) == 3.5 / 4


def test_resamples_stay_within_their_task():
    draws = stratified_resamples(
        [np.array([1.0, 2.0]), np.array([10.0, 20.0, 30.0])], np.random.default_rng(0), 500
    )
    assert draws.shape == (500, 5)
    assert set(np.unique(draws[:, :2])) == {1.0, 2.0}
    assert set(np.unique(draws[:, 2:])) == {10.0, 20.0, 30.0}


def test_the_generator_is_the_only_source_of_chance():
    values = [np.array([1.0, 5.0, 7.0, 20.0, 3.0])]
    first, second, other = (stratified_resamples(values, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert (first == second).all()
    assert (first != other).any()


def test_an_interval_of_equal_runs_is_a_point():
    assert bootstrap([[7.0] * 5], np.random.default_rng(0)) == (7.0, 7.0, 7.0)
