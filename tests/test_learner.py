"""The loss and its gradient: what is masked has no influence, empty sets and far actions do no harm."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from safeexplorer.labelling import label, stored_action
from safeexplorer.learner import Hyperparameters, appraise, loss_terms, total_loss
from safeexplorer.methods import (
    ANALYTIC,
    DAGGER,
    MASKED,
    METHODS,
    PPO,
    SAFEEXPLORER,
    SOFT,
    TRUNCATED_IS,
    UNMASKED,
)
from safeexplorer.networks import init_actor_critic
from safeexplorer.theory.update import distance, example_rollout, finite_difference
from safeexplorer.trajectory import Batch

HYPER = Hyperparameters(lambda_compat=0.5, entropy_coefficient=0.01)
RECOVERING = example_rollout().recovering.reshape(-1)  # [20]
SUCCEEDED = RECOVERING & (np.arange(20) % 2 == 0)  # robot 0's segment, flattened step by step
IGNORED_OUTSIDE = ("log_prob", "log_mu", "advantage")  # never read on recovery steps
FILLS = (np.nan, np.inf, 1e30, -1e30)

gradients = jax.jit(jax.grad(total_loss, has_aux=True), static_argnums=(2, 3))


@partial(jax.jit, static_argnums=2)
def flat_label(params, rollout, method):
    appraisal = appraise(params, rollout, stored_action(rollout, method))
    batch, _ = label(rollout, appraisal, method, (HYPER.gamma, HYPER.gae_lambda))
    return Batch(*(x.reshape(-1, *x.shape[2:]) for x in batch))


def make_params(method, seed=0):
    """A small network with random biases and spread, so that no gradient is zero by accident."""
    rng = np.random.default_rng(seed)
    params = init_actor_critic(rng, 3, 2, (8,), heads=method.critic_heads)
    return jax.tree.map(lambda x: (x + 0.2 * rng.normal(size=x.shape)).astype(np.float32), params)


def make_batch(method, rollout=None) -> tuple[dict, Batch]:
    """Parameters a little away from those that collected the rollout (so rho != 1), and the batch."""
    batch = flat_label(make_params(method), example_rollout() if rollout is None else rollout, method)
    params = jax.tree.map(lambda x: x * np.float32(1.05), make_params(method))
    return params, Batch(*map(np.array, batch))


def filled(batch: Batch, rows: np.ndarray, names: tuple[str, ...], fill: float) -> Batch:
    """The batch with `fill` written into some columns of some rows."""
    columns = {}
    for name in names:
        column = getattr(batch, name).copy()
        column[rows] = fill
        columns[name] = column
    return batch._replace(**columns)


def assert_bitwise(first, second):
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def assert_finite(tree):
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))


# What is masked has no influence


@pytest.mark.parametrize("fill", FILLS)
def test_masked_rows_may_hold_anything(fill):
    """`masked`: the recovery steps carry no weight in any term."""
    params, batch = make_batch(MASKED)
    everything = ("observation", "action", "value_target", "gate", *IGNORED_OUTSIDE)
    assert_bitwise(
        gradients(params, batch, MASKED, HYPER),
        gradients(params, filled(batch, RECOVERING, everything, fill), MASKED, HYPER),
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
    assert_bitwise(gradients(params, batch, method, HYPER), gradients(params, spoilt, method, HYPER))


def test_deleting_masked_rows_changes_no_gradient():
    params, batch = make_batch(MASKED)
    kept = Batch(*(x[~RECOVERING] for x in batch))
    whole, losses = gradients(params, batch, MASKED, HYPER)
    rest, losses_of_rest = gradients(params, kept, MASKED, HYPER)
    for a, b in zip(jax.tree.leaves((whole, losses)), jax.tree.leaves((rest, losses_of_rest)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_a_step_that_counts_does_change_the_gradient():
    """The same alterations of a main step are felt: the tests above can fail."""
    params, batch = make_batch(MASKED)
    main = np.flatnonzero(~RECOVERING)[:1]
    before, _ = gradients(params, batch, MASKED, HYPER)
    for name in ("observation", "action", "value_target", "log_prob", "advantage"):
        after, _ = gradients(params, filled(batch, main, (name,), 0.3), MASKED, HYPER)
        assert distance(before, after) > 1e-4, name


def test_the_unmasked_update_does_feel_recovery_steps():
    params, batch = make_batch(UNMASKED)
    before, _ = gradients(params, batch, UNMASKED, HYPER)
    after, _ = gradients(params, filled(batch, RECOVERING, ("action",), 0.3), UNMASKED, HYPER)
    assert distance(before, after) > 1e-4


# Empty sets


def rows_of(batch: Batch, rows: np.ndarray) -> Batch:
    return Batch(*(x[rows] for x in batch))


@pytest.mark.parametrize("name", METHODS)
def test_minibatches_without_main_or_without_recovery_steps_are_finite(name):
    method = METHODS[name]
    params, batch = make_batch(method)
    recovery, main = np.flatnonzero(RECOVERING)[:6], np.flatnonzero(~RECOVERING)[:6]
    one = np.concatenate([main[:1], recovery[:5]])
    for rows in (recovery, main, one):
        gradient, losses = gradients(params, rows_of(batch, rows), method, HYPER)
        assert_finite((gradient, losses))
    _, without_main = gradients(params, rows_of(batch, recovery), method, HYPER)
    _, without_recovery = gradients(params, rows_of(batch, main), method, HYPER)
    assert without_recovery.compat == 0
    if method.policy_steps == "main" and method.importance_cap is None:
        assert without_main.policy == 0


def test_one_main_step_alone_has_no_advantage_over_itself():
    params, batch = make_batch(MASKED)
    gradient, losses = gradients(params, rows_of(batch, np.array([0])), MASKED, HYPER)
    assert losses.policy == 0
    assert_finite(gradient)


# Far actions


@pytest.mark.parametrize("size", [30.0, 1e4, 1e9])
@pytest.mark.parametrize("name", METHODS)
def test_far_recovery_actions_stay_finite(name, size):
    """sigma is near 1: 30 sigma is a log-probability of -450, 1e9 one of -5e17."""
    method, rollout = METHODS[name], example_rollout()
    action = np.where(rollout.recovering[..., None], size, rollout.action)
    params = make_params(method)
    batch = flat_label(params, rollout._replace(action=action), method)
    gradient, losses = gradients(params, batch, method, HYPER)
    assert_finite((gradient, losses))
    squares = sum((np.asarray(leaf) ** 2).sum(dtype=np.float32) for leaf in jax.tree.leaves(gradient))
    assert np.isfinite(squares)  # what the global clip computes, in float32


# Gradients are derivatives


@pytest.mark.parametrize("method", [PPO, MASKED, SAFEEXPLORER, SOFT, DAGGER], ids=lambda m: m.name)
def test_gradients_equal_finite_differences(method):
    params = jax.tree.map(np.float64, make_batch(method)[0])
    with jax.enable_x64(True):
        batch = flat_label(jax.tree.map(np.float64, make_params(method)), example_rollout(), method)
        loss = jax.jit(lambda p: total_loss(p, batch, method, HYPER)[0])
        gradient = jax.tree.map(np.asarray, jax.jit(jax.grad(loss))(params))
        expected = finite_difference(lambda p: float(loss(p)), params)
    assert distance(gradient, expected) < 1e-8


def test_importance_weight_is_a_constant_to_the_gradient():
    """With log mu = -1000 every weight is the cap, so the term is cap * log pi * A, and differences agree."""
    rollout = example_rollout()
    rollout = rollout._replace(recovery_log_density=np.where(rollout.recovering, -1000.0, 0.0))
    params = jax.tree.map(np.float64, make_params(TRUNCATED_IS))
    with jax.enable_x64(True):
        batch = flat_label(params, rollout, TRUNCATED_IS)
        loss = jax.jit(lambda p: loss_terms(p, batch, TRUNCATED_IS, HYPER).policy)
        gradient = jax.tree.map(np.asarray, jax.jit(jax.grad(loss))(params))
        expected = finite_difference(lambda p: float(loss(p)), params)
    assert distance(gradient, expected) < 1e-7


# The numbers of each term


def test_loss_by_hand():
    """One observation of zeros: mean = bias = 0, sigma = 1, V = 2. Two main steps and two recovery steps."""
    params = init_actor_critic(np.random.default_rng(0), 3, 1, (4,))
    params["critic"][-1]["bias"][:] = 2.0
    log_pi = -0.5 * np.log(2 * np.pi)  # at a = 0; a = 1 has 0.5 less
    number = partial(np.array, dtype=np.float32)
    batch = Batch(
        observation=np.zeros((4, 3), np.float32),
        outside=np.array([False, False, True, True]),
        action=number([[0], [1], [1], [0]]),
        log_prob=number([log_pi, log_pi - 0.5 - np.log(1.5), 0, 0]),  # rho = 1 and 1.5
        log_mu=np.zeros(4, np.float32),
        advantage=number([3, 5, 0, 0]),  # mean 4, deviation sqrt 2: normalised to -1/sqrt 2 and 1/sqrt 2
        value_target=number([1, 4, 2, 0]),
        policy_weight=number([1, 1, 0, 0]),
        importance_weight=np.zeros(4, np.float32),
        value_weight=np.ones(4, np.float32),
        imitation_norm=number([0, 0, 1, 1]),
        gate=number([0, 0, 1, 0]),
    )
    hyper = Hyperparameters(lambda_compat=0.1, entropy_coefficient=0.01)
    losses = loss_terms(params, batch, SAFEEXPLORER, hyper)
    # -(1 * -1/sqrt 2 + min(1.5, 1.2) * 1/sqrt 2) / 2
    assert losses.policy == pytest.approx(-0.2 / np.sqrt(2) / 2, rel=1e-5)
    # c_v * 0.5 * mean(1, 4, 0, 4) = 0.5 * 0.5 * 9 / 4
    assert losses.value == pytest.approx(0.5 * 0.5 * 9 / 4, rel=1e-6)
    # -lambda / N_rec * log pi(1) = -0.1 / 2 * (log pi(0) - 0.5): the failed segment counts in N_rec only
    assert losses.compat == pytest.approx(-0.1 / 2 * (log_pi - 0.5), rel=1e-6)
    # -c_e * (1 + log 2 pi) / 2
    assert losses.entropy == pytest.approx(-0.01 * 0.5 * (1 + np.log(2 * np.pi)), rel=1e-6)
    assert losses.clip_share == 0.5


def test_soft_gate_is_centred_over_the_minibatch():
    """Adding a constant to all gates changes nothing: the gate has zero mean per minibatch."""
    params, batch = make_batch(SOFT)
    shifted = batch._replace(gate=batch.gate + np.float32(3.0))
    before, after = (gradients(params, b, SOFT, HYPER)[0] for b in (batch, shifted))
    assert distance(before, after) < 1e-5


def test_truncation_holds_weights_at_the_cap():
    """min(pi / mu, c): whatever the excess, the gradient is that of weight c."""
    params, batch = make_batch(TRUNCATED_IS)
    low, lower = (batch._replace(log_mu=np.full(20, x, np.float32)) for x in (-50.0, -500.0))
    assert_bitwise(gradients(params, low, TRUNCATED_IS, HYPER), gradients(params, lower, TRUNCATED_IS, HYPER))


def test_the_cap_scales_the_truncated_term():
    """All weights at the cap: what recovery steps add to the loss at c = 10 is twice that at c = 5."""
    params, batch = make_batch(TRUNCATED_IS)
    capped, gone = (batch._replace(log_mu=np.full(20, x, np.float32)) for x in (-50.0, 500.0))
    halved = replace(TRUNCATED_IS, importance_cap=5.0)
    at_ten, without = (float(gradients(params, b, TRUNCATED_IS, HYPER)[1].policy) for b in (capped, gone))
    at_five = float(gradients(params, capped, halved, HYPER)[1].policy)
    assert at_ten - without == pytest.approx(2 * (at_five - without), rel=1e-5)
