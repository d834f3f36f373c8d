"""One update of Algorithm 1: appraise, label, then epochs of minibatches. One compiled function."""

import functools
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
from safeexplorer.learning.loss import Losses, loss_terms, total_loss, weighted_mean
from safeexplorer.learning.methods import Method
from safeexplorer.learning.networks import log_prob, value
from safeexplorer.learning.waiting import Rows


class LearnerState(NamedTuple):
    """Everything that an update changes."""

    params: Params
    optimizer: Any  # of all parameters as one vector, `ravel_pytree(params)`


def optimizer(hyper: Hyperparameters) -> optax.GradientTransformation:
    """Global-norm clip, then Adam; the (annealed) learning rate multiplies the result."""
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_gradient_norm), optax.scale_by_adam(eps=hyper.adam_epsilon)
    )


def init_learner(params: Params, hyper: Hyperparameters) -> LearnerState:
    """Fresh optimiser state around `params`."""
    params = jax.tree.map(jnp.asarray, params)
    return LearnerState(params, optimizer(hyper).init(ravel_pytree(params)[0]))


def appraise(params: Params, rollout: Rollout, action: Any) -> Appraisal:
    """Values and log-probabilities of the whole rollout in one batch."""
    return Appraisal(
        value=value(params["critic"], rollout.observation, rollout.recovering),
        next_value=value(params["critic"], rollout.next_observation, rollout.next_outside),
        log_prob=log_prob(params, rollout.observation, action),
    )


def gradient_norms(params: Params, batch: Batch, hyper: Hyperparameters) -> dict[str, Any]:
    """The norm of each term's own gradient: a global clip lets one term starve another unseen."""
    norms = {}
    for term in ("policy", "value", "compat"):
        gradient = jax.grad(lambda p, term=term: getattr(loss_terms(p, batch, hyper), term))(params)
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
        return Batch(*parts)._replace(recovering=parts[1] > 0.5)

    return jnp.concatenate([c.astype(jnp.float32) for c in columns], axis=1), unpack


