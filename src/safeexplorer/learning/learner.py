"""One update of Algorithm 1: appraise, label, then epochs of minibatches. One compiled function.

The loss is the same for every method; the method is in the weights (see `labelling`):

    L = - sum(w_pi min(rho A, clip(rho) A) + w_is sg(min(pi / mu, c)) log pi A) / sum(w_pi + w_is)
        + c_v 0.5 sum(w_V (V - R)^2) / sum(w_V)
        - lambda sum(norm w log pi) / sum(norm)
        - c_e H
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch, Rollout, Segments
from safeexplorer.learning.diagnostics import importance_diagnostics
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import Appraisal, label, stored_action
from safeexplorer.learning.methods import Method
from safeexplorer.learning.networks import entropy, log_prob, value

# Recovery actions scored as the policy's (`unmasked`) can drift by more than exp holds; 20 is a ratio of 5e8.
MAX_LOG_RATIO = 20.0


class LearnerState(NamedTuple):
    """Everything that an update changes."""

    params: Params
    optimizer: Any  # of all parameters as one vector, `ravel_pytree(params)`


class Losses(NamedTuple):
    """The terms of the loss on one minibatch, each already with its coefficient, and three diagnostics."""

    policy: Any
    value: Any
    compat: Any
    entropy: Any
    approx_kl: Any
    clip_share: Any
    policy_entropy: Any


def optimizer(hyper: Hyperparameters) -> optax.GradientTransformation:
    """Global-norm clip, then Adam; the (annealed) learning rate multiplies the result."""
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_gradient_norm),
        optax.scale_by_adam(eps=hyper.adam_epsilon),
    )


def init_learner(params: Params, hyper: Hyperparameters) -> LearnerState:
    """Fresh optimiser state around `params`."""
    params = jax.tree.map(jnp.asarray, params)
    return LearnerState(params, optimizer(hyper).init(ravel_pytree(params)[0]))


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


def loss_terms(params: Params, batch: Batch, method: Method, hyper: Hyperparameters) -> Losses:
    """The terms of L on one minibatch.

    What carries no weight is replaced by zero *before* it enters a function that could overflow: an
    outer mask alone would still let a NaN through the gradient.
    """
    policy_steps = batch.policy_weight + batch.importance_weight
    imitation = imitation_weight(batch, method)
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
    if method.importance_cap is not None:
        surrogate += importance_term(log_pi, batch, advantage, method.importance_cap)
    count = policy_steps.sum()
    policy = -surrogate.sum() / jnp.where(count > 0, count, 1.0)

    target = jnp.where(batch.value_weight > 0, batch.value_target, 0.0)
    error = value(params["critic"], observation, batch.outside) - target
    critic = 0.5 * weighted_mean(error**2, batch.value_weight)

    norm = batch.imitation_norm.sum()
    compat = -jnp.where(imitation != 0, imitation * log_pi, 0.0).sum() / jnp.where(norm > 0, norm, 1.0)
    spread = entropy(params, observation)
    if spread.ndim:
        spread = weighted_mean(spread, policy_steps)
    return Losses(
        policy=policy,
        value=hyper.value_coefficient * critic,
        compat=hyper.lambda_compat * compat,
        entropy=-hyper.entropy_coefficient * spread,
        approx_kl=weighted_mean(ratio - 1.0 - log_ratio, batch.policy_weight),
        clip_share=weighted_mean(jnp.abs(ratio - 1.0) > hyper.clip, batch.policy_weight),
        policy_entropy=spread,
    )


def imitation_weight(batch: Batch, method: Method) -> Any:
    """norm * w_t; the soft gate is centred over the minibatch's recovery steps first."""
    gate = jnp.where(batch.imitation_norm > 0, batch.gate, 0.0)
    if method.gate == "soft":
        gate = gate - weighted_mean(gate, batch.imitation_norm)
    return batch.imitation_norm * gate


def importance_term(log_pi: Any, batch: Batch, advantage: Any, cap: float) -> Any:
    """w_is sg(min(pi / mu, cap)) log pi A: truncated before exp, so that no ratio overflows."""
    counts = batch.importance_weight > 0
    log_weight = jnp.where(counts, jnp.minimum(log_pi - batch.log_mu, math.log(cap)), 0.0)
    weight = jax.lax.stop_gradient(jnp.exp(log_weight))
    return batch.importance_weight * weight * jnp.where(counts, log_pi, 0.0) * advantage


def total_loss(params: Params, batch: Batch, method: Method, hyper: Hyperparameters) -> tuple[Any, Losses]:
    """L and its terms."""
    losses = loss_terms(params, batch, method, hyper)
    return losses.policy + losses.value + losses.compat + losses.entropy, losses


def appraise(params: Params, rollout: Rollout, action: Any) -> Appraisal:
    """Values and log-probabilities of the whole rollout in one batch."""
    return Appraisal(
        value=value(params["critic"], rollout.observation, rollout.recovering),
        next_value=value(params["critic"], rollout.next_observation, rollout.next_outside),
        log_prob=log_prob(params, rollout.observation, action),
    )


