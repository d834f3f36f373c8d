"""The terms of the loss: their numbers by hand, and their gradients by differences."""

import re
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest
from batches import HYPER, assert_bitwise, flat_label, gradients, make_batch, make_params

from safeexplorer.acting.trajectory import Batch
from safeexplorer.learning import loss
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.loss import loss_terms, total_loss
from safeexplorer.learning.methods import CONSTRAINED, METHODS, PPO, SAFEEXPLORER, SOFT, TRUNCATED_IS
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.theory.update import distance, example_rollout, finite_difference

# Gradients are derivatives


@pytest.mark.parametrize("method", [PPO, SAFEEXPLORER, SOFT], ids=lambda m: m.name)
def test_gradients_equal_finite_differences(method):
    params = jax.tree.map(np.float64, make_batch(method)[0])
    with jax.enable_x64(True):
        batch = flat_label(jax.tree.map(np.float64, make_params(method)), example_rollout(), method)
        compute = jax.jit(lambda p: total_loss(p, batch, HYPER)[0])
        gradient = jax.tree.map(np.asarray, jax.jit(jax.grad(compute))(params))
        expected = finite_difference(lambda p: float(compute(p)), params)
    assert distance(gradient, expected) < 1e-8


def test_importance_weight_is_a_constant_to_the_gradient():
    """With log mu = -1000 every weight is the cap, so the term is cap * log pi * A, and differences agree."""
    rollout = example_rollout()
    rollout = rollout._replace(recovery_log_density=np.where(rollout.recovering, -1000.0, 0.0))
    params = jax.tree.map(np.float64, make_params(TRUNCATED_IS))
    with jax.enable_x64(True):
        batch = flat_label(params, rollout, TRUNCATED_IS)
        compute = jax.jit(lambda p: loss_terms(p, batch, HYPER).policy)
        gradient = jax.tree.map(np.asarray, jax.jit(jax.grad(compute))(params))
        expected = finite_difference(lambda p: float(compute(p)), params)
    assert distance(gradient, expected) < 1e-7


# The numbers of each term


def test_the_loss_knows_no_method():
    """Neither the word nor the name of one: what a method is has become numbers of the batch."""
    text = re.sub(r"from safeexplorer\S*", "", Path(loss.__file__).read_text()).lower()
    named = [
        name for name in ("method", "methods", *METHODS, *CONSTRAINED) if re.search(rf"\b{name}\b", text)
    ]
    assert named == []


def test_loss_by_hand():
    """One observation of zeros: mean = bias = 0, sigma = 1, V = 2. Two main steps and two recovery steps."""
    params = init_actor_critic(np.random.default_rng(0), 3, 1, (4,))
    params["critic"][-1]["bias"][:] = 2.0
    log_pi = -0.5 * np.log(2 * np.pi)  # at a = 0; a = 1 has 0.5 less
    number = partial(np.array, dtype=np.float32)
    batch = Batch(
        observation=np.zeros((4, 3), np.float32),
        recovering=np.array([False, False, True, True]),
        action=number([[0], [1], [1], [0]]),
        log_prob=number([log_pi, log_pi - 0.5 - np.log(1.5), 0, 0]),  # rho = 1 and 1.5
        log_mu=np.zeros(4, np.float32),
        advantage=number([3, 5, 0, 0]),  # mean 4, deviation sqrt 2: normalised to -1/sqrt 2 and 1/sqrt 2
        value_target=number([1, 4, 2, 0]),
        policy_weight=number([1, 1, 0, 0]),
        importance_weight=np.zeros(4, np.float32),
        log_cap=np.zeros(4, np.float32),
        value_weight=np.ones(4, np.float32),
        imitation_norm=number([0, 0, 1, 1]),
        gate=number([0, 0, 1, 0]),
        gate_centred=np.zeros(4, np.float32),
    )
    hyper = Hyperparameters(lambda_compat=0.1, entropy_coefficient=0.01)
    losses = jax.jit(loss_terms, static_argnums=2)(params, batch, hyper)
    losses = jax.tree.map(float, losses)
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
    before, after = (gradients(params, b, HYPER)[0] for b in (batch, shifted))
    assert distance(before, after) < 1e-5


def test_truncation_holds_weights_at_the_cap():
    """min(pi / mu, c): whatever the excess, the gradient is that of weight c."""
    params, batch = make_batch(TRUNCATED_IS)
    low, lower = (batch._replace(log_mu=np.full(20, x, np.float32)) for x in (-50.0, -500.0))
    assert_bitwise(gradients(params, low, HYPER), gradients(params, lower, HYPER))


def test_the_cap_scales_the_truncated_term():
    """All weights at the cap: what recovery steps add to the loss at c = 10 is twice that at c = 5."""
    params, batch = make_batch(TRUNCATED_IS)
    capped, gone = (batch._replace(log_mu=np.full(20, x, np.float32)) for x in (-50.0, 500.0))
    halved = capped._replace(log_cap=np.full(20, np.log(5.0), np.float32))
    at_ten, without = (float(gradients(params, b, HYPER)[1].policy) for b in (capped, gone))
    at_five = float(gradients(params, halved, HYPER)[1].policy)
    assert at_ten - without == pytest.approx(2 * (at_five - without), rel=1e-5)
