"""The loss of every row of the table: its weights say what counts, and how (see `labelling`).

L = - sum(w_pi min(rho A, clip(rho) A) + w_is sg(min(pi / mu, c)) log pi A) / sum(w_pi + w_is)
    + c_v 0.5 sum(w_V (V - R)^2) / sum(w_V)
    - lambda sum(norm w log pi) / sum(norm)
    - c_e H
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.networks import entropy, log_prob, value
from safeexplorer.learning.waiting import Rows

# Recovery actions scored as the policy's can drift by more than exp holds; 20 is a ratio of 5e8.
MAX_LOG_RATIO = 20.0


class Losses(NamedTuple):
    """The terms of the loss on one minibatch, each already with its coefficient, and three diagnostics."""

    policy: Any
    value: Any
    compat: Any
    entropy: Any
    approx_kl: Any
    clip_share: Any
    policy_entropy: Any


def weighted_mean(x: Any, weight: Any) -> Any:
    """sum(w x) / sum(w), and 0 where no weight is: an empty set contributes nothing and no NaN."""
    total = weight.sum()
    return (weight * x).sum() / jnp.where(total > 0, total, 1.0)


def normalised(advantage: Any, weight: Any) -> Any:
    """Advantages to mean 0 and standard deviation 1 over the steps that count; one step alone gives 0."""
    advantage = jnp.where(weight > 0, advantage, 0.0)
    centred = advantage - weighted_mean(advantage, weight)
    variance = (weight * centred**2).sum() / jnp.maximum(weight.sum() - 1.0, 1.0)
    return centred / (jnp.sqrt(variance) + 1e-8)


def loss_terms(
    params: Params, batch: Batch, hyper: Hyperparameters, late: Rows | None = None, imitation_share: Any = 1.0
) -> Losses:
    """The terms of L on one minibatch; `late` are recovery steps whose outcome came after their rollout,
    `imitation_share` multiplies lambda.

    What carries no weight is replaced by zero *before* it enters a function that could overflow: an
    outer mask alone would still let a NaN through the gradient.
    """
    policy_steps = batch.policy_weight + batch.importance_weight
    imitation = imitation_weight(batch)
    acts = (policy_steps > 0) | (imitation != 0)
    used = acts | (batch.value_weight > 0)
    observation = jnp.where(used[:, None], batch.observation, 0.0)
    action = jnp.where(acts[:, None], batch.action, 0.0)
    log_pi = log_prob(params, observation, action)

    advantage = normalised(batch.advantage, policy_steps)
    log_ratio = jnp.where(batch.policy_weight > 0, log_pi - batch.log_prob, 0.0)
    log_ratio = jnp.minimum(log_ratio, MAX_LOG_RATIO)
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1.0 - hyper.clip, 1.0 + hyper.clip)
    surrogate = batch.policy_weight * jnp.minimum(ratio * advantage, clipped * advantage)
    surrogate += importance_term(log_pi, batch, advantage)
    count = policy_steps.sum()
    policy = -surrogate.sum() / jnp.where(count > 0, count, 1.0)

    target = jnp.where(batch.value_weight > 0, batch.value_target, 0.0)
    error = value(params["critic"], observation, batch.recovering) - target
    critic = 0.5 * weighted_mean(error**2, batch.value_weight)

    norm, imitated = batch.imitation_norm.sum(), jnp.where(imitation != 0, imitation * log_pi, 0.0).sum()
    if late is not None:
        norm += late.weight.sum()
        imitated += (late.weight * log_prob(params, late.observation, late.action)).sum()
    compat = -imitated / jnp.where(norm > 0, norm, 1.0)
    spread = entropy(params, observation)
    if spread.ndim:
        spread = weighted_mean(spread, policy_steps)
    return Losses(
        policy=policy,
        value=hyper.value_coefficient * critic,
        compat=hyper.lambda_compat * imitation_share * compat,
        entropy=-hyper.entropy_coefficient * spread,
        approx_kl=weighted_mean(ratio - 1.0 - log_ratio, batch.policy_weight),
        clip_share=weighted_mean(jnp.abs(ratio - 1.0) > hyper.clip, batch.policy_weight),
        policy_entropy=spread,
    )


def imitation_weight(batch: Batch) -> Any:
    """norm * w_t; a gate that judges by comparison is centred over the minibatch's recovery steps first."""
    norm, counts = batch.imitation_norm, batch.imitation_norm > 0
    mean = weighted_mean(jnp.where(counts, batch.gate, 0.0), norm)
    return norm * jnp.where(counts, batch.gate - batch.gate_centred * mean, 0.0)


def importance_term(log_pi: Any, batch: Batch, advantage: Any) -> Any:
    """w_is sg(min(pi / mu, c)) log pi A: truncated before exp, so that no ratio overflows."""
    counts = batch.importance_weight > 0
    log_weight = jnp.where(counts, jnp.minimum(log_pi - batch.log_mu, batch.log_cap), 0.0)
    weight = jax.lax.stop_gradient(jnp.exp(log_weight))
    return batch.importance_weight * weight * jnp.where(counts, log_pi, 0.0) * advantage


def total_loss(
    params: Params, batch: Batch, hyper: Hyperparameters, late: Rows | None = None, imitation_share: Any = 1.0
) -> tuple[Any, Losses]:
    """L and its terms."""
    losses = loss_terms(params, batch, hyper, late, imitation_share)
    return losses.policy + losses.value + losses.compat + losses.entropy, losses