@functools.cache
def make_learn(method: Method, hyper: Hyperparameters) -> Callable:
    """Compile `learn(state, rollout, order, learning_rate, spread, late) -> (state, metrics)`.

    `order` [epochs, B] holds one permutation of the flattened rollout per epoch; randomness is an
    argument, so that the update is a pure function and can be repeated exactly. `spread` holds the lowest and the
    highest log sigma, [m] each; without it the floor is the hyperparameters'. `late` are rows to imitate besides.
    `pace` multiplies the policy's steps where the method limits its updates; a minibatch on which it has moved too far
    moves it no further, and the critic's gradient is clipped apart from the policy's. `imitation` multiplies lambda.
    With a `desired_kl` the learning rate follows the minibatches (`adapted`); the metrics hold its last value.
    """
    adam = optimizer(hyper)
    discounts = (hyper.gamma, hyper.gae_lambda)

    def learn(
        state: LearnerState,
        rollout: Rollout,
        order: Any,
        learning_rate: Any,
        spread: tuple[Any, Any] | None = None,
        late: Rows | None = None,
        pace: Any = 1.0,
        imitation: Any = 1.0,
    ):
        appraisal = appraise(state.params, rollout, stored_action(rollout, method))
        labelled, segments = label(rollout, appraisal, method, discounts, hyper.per_segment)
        batch = Batch(*(x.reshape(-1, *x.shape[2:]) for x in labelled))
        columns, unpack = pack(batch)
        theta, params_of = ravel_pytree(state.params)  # one vector: Adam leaf by leaf takes 4% longer
        lowest, highest = (hyper.min_log_std, None) if spread is None else spread
        floor, _ = ravel_pytree(spread_limit(state.params, lowest, -jnp.inf))
        ceiling = None if highest is None else ravel_pytree(spread_limit(state.params, highest, jnp.inf))[0]
        late = None if late is None else in_minibatches(late, hyper.minibatches)
        of_policy, _ = ravel_pytree(jax.tree.map_with_path(is_policy, state.params))

        def loss(theta, batch, late):
            return total_loss(params_of(theta), batch, hyper, late, imitation)

        def minibatch_step(carry, minibatch):
            (theta, moments, rate), (rows, late) = carry, minibatch
            gradient, losses = jax.grad(loss, has_aux=True)(theta, unpack(rows), late)
            if method.limit_updates:
                gradient = clipped_apart(gradient, of_policy, hyper.max_gradient_norm)
            step, moments = adam.update(gradient, moments)
            if method.limit_updates:
                allowed = jnp.where(losses.approx_kl > TOO_FAR * hyper.target_kl, 0.0, pace)
                step = jnp.where(of_policy > 0, allowed * step, step)
            if hyper.desired_kl is not None:
                rate = adapted(rate, losses.approx_kl, hyper.desired_kl)
            theta = jnp.maximum(theta - rate * step, floor)
            return (theta if ceiling is None else jnp.minimum(theta, ceiling), moments, rate), losses

        def epoch(carry, order):
            shuffled = columns[order].reshape(hyper.minibatches, -1, columns.shape[1])
            return jax.lax.scan(minibatch_step, carry, (shuffled, late))

        first = unpack(columns[order[0, : min(columns.shape[0] // hyper.minibatches, DIAGNOSED)]])
        extra = gradient_norms(state.params, first, hyper)
        if method.sampled_recovery:
            extra |= importance_diagnostics(state.params, batch)
        carry = (theta, state.optimizer, jnp.asarray(learning_rate, theta.dtype))
        (theta, moments, rate), losses = jax.lax.scan(epoch, carry, order)
        state = LearnerState(params_of(theta), moments)
        last_epoch = jax.tree.map(lambda x: x[-1].mean(), losses)
        metrics = summarise(state, last_epoch, labelled, appraisal, segments, rollout) | extra
        if hyper.desired_kl is not None:
            metrics["learning_rate"] = rate
        return state, metrics

    return jax.jit(learn)


def clipped_apart(gradient: Any, of_policy: Any, largest: float) -> Any:
    """Policy and critic clipped to the largest norm each: the gradient of a narrow policy goes as 1 / sigma, and under
    one norm for both the critic's would all but vanish beside it."""

    def clipped(part: Any) -> Any:
        return part * jnp.minimum(1.0, largest / jnp.maximum(jnp.linalg.norm(part), 1e-12))

    return clipped(gradient * of_policy) + clipped(gradient * (1.0 - of_policy))


def is_policy(path: Any, leaf: Any) -> Any:
    """1 for the parameters of the policy, 0 for the critic's."""
    return jnp.full_like(leaf, 0.0 if path[0].key == "critic" else 1.0)


TOO_FAR = 2.0  # times the KL divergence that an update aims at, on one minibatch
DIAGNOSED = 8192  # steps, at most, on which the gradients of the terms are compared
RATE_CHANGE, SLOWEST_RATE, FASTEST_RATE = 1.5, 1e-5, 1e-2  # of a learning rate that follows the KL divergence


def adapted(rate: Any, kl: Any, desired: float) -> Any:
    """rsl_rl's rule: slower where a minibatch shows more than twice the desired KL divergence, faster below half."""
    slower = jnp.maximum(rate / RATE_CHANGE, SLOWEST_RATE)
    faster = jnp.minimum(rate * RATE_CHANGE, FASTEST_RATE)
    return jnp.where(kl > 2.0 * desired, slower, jnp.where((kl > 0) & (kl < desired / 2.0), faster, rate))


def spread_limit(params: Params, log_std: Any, free: float) -> Params:
    """The least or the most that each parameter may be: only the spread of the policy is held, the rest `free`."""
    limit = jax.tree.map(lambda x: jnp.full_like(x, free), params)
    spread = {"log_std": jnp.full_like(params["log_std"], log_std)} if "log_std" in params else {}
    return limit | spread


def in_minibatches(rows: Rows, count: int) -> Rows:
    """[k, ...] -> [count, k / count, ...], neighbours in different minibatches."""
    return Rows(*(x.reshape(-1, count, *x.shape[1:]).swapaxes(0, 1) for x in rows))


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
        "recovery_rate": rollout.recovering.sum() / rollout.recovering.size,
        "segments": count,
        "segment_length": rollout.recovering.sum() / jnp.maximum(count, 1),
        "segment_success": (segments.start & segments.succeeded).sum() / jnp.maximum(count, 1),
        "finite": finite,
    }


def weighted_variance(x: Any, weight: Any) -> Any:
    """Variance over the rows that carry weight."""
    x = jnp.where(weight > 0, x, 0.0)
    return weighted_mean((x - weighted_mean(x, weight)) ** 2, weight)
