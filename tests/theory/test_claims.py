"""The paper's theory, checked on exact processes, and the ground that the checks stand on."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safeexplorer.acting.interventions import JumpStart, SafeRegion, StateShield
from safeexplorer.acting.schedules import constant
from safeexplorer.theory import first_exit, gap, gradient, recovery_value, update
from safeexplorer.theory.check import Check
from safeexplorer.theory.enumeration import enumerate_trajectories, finite_horizon_return, masked
from safeexplorer.theory.mdp import (
    leaning_robot,
    random_mdp,
    random_policy,
    recovering_table,
    value,
    visitation,
)

seeds = st.integers(0, 2**32 - 1)
cheap = settings(max_examples=40, deadline=None)


def assert_all_hold(checks: list[Check]) -> None:
    assert [
        f"{c.claim}: {c.statement}: {c.measured} {c.relation} {c.bound}" for c in checks if not c.passed
    ] == []


# The checks that `safeexplorer verify` prints


@pytest.mark.parametrize("recovery", gradient.RECOVERIES)
@pytest.mark.parametrize("intervention", gradient.INTERVENTIONS)
def test_masked_gradient_is_the_gradient_of_the_mixed_return(intervention, recovery):
    assert_all_hold([gradient.masked_gradient(intervention, recovery)])


def test_the_first_exit_bounds_beta_and_the_gap():
    assert_all_hold(first_exit.first_exit_checks())


@pytest.mark.parametrize(
    "check",
    [
        gradient.masked_gradient_random,
        gradient.relabelling_variance,
        gradient.importance_bias,
        gap.reward_gap,
        update.masked_surrogate,
    ],
    ids=lambda f: f.__name__,
)
def test_check(check):
    assert_all_hold([check()])


@pytest.mark.parametrize(
    "checks",
    [
        gradient.estimators_side_by_side,
        gradient.action_triggered_shield,
        gap.performance_difference,
        gap.objective_gap,
        gap.invariance_slack,
        gap.fixed_point,
        recovery_value.analytic_on_deterministic,
        recovery_value.multi_sample,
    ],
    ids=lambda f: f.__name__,
)
def test_checks(checks):
    assert_all_hold(checks())


def test_compatibility_loss_is_cloning_and_with_the_hard_gate_cloning_of_successes():
    assert_all_hold(update.update_checks()[1:])


def test_both_outcomes_are_seen():
    succeeded, failed = recovery_value.analytic_on_deterministic(count=3)
    assert succeeded.numbers["segments"] > 50
    assert failed.numbers["segments"] > 5


def test_masked_has_the_least_variance_of_the_estimators_on_the_leaning_robot():
    first, *others = gradient.estimators_side_by_side()
    assert all(first.numbers["variance"] < other.numbers["variance"] for other in others)


# The ground that they stand on


@cheap
@given(seed=seeds)
def test_linear_solves_equal_sums_over_time(seed):
    """V and d against 2000 steps of the recursion; 0.97^2000 < 1e-26."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng)
    policy = random_policy(rng, mdp)
    step = np.einsum("sa,sap->sp", policy, mdp.transition)
    reward = np.einsum("sa,sap,sap->s", policy, mdp.transition, mdp.reward)
    v, d, reached = np.zeros(5), np.zeros(5), mdp.start
    for t in range(2000):
        v = reward + mdp.gamma * step @ v
        d = d + (1 - mdp.gamma) * mdp.gamma**t * reached
        reached = reached @ step
    np.testing.assert_allclose(value(mdp, policy), v, atol=1e-10)
    np.testing.assert_allclose(visitation(mdp, policy), d, atol=1e-10)
    assert visitation(mdp, policy).sum() == pytest.approx(1.0)


