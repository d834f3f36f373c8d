"""Every check of the theory can fail: break the statement, and it does."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from safeexplorer.learning.methods import SAFEEXPLORER
from safeexplorer.theory import first_exit, gap, gradient, recovery_value, update
from safeexplorer.theory.check import Check
from safeexplorer.theory.enumeration import score_estimator, unmasked
from safeexplorer.theory.mdp import outside_region


def inverted(paths, main):
    """The mask the wrong way round: the score of recovery steps."""
    return score_estimator(paths, main, paths.executed, paths.recovering)


@pytest.mark.parametrize("wrong", [inverted, unmasked])
def test_a_wrong_estimator_fails_theorem_1(wrong):
    assert not gradient.masked_gradient("safe region", "stochastic", wrong).passed
    assert not gradient.masked_gradient_random(count=2, estimator=wrong).passed


def test_half_the_gap_bound_fails(monkeypatch):
    monkeypatch.setattr(gap, "gap_bound", lambda case, true=gap.gap_bound: 0.5 * true(case))
    assert not all(check.passed for check in gap.objective_gap())


def test_a_smaller_beta_bound_fails(monkeypatch):
    monkeypatch.setattr(gap, "beta_bounds", lambda eta, gamma: (0.9 * eta * gamma / (1 - gamma * (1 - eta)),))
    assert not any(check.passed for check in gap.invariance_slack())


def test_a_region_that_misses_a_reachable_state_fails_the_fixed_point(monkeypatch):
    monkeypatch.setattr(gap, "outside_region", lambda mdp, radius: outside_region(mdp, min(radius, 0.3)))
    assert not gap.fixed_point()[0].passed


@pytest.fixture
def fresh_overwrite():
    """Patched functions are traced anew, before and after."""
    recovery_value.overwrite.clear_cache()
    yield
    recovery_value.overwrite.clear_cache()


def one_step_short(value, segments, gamma):
    return jnp.where(segments.start, gamma ** (segments.length - 1) * segments.end_value, value)


def one_step_long(value, segments, gamma):
    return jnp.where(segments.start, gamma**segments.length * segments.end_value, value)


@pytest.mark.parametrize(("wrong", "fails"), [(one_step_short, 0), (one_step_long, 1)])
def test_a_wrong_exponent_fails_its_outcome(monkeypatch, fresh_overwrite, wrong, fails):
    monkeypatch.setattr(recovery_value, "analytic_value", wrong)
    passed = [check.passed for check in recovery_value.analytic_on_deterministic(count=2)]
    assert passed == [outcome != fails for outcome in (0, 1)]


def test_ignoring_re_rolls_fails_the_variance_law(monkeypatch, fresh_overwrite):
    monkeypatch.setattr(recovery_value, "average_rerolls", lambda value, rollout, segments: value)
    unbiased, law = recovery_value.multi_sample(most=2)
    assert unbiased.passed
    assert not law.passed


def test_an_unmasked_learner_fails_the_surrogate(monkeypatch):
    monkeypatch.setattr(update, "SAFEEXPLORER", replace(SAFEEXPLORER, policy_steps="all"))
    assert not update.masked_surrogate().passed


def test_the_wrong_gate_fails_the_imitation_limit(monkeypatch):
    def always(rollout, appraisal, method, discounts, label=update.label):
        return label(rollout, appraisal, replace(method, gate="always"), discounts)

    monkeypatch.setattr(update, "label", always)
    assert not any(check.passed for check in update.imitation_limit(SAFEEXPLORER, "", ""))


def test_nan_never_passes():
    assert not Check("", "", np.nan, "<=", 1.0).passed
    assert not Check("", "", np.nan, ">=", 1.0).passed


def test_a_first_exit_that_is_seen_a_step_late_fails(monkeypatch):
    late = lambda case, policy, true=first_exit.first_exit_discount: case.mdp.gamma * true(case, policy)  # noqa: E731
    monkeypatch.setattr(first_exit, "first_exit_discount", late)
    alike, beta, *_ = first_exit.first_exit_bounds()
    assert alike.passed and not beta.passed


def test_a_mixed_policy_that_differs_inside_is_noticed(monkeypatch):
    def swapped(case, true=first_exit.random_cases):
        return [one._replace(mixed=one.mixed[:, ::-1]) for one in true(case)]

    monkeypatch.setattr(first_exit, "random_cases", swapped)
    assert not first_exit.first_exit_bounds()[0].passed
