"""What importance sampling would have done: effective sample size and gradient variance (a sampled recovery)."""

from typing import Any

import jax
import jax.numpy as jnp

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch
from safeexplorer.learning.networks import log_prob

ESS_SHARE, VARIANCE_RATIO = COLUMNS = ("importance_ess_share", "importance_log10_variance_ratio")
CHUNK = 256  # steps whose gradients are in memory at a time


def importance_diagnostics(params: Params, batch: Batch) -> dict[str, Any]:
    """Compare the masked estimator with the importance-sampled one of equation (is-decomp),

        g_IS = sum over main of grad log pi A + sum over recovery of w grad log pi A,  w = pi / mu,

    on the single steps of a rollout: the effective sample size of the weights as a share of the recovery steps,
    (sum w)^2 / (n sum w^2), and log10 of the ratio of the summed gradient variances. NaN where there is nothing to
    compare. Weights are divided by the largest before anything is squared: they reach 1e12.
    """
    recovery = batch.recovering
    log_weight = jnp.where(recovery, batch.log_prob - batch.log_mu, -jnp.inf)
    largest = jnp.where(recovery.any(), log_weight.max(), 0.0)
    relative = jnp.exp(log_weight - largest)
    share = relative.sum() ** 2 / (recovery.sum() * (relative**2).sum())

    shift = jnp.maximum(largest, 0.0)
    main = jnp.where(recovery, 0.0, batch.advantage)
    weighted = jnp.where(recovery, jnp.exp(log_weight - shift), jnp.exp(-shift)) * batch.advantage
    masked, sampled = score_variances(params, batch, (main, weighted))
    ratio = jnp.log10(sampled / masked) + 2.0 * shift / jnp.log(10.0)
    return {ESS_SHARE: share, VARIANCE_RATIO: jnp.where(recovery.any() & (masked > 0), ratio, jnp.nan)}


def score_variances(params: Params, batch: Batch, coefficients: tuple[Any, ...]) -> list[Any]:
    """For each c [B] the trace of the covariance of c_t grad log pi(a_t | s_t) over steps: E |c g|^2 - |E c g|^2."""
    policy = {name: branch for name, branch in params.items() if name != "critic"}

    def squared_norm(step: tuple[Any, Any]) -> Any:
        gradient = jax.grad(log_prob)(policy, *step)
        return sum((g**2).sum() for g in jax.tree.leaves(gradient))

    norms = jax.lax.map(squared_norm, (batch.observation, batch.action), batch_size=CHUNK)
    variances = []
    for c in coefficients:

        def mean_score(policy: Params, c: Any = c) -> Any:
            return (c * log_prob(policy, batch.observation, batch.action)).mean()

        mean = sum((g**2).sum() for g in jax.tree.leaves(jax.grad(mean_score)(policy)))
        variances.append(jnp.maximum((c**2 * norms).mean() - mean, 0.0))
    return variances
