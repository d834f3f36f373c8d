"""What a Gaussian policy's noise costs, measured on the rollouts that it makes."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import policy_mean
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import label, stored_action
from safeexplorer.learning.loss import weighted_mean
from safeexplorer.learning.methods import Method
from safeexplorer.learning.update import appraise

SMALLEST_REWARD = 1e-6  # of a step, in what it is learned with


@functools.cache
def make_noise_cost(method: Method, hyper: Hyperparameters) -> Callable[[Params, Rollout], Any]:
    """Compile `cost(params, rollout)`: -d ln J / d ln sigma, by the policy gradient theorem

        dJ / d ln sigma = E[A (|a - mean|^2 / sigma^2 - m)] a step,

    over the policy's own steps, as a share of the mean absolute reward of a step. A function of its own:
    what is learned stays the same to the last bit.
    """

    def cost(params: Params, rollout: Rollout) -> Any:
        appraisal = appraise(params, rollout, stored_action(rollout, method))
        batch, _ = label(rollout, appraisal, method, (hyper.gamma, hyper.gae_lambda), hyper.per_segment)
        noise = (batch.action - policy_mean(params, batch.observation, jnp)) * jnp.exp(-params["log_std"])
        score = (noise**2 - 1.0).sum(-1)
        advantage = batch.advantage - weighted_mean(batch.advantage, batch.policy_weight)
        reward = jnp.maximum(jnp.abs(rollout.task_reward).mean(), SMALLEST_REWARD)
        return -weighted_mean(advantage * score, batch.policy_weight) / reward

    return jax.jit(cost)
