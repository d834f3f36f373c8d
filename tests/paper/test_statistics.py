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

from safeexplorer.paper.statistics import STUDENT, difference, improvement, interquartile_mean, interval
from safeexplorer.runs.summary import mean_and_deviation

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rliable.json").read_text())
finite = st.floats(-1e6, 1e6)


@given(arrays.arrays(float, st.integers(1, 30), elements=finite))
def test_interquartile_mean_is_scipys_trimmed_mean(values):
    assert interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25), abs=1e-6)


def test_mean_and_sample_deviation():
    # mean 4; squares of the differences 4 + 0 + 4 = 8, over n - 1 = 2: deviation 2
    assert mean_and_deviation([2.0, 4.0, 6.0]) == (4.0, 2.0)
    assert mean_and_deviation([3.0]) == (3.0, None)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_interquartile_means_and_improvements_are_rliables(case):
    ours, theirs = np.array(case["ours"]), np.array(case["theirs"])  # runs x tasks
    assert interquartile_mean(ours.ravel()) == pytest.approx(case["iqm"], rel=1e-12)
    shares = [improvement(x, y) for x, y in zip(ours.T, theirs.T, strict=True)]
    assert np.mean(shares) == pytest.approx(case["improvement"], rel=1e-12)


def test_improvement_counts_pairs_and_halves_ties():
    # pairs (2,1) (2,2) (3,1) (3,2): three wins and one tie of four
    assert improvement([2.0, 3.0], [1.0, 2.0]) == 3.5 / 4


def test_the_quantiles_are_students():
    assert tuple(round(q, 3) for q in scipy.stats.t.ppf(0.975, range(1, len(STUDENT) + 1))) == STUDENT


def test_of_three_values_the_interval_is_students_of_the_mean():
    # 2, 4, 6: mean 4, deviation 2, standard error 2 / sqrt(3), t(2) = 4.303
    reach = 4.303 * 2 / 3**0.5
    assert interval([2.0, 4.0, 6.0]) == pytest.approx((4.0, 4.0 - reach, 4.0 + reach))


def test_of_five_values_the_ends_count_as_their_neighbours():
    # 1, 2, 3, 4, 100: 2, 3, 4 are left, mean 3; pulled in 2, 2, 3, 4, 4, squares 1 + 1 + 0 + 1 + 1 = 4;
    # t(2) sqrt(4 / (3 * 2)) = 4.303 * 0.8165
    reach = 4.303 * (4 / 6) ** 0.5
    assert interval([1.0, 2.0, 3.0, 4.0, 100.0]) == pytest.approx((3.0, 3.0 - reach, 3.0 + reach))


def test_one_run_and_two_have_no_interval():
    assert interval([7.0]) == (7.0, None, None)
    assert interval([7.0, 9.0]) == (8.0, None, None)


@pytest.mark.parametrize("seeds", [3, 4, 5, 10])
def test_nineteen_intervals_of_twenty_hold_the_truth(seeds):
    samples = np.random.default_rng(seeds).normal(size=(2000, seeds))
    found = [low <= 0.0 <= high for _, low, high in map(interval, samples)]
    assert np.mean(found) == pytest.approx(0.945, abs=0.02)  # 0.93 to 0.955 measured over 4000


def test_equal_runs_have_an_interval_of_no_width():
    assert interval([7.0] * 5) == (7.0, 7.0, 7.0)


@pytest.mark.parametrize("sizes", [(3, 3), (3, 5), (5, 4)])
def test_the_interval_of_a_difference_is_welchs(sizes):
    rng = np.random.default_rng(sum(sizes))
    ours, theirs = rng.normal(3.0, 1.0, sizes[0]), rng.normal(0.0, 4.0, sizes[1])
    point, low, high = difference(ours, theirs)
    welch = scipy.stats.ttest_ind(ours, theirs, equal_var=False)
    degrees = max(int(welch.df), 1)  # rounded down: never shorter than Welch's
    reach = scipy.stats.t.ppf(0.975, degrees) * (point / welch.statistic)
    assert (point, high - point) == pytest.approx((ours.mean() - theirs.mean(), reach), rel=1e-3)
    assert low == pytest.approx(2 * point - high)


def test_beside_a_number_a_difference_is_students_interval():
    # 2, 4, 6 less 1: mean 3, standard error 2 / sqrt(3), t(2) = 4.303
    reach = 4.303 * 2 / 3**0.5
    assert difference([2.0, 4.0, 6.0], [1.0]) == pytest.approx((3.0, 3.0 - reach, 3.0 + reach))