@cheap
@given(seed=seeds, handoff=st.integers(0, 3))
def test_enumeration_is_complete(seed, handoff):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, states=4)
    theta, recovery = rng.normal(size=(4, 2)), random_policy(rng, mdp)
    recovering = recovering_table(mdp, JumpStart(constant(handoff)), horizon=3)
    paths = enumerate_trajectories(mdp, theta, recovery, recovering)
    assert paths.probability.sum() == pytest.approx(1.0)
    expected = finite_horizon_return(mdp, theta, recovery, recovering)
    assert paths.probability @ paths.total_reward == pytest.approx(expected, abs=1e-12)


def test_recovering_tables_are_asked_of_the_real_interventions():
    mdp = leaning_robot()
    region = recovering_table(mdp, SafeRegion(constant(1.0)), horizon=2)
    assert region[0, :, 0].tolist() == [False, False, True, True, True]
    jump = recovering_table(mdp, JumpStart(constant(1)), horizon=2)
    assert jump[:, 0, 0].tolist() == [True, False]
    shield = recovering_table(mdp, StateShield(lambda s: s[:, 0] == 3), horizon=2)
    assert np.flatnonzero(shield[1, :, 2]).tolist() == [3]


def test_transitions_are_distributions():
    for mdp in (leaning_robot(), random_mdp(np.random.default_rng(0)), recovery_value.ladder()[0]):
        np.testing.assert_allclose(mdp.transition.sum(axis=-1), 1.0)
        assert mdp.start.sum() == 1.0


# The same on processes of hypothesis's choosing


@cheap
@given(seed=seeds, radius=st.floats(0, 1))
def test_theorem_1_on_any_process(seed, radius):
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, states=4)
    theta, recovery = rng.normal(size=(4, 2)), random_policy(rng, mdp, deterministic=seed % 2 == 0)
    recovering = recovering_table(mdp, SafeRegion(constant(radius)), horizon=3)
    assert gradient.quality(mdp, theta, recovery, recovering, masked).bias < 1e-8


@cheap
@given(seed=seeds, radius=st.floats(0, 1.2))
def test_gap_equality_and_bounds_on_any_process(seed, radius):
    case = gap.random_case(np.random.default_rng(seed), radius)
    left, right, inside = gap.lemma_sides(case)
    assert left == pytest.approx(right, abs=1e-10)
    assert inside < 1e-10
    assert abs(case.gap) <= gap.gap_bound(case) + 1e-12
    assert case.beta <= gap.beta_bounds(case.slack, case.mdp.gamma)[0] + 1e-12


@given(eta=st.floats(0, 1), gamma=st.floats(0.01, 0.999))
def test_beta_bounds_are_ordered(eta, gamma):
    tight, middle, loose = gap.beta_bounds(eta, gamma)
    assert tight <= middle * (1 + 1e-12) <= loose * (1 + 1e-12)


@cheap
@given(eta=st.floats(0, 1), gamma=st.floats(0.01, 0.99))
def test_an_evenly_leaking_region_attains_the_beta_bound(eta, gamma):
    leaky = gap.leaking_region(eta, gamma)
    assert leaky.beta == pytest.approx(gap.beta_bounds(eta, gamma)[0], abs=1e-10)


# The page about it


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "theory.md").read_text()


def test_the_page_names_only_what_exists():
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", PAGE):
        assert f"def {name}(" in tests, name
    for module, name in re.findall(r"`([a-z_]+)\.(\w+)`", PAGE):
        if module == "safeexplorer":
            continue
        paths = (ROOT / "src").glob(f"safeexplorer/**/{module}.py")
        names = [".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in paths]
        assert any(hasattr(importlib.import_module(home), name) for home in names), f"{module}.{name}"


def test_the_page_shows_every_kind_of_check():
    words = " ".join(PAGE.split())
    checks = [*gap.gap_checks(), *recovery_value.value_checks(), *update.update_checks()]
    assert json.loads(json.dumps([check.as_dict() for check in checks], allow_nan=False))
    for check in checks:
        assert check.claim in words, check.claim
