"""Angles, fits and importance weights in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from recordings import drawn, three_episodes

from safeexplorer.audit import audit
from safeexplorer.audit.gradients import Fit, angle, measure_importance


def test_angles_in_closed_form():
    """Masked, a = 1, -1 and A = 1, -1 normalised to +-1/sqrt 2: (-1/sqrt 2, 0).

    Unmasked, the recovery falls with a = 0, r = -3: A = 1, -1, -3 is normalised to 1, 0, -1, which gives
    (-1/3, -1/3): 45 degrees, |.| = sqrt 2 / 3. Relabelled with a = 2 instead: (1/3, 1): 180 - atan 3 degrees,
    |.| = sqrt 10 / 3.
    """
    params, rollout = three_episodes()
    found = audit(rollout, params)
    gradients = found.gradients
    assert gradients.masked_norm == pytest.approx(np.sqrt(0.5), rel=1e-6)
    expected = {
        "unmasked": (45.0, 2 / 3),
        "relabelled": (180 - np.degrees(np.arctan(3)), np.sqrt(20) / 3),
        "analytic": (0.0, 1.0),  # the overwritten value is of an episode of its own
    }
    for rule, numbers in expected.items():
        row = gradients.compared[rule]
        assert (row.angle, row.norm_ratio) == pytest.approx(numbers, rel=1e-5, abs=1e-5)
    assert gradients.halves_angle is None  # one step alone is no gradient
    # (a - mean) / sigma: sqrt mean(1, 1) under the policy, 0 under the recovery.
    assert found.fit == Fit(policy=1.0, recovery=0.0, log_prob_error=None)


def test_without_recovery_every_rule_has_the_masked_gradient():
    params, rollout = three_episodes()
    calm = rollout._replace(recovering=np.zeros((3, 1), bool), action=rollout.proposed)
    gradients = audit(calm, params).gradients
    assert set(gradients.compared) == {"unmasked", "relabelled", "analytic"}
    for row in gradients.compared.values():
        assert (row.angle, row.norm_ratio) == pytest.approx((0.0, 1.0), abs=1e-4)


def test_angle_of_nearly_equal_directions_is_exact():
    """arccos of a dot product would lose everything below 1e-6 degrees."""
    assert angle(np.array([1.0, 0.0]), np.array([2.0, 2e-10])) == pytest.approx(np.degrees(1e-10), rel=1e-6)
    assert angle(np.zeros(2), np.ones(2)) is None


def test_without_a_policy_nothing_is_said_about_gradients():
    found = audit(three_episodes()[1])
    assert found.gradients is None and found.fit is None and found.importance is None
    assert set(found.missing) == {"gradients", "importance"}


def test_effective_sample_size_by_hand():
    # Weights 1, 1, 2, times e^-800, which no float holds: (1 + 1 + 2)^2 / (3 (1 + 1 + 4)) = 16 / 18, mean 4 / 3.
    rollout = drawn(".rrr")._replace(recovery_log_density=np.full((4, 1), 800.0))
    found = measure_importance(rollout, np.log([[9.0], [1.0], [1.0], [2.0]]))
    assert found.ess_share == pytest.approx(16 / 18)
    assert found.log10_mean == pytest.approx((np.log(4 / 3) - 800) / np.log(10))


def test_recorded_log_probabilities_serve_where_there_is_no_policy():
    params, rollout = three_episodes()
    rollout = rollout._replace(
        recovering=np.array([[False], [True], [True]]), recovery_log_density=np.array([[0.0], [-3.0], [-1.0]])
    )
    # The policy is a standard normal at a = 1, -1, 0.
    log_prob = -0.5 * np.array([[1.0], [1.0], [0.0]]) - 0.5 * np.log(2 * np.pi)
    with_policy, without = audit(rollout, params, log_prob=log_prob), audit(rollout, log_prob=log_prob)
    assert without.importance == replace(with_policy.importance, log10_variance_ratio=None)
    # At a = -1, mu = e^-3 and at a = 0, mu = e^-1 the weights pi / mu are:
    first, second = np.exp(3 - 0.5) / np.sqrt(2 * np.pi), np.exp(1) / np.sqrt(2 * np.pi)
    share = (first + second) ** 2 / (2 * (first**2 + second**2))
    assert with_policy.importance.ess_share == pytest.approx(share, rel=1e-5)
    # A grad log pi = A (a, a^2 - 1) is (1, 0), (1, 0), (0, 3) for A = 1, -1, -3: masked (1, 0) alone is left, of
    # variance 1/3 - (1/3)^2; sampled they are (1, 0), (w1, 0), (0, 3 w2).
    masked = 1 / 3 - 1 / 9
    sampled = (1 + first**2 + 9 * second**2) / 3 - (1 + first) ** 2 / 9 - second**2
    ratio = np.log10(sampled / masked)
    assert with_policy.importance.log10_variance_ratio == pytest.approx(ratio, rel=1e-4)
    assert with_policy.fit.log_prob_error == 0
    assert audit(rollout, params, log_prob=log_prob + 1.0).fit.log_prob_error == pytest.approx(1.0)
