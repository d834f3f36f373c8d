"""The loss and its gradient: what is masked has no influence, empty sets and far actions do no harm."""

import jax
import numpy as np
import pytest
from batches import HYPER, assert_bitwise, assert_finite, flat_label, gradients, make_batch, make_params

from safeexplorer.acting.trajectory import Batch
from safeexplorer.learning.methods import ANALYTIC, DAGGER, MASKED, METHODS, SAFEEXPLORER, SOFT, UNMASKED
from safeexplorer.theory.update import distance, example_rollout

RECOVERING = example_rollout().recovering.reshape(-1)  # [20]
SUCCEEDED = RECOVERING & (np.arange(20) % 2 == 0)  # robot 0's segment, flattened step by step
IGNORED_OUTSIDE = ("log_prob", "log_mu", "advantage")  # never read on recovery steps
FILLS = (np.nan, np.inf, 1e30, -1e30)


def filled(batch: Batch, rows: np.ndarray, names: tuple[str, ...], fill: float) -> Batch:
    """The batch with `fill` written into some columns of some rows."""
    columns = {}
    for name in names:
        column = getattr(batch, name).copy()
        column[rows] = fill
        columns[name] = column
    return batch._replace(**columns)


# What is masked has no influence


@pytest.mark.parametrize("fill", FILLS)
def test_masked_rows_may_hold_anything(fill):
    """`masked`: the recovery steps carry no weight in any term."""
    params, batch = make_batch(MASKED)
    everything = ("observation", "action", "value_target", "gate", *IGNORED_OUTSIDE)
    assert_bitwise(
        gradients(params, batch, HYPER), gradients(params, filled(batch, RECOVERING, everything, fill), HYPER)
    )


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("method", [ANALYTIC, DAGGER, SAFEEXPLORER, SOFT], ids=lambda m: m.name)
def test_recovery_steps_reach_the_policy_through_imitation_alone(method, fill):
    """Where the value is learned everywhere, a recovery step's ratio and advantage still do not count, and
    neither does its action unless the gate is open."""
    params, batch = make_batch(method)
    spoilt = filled(batch, RECOVERING, IGNORED_OUTSIDE, fill)
    closed = {"analytic": RECOVERING, "safeexplorer": RECOVERING & ~SUCCEEDED}.get(method.name)
    if closed is not None:
        spoilt = filled(spoilt, closed, ("action",), fill)
    assert_bitwise(gradients(params, batch, HYPER), gradients(params, spoilt, HYPER))


def test_deleting_masked_rows_changes_no_gradient():
    params, batch = make_batch(MASKED)
    kept = Batch(*(x[~RECOVERING] for x in batch))
    whole, losses = gradients(params, batch, HYPER)
    rest, losses_of_rest = gradients(params, kept, HYPER)
    for a, b in zip(jax.tree.leaves((whole, losses)), jax.tree.leaves((rest, losses_of_rest)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_a_step_that_counts_does_change_the_gradient():
    """The same alterations of a main step are felt: the tests above can fail."""
    params, batch = make_batch(MASKED)
    main = np.flatnonzero(~RECOVERING)[:1]
    before, _ = gradients(params, batch, HYPER)
    for name in ("observation", "action", "value_target", "log_prob", "advantage"):
        after, _ = gradients(params, filled(batch, main, (name,), 0.3), HYPER)
        assert distance(before, after) > 1e-4, name


def test_the_unmasked_update_does_feel_recovery_steps():
    params, batch = make_batch(UNMASKED)
    before, _ = gradients(params, batch, HYPER)
    after, _ = gradients(params, filled(batch, RECOVERING, ("action",), 0.3), HYPER)
    assert distance(before, after) > 1e-4


# Empty sets


def rows_of(batch: Batch, rows: np.ndarray) -> Batch:
    return Batch(*(x[rows] for x in batch))


@pytest.mark.parametrize("name", METHODS)
def test_minibatches_without_main_or_without_recovery_steps_are_finite(name):
    method = METHODS[name]
    params, batch = make_batch(method)
    recovery, main = (np.resize(np.flatnonzero(mask), 20) for mask in (RECOVERING, ~RECOVERING))
    one = np.concatenate([main[:1], recovery[:19]])
    for rows in (recovery, main, one):
        gradient, losses = gradients(params, rows_of(batch, rows), HYPER)
        assert_finite((gradient, losses))
    _, without_main = gradients(params, rows_of(batch, recovery), HYPER)
    _, without_recovery = gradients(params, rows_of(batch, main), HYPER)
    assert without_recovery.compat == 0
    if method.policy_steps == "main" and method.importance_cap is None:
        assert without_main.policy == 0


def test_one_main_step_alone_has_no_advantage_over_itself():
    params, batch = make_batch(MASKED)
    gradient, losses = gradients(params, rows_of(batch, np.array([0])), HYPER)
    assert losses.policy == 0
    assert_finite(gradient)


# Far actions


@pytest.mark.parametrize("size", [30.0, 1e9])
@pytest.mark.parametrize("name", METHODS)
def test_far_recovery_actions_stay_finite(name, size):
    """sigma is near 1: 30 sigma is a log-probability of -450, 1e9 one of -5e17."""
    method, rollout = METHODS[name], example_rollout()
    action = np.where(rollout.recovering[..., None], size, rollout.action)
    params = make_params(method)
    batch = flat_label(params, rollout._replace(action=action), method)
    gradient, losses = gradients(params, batch, HYPER)
    assert_finite((gradient, losses))
    squares = sum((np.asarray(leaf) ** 2).sum(dtype=np.float32) for leaf in jax.tree.leaves(gradient))
    assert np.isfinite(squares)  # what the global clip computes, in float32


@pytest.mark.parametrize("scale", [0.9, 1.1])
@pytest.mark.parametrize("size", [100.0, 1e9])
def test_a_ratio_that_would_overflow_stays_finite(size, scale):
    """Unmasked, later in the update: at 100 sigma a tenth of drift is a log-ratio of several hundred."""
    rollout = example_rollout()
    action = np.where(rollout.recovering[..., None], size, rollout.action)
    batch = flat_label(make_params(UNMASKED), rollout._replace(action=action), UNMASKED)
    drifted = jax.tree.map(lambda x: x * np.float32(scale), make_params(UNMASKED))
    assert_finite(gradients(drifted, batch, HYPER))
