"""What other rules would have made of the same rollout: the learner's own policy gradient under each of them."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import LOG_2PI, Params, policy_mean
from safeexplorer.acting.trajectory import Batch, Rollout, by_step
from safeexplorer.learning.diagnostics import VARIANCE_RATIO, importance_diagnostics
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import label, stored_action
from safeexplorer.learning.loss import loss_terms
from safeexplorer.learning.methods import ANALYTIC, MASKED, RECOVERY_RL, UNMASKED, Method
from safeexplorer.learning.update import appraise

COMPARED: dict[str, Method] = {"unmasked": UNMASKED, "relabelled": RECOVERY_RL, "analytic": ANALYTIC}


@dataclass(frozen=True)
class Comparison:
    """A rule's gradient beside the masked one; None where one of the two is zero."""

    angle: float | None  # degrees
    norm_ratio: float | None


@dataclass(frozen=True)
class Gradients:
    """Gradients of the clipped surrogate at the parameters that collected, the whole rollout as one batch."""

    policy_steps: int  # that the masked gradient is made of
    masked_norm: float
    halves_angle: float | None  # masked gradient of the first half of the time against the second: the noise
    compared: dict[str, Comparison]


@dataclass(frozen=True)
class Fit:
    """How far the stored actions lie from the policy's mean, in its standard deviations (root mean square)."""

    policy: float | None  # near 1 if this policy acted
    recovery: float | None
    log_prob_error: float | None  # largest difference to the recorded log-probability, policy steps


@dataclass(frozen=True)
class Importance:
    """The weights w = pi / mu of recovery steps (equation is-decomp)."""

    ess_share: float  # effective sample size over the number of recovery steps, (sum w)^2 / (n sum w^2)
    log10_mean: float  # of w; far below 0, the steps that would carry the weight were not drawn
    log10_variance_ratio: float | None  # of the importance-sampled over the masked gradient


def labelled_batch(params: Params, rollout: Rollout, method: Method, hyper: Hyperparameters) -> Batch:
    """The method's numbers for every step, one row each."""
    appraisal = appraise(params, rollout, stored_action(rollout, method))
    batch, _ = label(rollout, appraisal, method, (hyper.gamma, hyper.gae_lambda))
    return by_step(batch)


@partial(jax.jit, static_argnums=2)
def all_gradients(params: Params, rollout: Rollout, hyper: Hyperparameters) -> dict[str, Any]:
    """The masked policy gradient, that of the first and of the second half of the time, and each other rule's."""
    rows = rollout.recovering.size
    early = jnp.arange(rows) < rows // 2  # they are in the order of time
    masked = labelled_batch(params, rollout, MASKED, hyper)

    def masked_gradient(counted: Any) -> Any:
        batch = masked._replace(policy_weight=masked.policy_weight * counted)
        return policy_gradient(params, batch, hyper)

    parts = jax.vmap(masked_gradient)(jnp.stack([jnp.ones_like(early), early, ~early]))
    gradients = dict(zip(("masked", "first", "second"), parts, strict=True))
    for name, method in COMPARED.items():
        if method.stored_action == "executed" or rollout.proposed is not None:
            batch = labelled_batch(params, rollout, method, hyper)
            gradients[name] = policy_gradient(params, batch, hyper)
    return gradients


def policy_gradient(params: Params, batch: Batch, hyper: Hyperparameters) -> Any:
    """grad of the policy term over actor and log sigma, flattened, [P]."""
    gradient = jax.grad(lambda p: loss_terms(p, batch, hyper).policy)(params)
    leaves = jax.tree.leaves({"actor": gradient["actor"], "log_std": gradient["log_std"]})
    return jnp.concatenate([leaf.reshape(-1) for leaf in leaves])


def compare_gradients(params: Params, rollout: Rollout, hyper: Hyperparameters) -> Gradients:
    """The masked gradient, and each other rule beside it; relabelling needs the policy's own proposals."""
    found = {name: np.asarray(g, np.float64) for name, g in all_gradients(params, rollout, hyper).items()}
    masked, first, second = (found.pop(name) for name in ("masked", "first", "second"))
    norm = float(np.linalg.norm(masked))
    others = [(name, found[name]) for name in COMPARED if name in found]
    others = {
        n: Comparison(angle(masked, g), float(np.linalg.norm(g) / norm) if norm else None) for n, g in others
    }
    return Gradients(int((~rollout.recovering).sum()), norm, angle(first, second), others)


def angle(first: np.ndarray, second: np.ndarray) -> float | None:
    """Degrees between two vectors, 2 atan2(|u - v|, |u + v|) of their directions: exact near 0 and 180."""
    norms = np.linalg.norm(first), np.linalg.norm(second)
    if 0.0 in norms:
        return None
    u, v = first / norms[0], second / norms[1]
    return float(np.degrees(2.0 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))))


def standardised(params: Params, rollout: Rollout) -> np.ndarray:
    """(a - mean) / sigma of the stored actions, [T, E, m]."""
    mean = policy_mean(params, np.asarray(rollout.observation, np.float32)).astype(np.float64)
    return (rollout.action - mean) * np.exp(-np.asarray(params["log_std"], np.float64))


def log_policy(params: Params, rollout: Rollout) -> np.ndarray:
    """log pi(a_t | s_t) of the stored actions, [T, E]."""
    log_std = np.asarray(params["log_std"], np.float64)
    z = standardised(params, rollout)
    return -0.5 * (z**2).sum(-1) - log_std.sum() - 0.5 * LOG_2PI * len(log_std)


def measure_fit(params: Params, rollout: Rollout, log_prob: np.ndarray | None) -> Fit:
    """Was it this policy that acted?"""
    z, main, error = standardised(params, rollout), ~rollout.recovering, None
    if log_prob is not None and main.any():
        error = float(np.abs(log_policy(params, rollout) - log_prob)[main].max())
    spreads = [float(np.sqrt(np.mean(part**2))) if part.size else None for part in (z[main], z[~main])]
    return Fit(*spreads, error)


def measure_importance(rollout: Rollout, log_prob: np.ndarray, ratio: float = np.nan) -> Importance:
    """What the weights say; `log_prob` [T, E] is log pi of the stored actions, `ratio` log10 that of the variances."""
    log_weight = (log_prob - rollout.recovery_log_density)[rollout.recovering]
    largest = log_weight.max()
    weight = np.exp(log_weight - largest)  # relative to the largest: they reach 1e12
    return Importance(
        ess_share=float(weight.sum() ** 2 / (weight.size * (weight**2).sum())),
        log10_mean=float((largest + np.log(weight.mean())) / np.log(10.0)),
        log10_variance_ratio=None if np.isnan(ratio) else float(ratio),
    )


@partial(jax.jit, static_argnums=2)
def variance_ratio(params: Params, rollout: Rollout, hyper: Hyperparameters) -> Any:
    """The learner's diagnostic, log10; NaN unless both sides acted."""
    batch = labelled_batch(params, rollout, MASKED, hyper)
    return importance_diagnostics(params, batch)[VARIANCE_RATIO]