def gradient_norms(params: Params, batch: Batch, method: Method, hyper: Hyperparameters) -> dict[str, Any]:
    """The norm of each term's own gradient: a global clip lets one term starve another unseen."""
    norms = {}
    for term in ("policy", "value", "compat"):
        gradient = jax.grad(lambda p, term=term: getattr(loss_terms(p, batch, method, hyper), term))(params)
        norms[f"gradient_{term}"] = optax.tree.norm(gradient)
    return norms


def pack(batch: Batch) -> tuple[Any, Callable[[Any], Batch]]:
    """All columns of a flattened batch side by side, so that one gather shuffles them, and the way back."""
    columns = [x if x.ndim == 2 else x[:, None] for x in batch]
    edges = np.cumsum([0] + [c.shape[1] for c in columns])
    flat = [x.ndim == 1 for x in batch]

    def unpack(rows: Any) -> Batch:
        parts = [rows[:, a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]
        parts = [part[:, 0] if one else part for part, one in zip(parts, flat, strict=True)]
        return Batch(*parts)._replace(outside=parts[1] > 0.5)

    return jnp.concatenate([c.astype(jnp.float32) for c in columns], axis=1), unpack


@functools.cache
def make_learn(method: Method, hyper: Hyperparameters) -> Callable:
    """Compile `learn(state, rollout, order, learning_rate) -> (state, metrics)`.

    `order` [epochs, B] holds one permutation of the flattened rollout per epoch; randomness is an
    argument, so that the update is a pure function and can be repeated exactly.
    """
    adam = optimizer(hyper)
    discounts = (hyper.gamma, hyper.gae_lambda)

    def learn(state: LearnerState, rollout: Rollout, order: Any, learning_rate: Any):
        appraisal = appraise(state.params, rollout, stored_action(rollout, method))
        labelled, segments = label(rollout, appraisal, method, discounts, hyper.per_segment)
        batch = Batch(*(x.reshape(-1, *x.shape[2:]) for x in labelled))
        columns, unpack = pack(batch)
        theta, params_of = ravel_pytree(state.params)  # one vector: Adam leaf by leaf takes 4% longer
        floor, _ = ravel_pytree(lowest(state.params, hyper.min_log_std))

        def loss(theta, batch):
            return total_loss(params_of(theta), batch, method, hyper)

        def minibatch_step(carry, rows):
            theta, moments = carry
            gradient, losses = jax.grad(loss, has_aux=True)(theta, unpack(rows))
            step, moments = adam.update(gradient, moments)
            return (jnp.maximum(theta - learning_rate * step, floor), moments), losses

        def epoch(carry, order):
            shuffled = columns[order].reshape(hyper.minibatches, -1, columns.shape[1])
            return jax.lax.scan(minibatch_step, carry, shuffled)

        first = unpack(columns[order[0, : columns.shape[0] // hyper.minibatches]])
        extra = gradient_norms(state.params, first, method, hyper)
        if method.sampled_recovery:
            extra |= importance_diagnostics(state.params, batch)
        (theta, moments), losses = jax.lax.scan(epoch, (theta, state.optimizer), order)
        state = LearnerState(params_of(theta), moments)
        last_epoch = jax.tree.map(lambda x: x[-1].mean(), losses)
        metrics = summarise(state, last_epoch, labelled, appraisal, segments, rollout) | extra
        return state, metrics

    return jax.jit(learn)


def lowest(params: Params, min_log_std: float) -> Params:
    """The least that each parameter may be: only the spread of the policy has a floor."""
    free = jax.tree.map(lambda x: jnp.full_like(x, -jnp.inf), params)
    spread = {"log_std": jnp.full_like(params["log_std"], min_log_std)} if "log_std" in params else {}
    return free | spread


def summarise(
    state: LearnerState,
    losses: Losses,
    batch: Batch,
    appraisal: Appraisal,
    segments: Segments,
    rollout: Rollout,
) -> dict[str, Any]:
    """One row of learning metrics."""
    count = segments.start.sum()
    happened = rollout.recovering.size - (0 if rollout.idle is None else rollout.idle.sum())
    counted = batch.value_weight
    spread = weighted_variance(batch.value_target, counted)
    unexplained = weighted_variance(batch.value_target - appraisal.value, counted)
    finite = jnp.array([jnp.isfinite(x).all() for x in jax.tree.leaves(state)]).all()
    return {
        "policy_loss": losses.policy,
        "value_loss": losses.value,
        "compat_loss": losses.compat,
        "approx_kl": losses.approx_kl,
        "clip_share": losses.clip_share,
        "entropy": losses.policy_entropy,
        "explained_variance": jnp.where(spread > 0, 1.0 - unexplained / spread, 0.0),
        "recovery_rate": rollout.recovering.sum() / happened,
        "segments": count,
        "segment_length": rollout.recovering.sum() / jnp.maximum(count, 1),
        "segment_success": (segments.start & segments.succeeded).sum() / jnp.maximum(count, 1),
        "finite": finite,
    }


def weighted_variance(x: Any, weight: Any) -> Any:
    """Variance over the rows that carry weight."""
    x = jnp.where(weight > 0, x, 0.0)
    return weighted_mean((x - weighted_mean(x, weight)) ** 2, weight)
