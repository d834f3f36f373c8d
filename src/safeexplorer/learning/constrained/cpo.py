"""Constrained policy optimisation (Achiam et al., 2017): the best step that stays in the trust region and, to first
order, within the cost limit.

    max g'x  subject to  c + b'x <= 0  and  x'Hx / 2 <= delta

with g and b the gradients of return and cost, c = J_c - d, H the Fisher matrix of the policy plus damping.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from safeexplorer.acting.networks import Params
from safeexplorer.learning.constrained.estimates import (
    CRITICS,
    POLICY,
    ConstrainedState,
    Steps,
    adam,
    critic_loss,
    estimate,
    judged,
    one_pass,
)
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters
from safeexplorer.learning.networks import gaussian_kl, gaussian_log_prob, mlp

CONJUGATE_GRADIENT_STEPS = 15
DAMPING = 0.1
# Added to denominators, as OmniSafe does. Not only against zero: where hardly any cost is left its gradient is noise,
# and without these the step straight down the cost would follow the noise to the edge of the trust region.
CURVATURE_FLOOR = 1e-6
NATURAL_FLOOR = 1e-8
BACKTRACKS = 20
SHRINK = 0.8

# What the limit leaves of the trust region.
NOTHING = 0  # no step reaches the limit: go straight down the cost
SOME_BUT_NOT_HERE = 1  # too costly now, but a step can mend it
SOME = 2  # within the limit now, part of the region is not
ALL = 3  # the limit is out of reach: the plain trust-region step


def init_state(params: Params, hyper: ConstrainedHyperparameters) -> ConstrainedState:
    """A fresh optimiser of the critics; there is no multiplier to remember."""
    critics = {name: params[name] for name in CRITICS}
    return ConstrainedState(params, adam(hyper).init(critics), jnp.float32(0.0), ())


def policy_of(policy: Params, observation: Any) -> tuple[Any, Any]:
    """Mean [B, m] and log deviation [B, m] of the Gaussian at (normalised) observations."""
    mean = mlp(policy["actor"], observation)
    return mean, jnp.broadcast_to(policy["log_std"], mean.shape)


def mean_kl(old: tuple[Any, Any], policy: Params, observation: Any) -> Any:
    """KL(old || policy) averaged over steps and over action dimensions, as OmniSafe measures it."""
    return gaussian_kl(old, policy_of(policy, observation)).mean()


def fisher_product(policy: Params, observation: Any) -> Callable[[Any], Any]:
    """v -> F v for flat v, with F the Hessian of `mean_kl` at `policy`: J' M J / (B m).

    J is the derivative of (mean, log sigma); the Fisher matrix M of a Gaussian in these is diag(1 / sigma^2, 2).
    """
    flat, unflatten = ravel_pytree(policy)
    (_, log_std), along = jax.linearize(lambda v: policy_of(unflatten(v), observation), flat)
    back = jax.linear_transpose(along, flat)
    precision = jnp.exp(-2.0 * log_std) / log_std.size

    def product(v: Any) -> Any:
        mean, spread = along(v)
        return back((precision * mean, 2.0 * spread / log_std.size))[0]

    return product


def conjugate_gradient(product: Callable[[Any], Any], b: Any, steps: int = CONJUGATE_GRADIENT_STEPS) -> Any:
    """x with `product(x)` close to b, for a symmetric positive definite product."""

    def step(_, carry):
        x, residual, direction, size = carry
        image = product(direction)
        alpha = size / (direction @ image + CURVATURE_FLOOR)
        x, residual = x + alpha * direction, residual - alpha * image
        new_size = residual @ residual
        return x, residual, residual + new_size / (size + CURVATURE_FLOOR) * direction, new_size

    return jax.lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b, b @ b))[0]


class Gradients(NamedTuple):
    """g, b, and both through the inverse of H."""

    reward: Any  # g
    cost: Any  # b
    natural_reward: Any  # H^-1 g
    natural_cost: Any  # H^-1 b


def trust_region_step(gradients: Gradients, excess: Any, delta: float) -> tuple[Any, Any]:
    """The solution x of the problem above, and how much of the trust region the limit leaves.

    With q = g'H^-1 g, r = g'H^-1 b, s = b'H^-1 b: if the plain step sqrt(2 delta / q) H^-1 g keeps the limit it is
    the solution. Otherwise the solution lies on the limit's plane b'x = -c, whose nearest point is -(c / s) H^-1 b;
    what the trust region leaves, B = 2 delta - c^2 / s, goes along the plane, where g has the length A = q - r^2 / s.
    """
    g, b, up, down = gradients
    q, r, s = g @ up + NATURAL_FLOOR, g @ down, b @ down + NATURAL_FLOOR
    room = 2.0 * delta - excess**2 / s
    plain = jnp.sqrt(2.0 * delta / q) * up
    along = up - (r / s) * down
    length = jnp.maximum(q - r**2 / s, NATURAL_FLOOR)
    on_plane = jnp.sqrt(jnp.maximum(room, 0.0) / length) * along - (excess / s) * down
    downhill = -jnp.sqrt(2.0 * delta / s) * down
    case = jnp.where(
        excess < 0, jnp.where(room < 0, ALL, SOME), jnp.where(room >= 0, SOME_BUT_NOT_HERE, NOTHING)
    )
    keeps = excess + b @ plain <= 0
    solution = jnp.where(keeps | (case == ALL), plain, on_plane)
    return jnp.where(case == NOTHING, downhill, solution), case


def surrogates(policy: Params, steps: Steps) -> tuple[Any, Any]:
    """E[rho A] and E[rho A_c]."""
    ratio = jnp.exp(gaussian_log_prob(steps.action, *policy_of(policy, steps.observation)) - steps.log_prob)
    return (ratio * steps.advantage).mean(), (ratio * steps.cost_advantage).mean()


def line_search(
    policy: Params, step: Any, case: Any, steps: Steps, excess: Any, target_kl: float
) -> tuple[Params, Any, Any]:
    """Shrink the step until it holds for the policy itself, not only to first order: (policy, share, KL).

    It must stay in the trust region, raise the cost by no more than is left of the limit and, where the policy is
    within the limit, not lower the return. A step that never does is not made.
    """
    flat, unflatten = ravel_pytree(policy)
    old = policy_of(policy, steps.observation)
    reward_before, cost_before = surrogates(policy, steps)

    def judge(share):
        new = unflatten(flat + share * step)
        reward, cost = surrogates(new, steps)
        kl = mean_kl(old, new, steps.observation)
        improves = (reward >= reward_before) | (case < SOME)
        affordable = cost - cost_before <= jnp.maximum(-excess, 0.0)
        return improves & affordable & (kl <= target_kl), kl

    def shrink(carry):
        tries, share, _, _ = carry
        accepted, kl = judge(share * SHRINK)
        return tries + 1, share * SHRINK, accepted, kl

    def refused(carry):
        tries, _, accepted, _ = carry
        return ~accepted & (tries < BACKTRACKS)

    _, share, accepted, kl = jax.lax.while_loop(refused, shrink, (1, 1.0, *judge(1.0)))
    share = jnp.where(accepted, share, 0.0)
    new = jnp.where(accepted, flat + share * step, flat)
    return unflatten(new), share, jnp.where(accepted, kl, 0.0)


def improve_policy(policy: Params, steps: Steps, excess: Any, target_kl: float) -> tuple[Params, dict]:
    """One constrained trust-region step."""
    flat, unflatten = ravel_pytree(policy)
    g, b = jax.jacrev(lambda v: jnp.stack(surrogates(unflatten(v), steps)))(flat)
    product = fisher_product(policy, steps.observation)
    natural = jax.vmap(lambda v: conjugate_gradient(lambda u: product(u) + DAMPING * u, v))(jnp.stack([g, b]))
    step, case = trust_region_step(Gradients(g, b, *natural), excess, target_kl)
    policy, share, kl = line_search(policy, step, case, steps, excess, target_kl)
    reward, cost = surrogates(policy, steps)
    metrics = {"policy_loss": cost - reward, "approx_kl": kl, "case": case, "step_share": share}
    return policy, metrics


def make_improve(hyper: ConstrainedHyperparameters) -> Callable:
    """Compile `improve(state, rollout, reward, cost, excess, order, learning_rate) -> (state, metrics)`.

    The policy takes one step; the critics go through the rollout as often as the settings say.
    """

    def improve(state: ConstrainedState, rollout, reward, cost, excess, order, learning_rate):
        steps = estimate(state.params, rollout, reward, cost, hyper)
        policy = {name: state.params[name] for name in POLICY}
        policy, metrics = improve_policy(policy, steps, excess, hyper.target_kl)
        targets = jnp.stack([steps.target, steps.cost_target], axis=1)
        columns = jnp.concatenate([steps.observation, targets], axis=1)

        def loss(critics, rows):
            observation, targets = rows[:, :-2], rows[:, -2:].T
            pairs = zip(CRITICS, targets, strict=True)
            losses = [critic_loss(critics[name], observation, target) for name, target in pairs]
            return sum(losses), losses

        def go_through(carry, order):
            return one_pass(loss, carry, columns, order, learning_rate, hyper)

        critics = {name: state.params[name] for name in CRITICS}
        (critics, optimizer), losses = jax.lax.scan(go_through, (critics, state.optimizer), order)
        value_loss, cost_value_loss = (x[-1].mean() for x in losses)
        new = state._replace(params=state.params | policy | critics, optimizer=optimizer)
        metrics |= {"value_loss": value_loss, "cost_value_loss": cost_value_loss, "passes": hyper.epochs}
        return new, metrics | judged(state.params, new, steps)

    return jax.jit(improve)
