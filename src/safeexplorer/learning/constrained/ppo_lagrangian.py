"""PPO-Lagrangian: PPO on the return minus lambda times the cost, with lambda rising while the cost is too high."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

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

TRAINED = (*POLICY, *CRITICS)


def init_state(params: Params, hyper: ConstrainedHyperparameters) -> ConstrainedState:
    """Fresh optimisers around `params`."""
    trained = {name: params[name] for name in TRAINED}
    multiplier = jnp.float32(hyper.multiplier_start)
    return ConstrainedState(
        params, adam(hyper).init(trained), multiplier, optax.adam(hyper.multiplier_rate).init(multiplier)
    )


def raise_price(multiplier: Any, optimizer: Any, excess: Any, rate: float) -> tuple[Any, Any]:
    """lambda <- max(0, lambda + Adam step of size `rate` along J_c - d)."""
    updates, optimizer = optax.adam(rate).update(-excess, optimizer)
    return jnp.maximum(multiplier + updates, 0.0), optimizer


def penalised(advantage: Any, cost_advantage: Any, multiplier: Any) -> Any:
    """(A - lambda A_c) / (1 + lambda)."""
    return (advantage - multiplier * cost_advantage) / (1.0 + multiplier)


def make_improve(hyper: ConstrainedHyperparameters) -> Callable:
    """Compile `improve(state, rollout, reward, cost, excess, order, learning_rate) -> (state, metrics)`.

    `excess` is J_c - d. Passes over the rollout stop when the policy has moved by more than the target KL.
    """

    def improve(state: ConstrainedState, rollout, reward, cost, excess, order, learning_rate):
        multiplier, multiplier_optimizer = raise_price(
            state.multiplier, state.multiplier_optimizer, excess, hyper.multiplier_rate
        )
        steps = estimate(state.params, rollout, reward, cost, hyper)
        advantage = penalised(steps.advantage, steps.cost_advantage, multiplier)
        columns = pack(steps, advantage)
        sizes = steps.observation.shape[1], steps.action.shape[1]
        old = policy_of(state.params, steps.observation)

        def minibatch_loss(trained, rows):
            return loss(trained, rows, sizes, hyper.clip)

        def go_through(carry):
            i, trained, optimizer, _, _ = carry
            (trained, optimizer), losses = one_pass(
                minibatch_loss, (trained, optimizer), columns, order[i], learning_rate, hyper
            )
            kl = gaussian_kl(old, policy_of(trained, steps.observation)).sum(-1).mean()
            return i + 1, trained, optimizer, kl, jax.tree.map(jnp.mean, losses)

        def goes_on(carry):
            i, _, _, kl, _ = carry
            return (i < hyper.epochs) & (kl <= hyper.target_kl)

        trained = {name: state.params[name] for name in TRAINED}
        begin = (0, trained, state.optimizer, 0.0, dict.fromkeys(LOSSES, 0.0))
        passes, trained, optimizer, kl, losses = jax.lax.while_loop(goes_on, go_through, begin)
        new = ConstrainedState(state.params | trained, optimizer, multiplier, multiplier_optimizer)
        metrics = losses | {"approx_kl": kl, "passes": passes, "multiplier": multiplier}
        return new, metrics | judged(state.params, new, steps)

    return jax.jit(improve)


LOSSES = ("policy_loss", "value_loss", "cost_value_loss", "clip_share")


def policy_of(params: Params, observation: Any) -> tuple[Any, Any]:
    """Mean and log deviation of the Gaussian at (normalised) observations."""
    return mlp(params["actor"], observation), params["log_std"]


def pack(steps: Steps, advantage: Any) -> Any:
    """All columns side by side, so that one gather shuffles them."""
    scalars = jnp.stack([steps.log_prob, advantage, steps.target, steps.cost_target], axis=1)
    return jnp.concatenate([steps.observation, steps.action, scalars], axis=1)


def loss(trained: Params, rows: Any, sizes: tuple[int, int], clip: float) -> tuple[Any, dict[str, Any]]:
    """Clipped surrogate on the penalised advantage, plus both critics' losses."""
    n, m = sizes
    observation, action = rows[:, :n], rows[:, n : n + m]
    log_prob, advantage, target, cost_target = rows[:, n + m :].T
    ratio = jnp.exp(gaussian_log_prob(action, *policy_of(trained, observation)) - log_prob)
    held = jnp.clip(ratio, 1.0 - clip, 1.0 + clip)
    policy = -jnp.minimum(ratio * advantage, held * advantage).mean()
    value = critic_loss(trained["critic"], observation, target)
    cost_value = critic_loss(trained["cost_critic"], observation, cost_target)
    share = (jnp.abs(ratio - 1.0) > clip).mean()
    terms = dict(zip(LOSSES, (policy, value, cost_value, share), strict=True))
    return policy + value + cost_value, terms
