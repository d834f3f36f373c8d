"""What importance sampling would have done: effective sample size and gradient variance (a sampled recovery)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from safeexplorer.networks import Params
from safeexplorer.policy import log_prob
from safeexplorer.trajectory import Batch

DIAGNOSED_STEPS = 1024  # a random sample of the rollout


def importance_diagnostics(params: Params, batch: Batch) -> dict[str, Any]:
    """Compare the masked estimator with the importance-sampled one of equation (is-decomp),

        g_IS = sum over main of grad log pi A + sum over recovery of w grad log pi A,  w = pi / mu,

    on single steps: the effective sample size of the weights, (sum w)^2 / (n sum w^2), and log10 of the ratio of the
    summed gradient variances. Weights are divided by the largest before anything is squared: they reach 1e12.
    """
    recovery = batch.outside
    log_weight = jnp.where(recovery, batch.log_prob - batch.log_mu, -jnp.inf)
    largest = jnp.max(log_weight, initial=-jnp.inf)
    shift = jnp.where(jnp.isfinite(largest), jnp.maximum(largest, 0.0), 0.0)
    relative = jnp.exp(
        jnp.where(recovery, log_weight - jnp.where(jnp.isfinite(largest), largest, 0.0), -jnp.inf)
    )
    count = recovery.sum()
    squares = (relative**2).sum()
    share = jnp.where(count > 0, relative.sum() ** 2 / jnp.where(count > 0, count * squares, 1.0), 0.0)

    scores = score_samples(params, batch) * batch.advantage[:, None]
    masked = total_variance(scores * (~recovery)[:, None])
    scaled = jnp.where(recovery, jnp.exp(jnp.where(recovery, log_weight - shift, 0.0)), jnp.exp(-shift))
    sampled = total_variance(scores * scaled[:, None])
    usable = (masked > 0) & (sampled > 0)
    log_ratio = jnp.log10(
        jnp.where(usable, sampled / jnp.where(usable, masked, 1.0), 1.0)
    ) + 2.0 * shift / jnp.log(10.0)
    return {
        "importance_ess_share": share,
        "importance_log10_variance_ratio": jnp.where(usable, log_ratio, 0.0),
    }


def score_samples(params: Params, batch: Batch) -> Any:
    """grad log pi(a_t | s_t) of every step, flattened, [B, P]."""
    policy = {name: branch for name, branch in params.items() if name != "critic"}
    gradients = jax.vmap(jax.grad(log_prob), in_axes=(None, 0, 0))(policy, batch.observation, batch.action)
    return jnp.concatenate(
        [g.reshape(len(batch.observation), -1) for g in jax.tree.leaves(gradients)], axis=1
    )


def total_variance(samples: Any) -> Any:
    """Trace of the covariance over rows."""
    return jnp.var(samples, axis=0).sum()
