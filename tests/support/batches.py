"""Small batches for tests of the learner: ten steps of two robots, one recovery that succeeds and one that fails."""

from functools import partial

import jax
import numpy as np

from safeexplorer.acting.trajectory import Batch, by_step
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import label, stored_action
from safeexplorer.learning.loss import total_loss
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import appraise
from safeexplorer.theory.update import example_rollout

HYPER = Hyperparameters(lambda_compat=0.5, entropy_coefficient=0.01)

gradients = jax.jit(jax.grad(total_loss, has_aux=True), static_argnums=2)


@partial(jax.jit, static_argnums=2)
def flat_label(params, rollout, method):
    appraisal = appraise(params, rollout, stored_action(rollout, method))
    batch, _ = label(rollout, appraisal, method, (HYPER.gamma, HYPER.gae_lambda))
    return by_step(batch)


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


def assert_bitwise(first, second):
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def assert_finite(tree):
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(tree))
