"""From a rollout to what both optimisers learn from: advantages and value targets, of reward and of cost."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from safeexplorer.acting.networks import Layers, Params, normalised_observation
from safeexplorer.acting.trajectory import Rollout, by_step
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters
from safeexplorer.learning.labelling import Appraisal, advantages
from safeexplorer.learning.networks import gaussian_entropy, gaussian_log_prob, mlp

CRITIC_DECAY = 1e-3  # weight of |phi|^2 in each critic's loss
POLICY = ("actor", "log_std")
CRITICS = ("critic", "cost_critic")


class ConstrainedState(NamedTuple):
    """Everything that an update changes."""

    params: Params  # actor, log_std, critic, cost_critic, and the normaliser that the actor needs
    optimizer: Any
    multiplier: Any  # lambda of PPO-Lagrangian
    multiplier_optimizer: Any


class Steps(NamedTuple):
    """One row per step of the flattened rollout."""

    observation: Any  # [B, n] normalised
    action: Any  # [B, m]
    log_prob: Any  # [B] under the policy that acted
    advantage: Any  # [B] of the (normalised) reward: mean 0, deviation 1
    cost_advantage: Any  # [B] of the cost: mean 0, in units of cost
    target: Any  # [B] R = A + V
    cost_target: Any  # [B] the same of the cost


def estimate(
    params: Params, rollout: Rollout, reward: Any, cost: Any, hyper: ConstrainedHyperparameters
) -> Steps:
    """GAE(gamma, lambda) of reward and cost; a fall ends both, the time limit bootstraps both."""
    observation = normalised_observation(params["normaliser"], rollout.observation, jnp)
    following = normalised_observation(params["normaliser"], rollout.next_observation, jnp)
    log_prob = gaussian_log_prob(rollout.action, mlp(params["actor"], observation), params["log_std"])

    def gae(critic: Layers, signal: Any) -> tuple[Any, Any]:
        value, next_value = mlp(critic, observation)[..., 0], mlp(critic, following)[..., 0]
        appraisal = Appraisal(value, next_value, log_prob)
        advantage = advantages(signal, value, appraisal, rollout, (hyper.gamma, hyper.gae_lambda))
        return advantage, advantage + value

    advantage, target = gae(params["critic"], reward)
    cost_advantage, cost_target = gae(params["cost_critic"], cost)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    cost_advantage = cost_advantage - cost_advantage.mean()
    return by_step(
        Steps(observation, rollout.action, log_prob, advantage, cost_advantage, target, cost_target)
    )


def critic_loss(critic: Layers, observation: Any, target: Any) -> Any:
    """mean (V - R)^2 + 0.001 |phi|^2."""
    error = mlp(critic, observation)[..., 0] - target
    decay = sum((x**2).sum() for x in jax.tree.leaves(critic))
    return (error**2).mean() + CRITIC_DECAY * decay


def clipped(gradient: Params, limit: float) -> Params:
    """Each network's gradient held to norm `limit`; mean and deviation of the policy are one network."""
    held = {}
    for names in (POLICY, *((critic,) for critic in CRITICS)):
        part = {name: gradient[name] for name in names if name in gradient}
        scale = jnp.minimum(1.0, limit / (optax.tree.norm(part) + 1e-6))
        held |= jax.tree.map(lambda g, scale=scale: g * scale, part)
    return held


def adam(hyper: ConstrainedHyperparameters) -> optax.GradientTransformation:
    """Adam; the (annealed) learning rate multiplies the result."""
    return optax.scale_by_adam(eps=hyper.adam_epsilon)


def one_pass(
    loss: Callable,
    carry: tuple[Params, Any],
    columns: Any,
    order: Any,
    learning_rate: Any,
    hyper: ConstrainedHyperparameters,
) -> tuple[tuple[Params, Any], Any]:
    """Adam on `loss(trained, rows) -> (value, extra)`, one minibatch of the rows after another.

    `carry` is what is trained and its optimiser; the extras of all minibatches are returned beside it.
    """

    def minibatch_step(carry, rows):
        trained, optimizer = carry
        gradient, extra = jax.grad(loss, has_aux=True)(trained, rows)
        updates, optimizer = adam(hyper).update(clipped(gradient, hyper.max_gradient_norm), optimizer)
        return (jax.tree.map(lambda p, u: p - learning_rate * u, trained, updates), optimizer), extra

    shuffled = columns[order].reshape(hyper.minibatches, -1, columns.shape[1])
    return jax.lax.scan(minibatch_step, carry, shuffled)


def judged(before: Params, after: ConstrainedState, steps: Steps) -> dict[str, Any]:
    """1 - Var(R - V) / Var(R) of the reward critic before the update; entropy of the policy and finiteness after it."""
    spread = steps.target.var()
    left = (steps.target - mlp(before["critic"], steps.observation)[..., 0]).var()
    return {
        "entropy": gaussian_entropy(after.params["log_std"]),
        "explained_variance": jnp.where(spread > 0, 1.0 - left / spread, 0.0),
        "finite": jnp.array([jnp.isfinite(x).all() for x in jax.tree.leaves(after)]).all(),
    }
