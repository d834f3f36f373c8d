"""Soft actor-critic: pure losses, one update, and a replay memory that lives where the updates run.

    y      = r + gamma (1 - terminal) (min_i Q'_i(s', a') - alpha log mu(a' | s')),  a' ~ mu(. | s')
    L_Q    = sum_i mean (Q_i(s, a) - y)^2
    L_mu   = mean (alpha log mu(a | s) - min_i Q_i(s, a)),                           a  ~ mu(. | s)
    L_alpha = -alpha mean (log mu(a | s) + target entropy)

The twin critics are one network with a leading axis of two, so that both cost one batched product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from safeexplorer.acting.networks import (
    LOG_2PI,
    Layers,
    Params,
    relu_mlp,
    squash_correction,
    squashed_mean_log_std,
)
from safeexplorer.learning.networks import init_squashed, init_uniform
from safeexplorer.pretraining.settings import RecoverySettings


class Box(NamedTuple):
    """The action box, as the squash a = centre + half * tanh(u) needs it."""

    centre: Any  # [m]
    half: Any  # [m]

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray) -> Box:
        low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
        return cls((high + low) / 2, (high - low) / 2)


class Transitions(NamedTuple):
    """Steps to learn from, [B, ...]. A time limit is not terminal."""

    observation: Any  # [B, n]
    action: Any  # [B, m]
    next_observation: Any  # [B, n]
    reward: Any  # [B]
    terminal: Any  # [B] 1.0 where the step ended in a fall


class SacState(NamedTuple):
    """Everything that an update changes."""

    actor: Params
    critics: Layers  # every array with a leading axis of 2
    targets: Layers
    log_alpha: Any
    actor_optimizer: Any
    critic_optimizer: Any
    alpha_optimizer: Any


class Replay(NamedTuple):
    """The latest transitions as rows of one array, oldest overwritten first."""

    rows: Any  # [capacity, 2n + m + 2] float32
    count: Any  # rows ever written, int32


def sample_action(actor: Params, observation: Any, noise: Any, box: Box) -> tuple[Any, Any]:
    """a = centre + half tanh(mean + std noise) and its log-density over the box."""
    mean, log_std = squashed_mean_log_std(actor, observation, jnp)
    u = mean + jnp.exp(log_std) * noise
    gaussian = (-0.5 * noise**2 - log_std - 0.5 * LOG_2PI).sum(-1)
    return box.centre + box.half * jnp.tanh(u), gaussian - squash_correction(u, box.half, jnp)


def q_values(critics: Layers, observation: Any, action: Any) -> Any:
    """Q_1 and Q_2, [2, B]."""
    inputs = jnp.concatenate([observation, action], -1)
    return jax.vmap(lambda critic: relu_mlp(critic, inputs, jnp))(critics)[..., 0]


def bellman_target(state: SacState, batch: Transitions, noise: Any, box: Box, gamma: float) -> Any:
    """y, [B]."""
    action, log_density = sample_action(state.actor, batch.next_observation, noise, box)
    worst = q_values(state.targets, batch.next_observation, action).min(0)
    soft = worst - jnp.exp(state.log_alpha) * log_density
    return batch.reward + gamma * (1.0 - batch.terminal) * soft


def critic_loss(critics: Layers, batch: Transitions, target: Any) -> Any:
    """L_Q."""
    error = q_values(critics, batch.observation, batch.action) - target
    return (error**2).mean(1).sum()


def actor_loss(
    actor: Params, critics: Layers, log_alpha: Any, observation: Any, noise: Any, box: Box
) -> tuple[Any, Any]:
    """L_mu, and the mean log-density that drives alpha."""
    action, log_density = sample_action(actor, observation, noise, box)
    worst = q_values(critics, observation, action).min(0)
    return (jnp.exp(log_alpha) * log_density - worst).mean(), log_density.mean()


def alpha_loss(log_alpha: Any, mean_log_density: Any, target_entropy: float) -> Any:
    """L_alpha."""
    return -jnp.exp(log_alpha) * (mean_log_density + target_entropy)


def init_sac(rng: np.random.Generator, n: int, m: int, settings: RecoverySettings) -> SacState:
    """Fresh networks; the targets start as copies of the critics, alpha at 1."""
    actor = init_squashed(rng, n, m, settings.hidden)
    twins = [init_uniform(rng, [n + m, *settings.hidden, 1]) for _ in range(2)]
    critics = jax.tree.map(lambda *twin: jnp.stack(twin), *twins)
    actor, log_alpha = jax.tree.map(jnp.asarray, (actor, np.float32(0.0)))
    policy_adam, q_adam = optimizers(settings)
    copy = jax.tree.map(jnp.array, critics)
    optimizer_states = policy_adam.init(actor), q_adam.init(critics), q_adam.init(log_alpha)
    return SacState(actor, critics, copy, log_alpha, *optimizer_states)


def optimizers(
    settings: RecoverySettings,
) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """Adam for the actor; Adam for the critics and alpha."""
    return optax.adam(settings.policy_learning_rate), optax.adam(settings.q_learning_rate)


def sac_update(
    state: SacState, batch: Transitions, noise: tuple[Any, Any], box: Box, settings: RecoverySettings
) -> tuple[SacState, dict[str, Any]]:
    """One step of the critics, then of the actor, then of alpha, then of the targets."""
    policy_adam, q_adam = optimizers(settings)
    target = bellman_target(state, batch, noise[0], box, settings.gamma)
    q_loss, gradient = jax.value_and_grad(critic_loss)(state.critics, batch, target)
    step, critic_optimizer = q_adam.update(gradient, state.critic_optimizer)
    critics = optax.apply_updates(state.critics, step)

    (policy_loss, density), gradient = jax.value_and_grad(actor_loss, has_aux=True)(
        state.actor, critics, state.log_alpha, batch.observation, noise[1], box
    )
    step, actor_optimizer = policy_adam.update(gradient, state.actor_optimizer)
    actor = optax.apply_updates(state.actor, step)

    gradient = jax.grad(alpha_loss)(state.log_alpha, density, -float(batch.action.shape[-1]))
    step, alpha_optimizer = q_adam.update(gradient, state.alpha_optimizer)
    log_alpha = optax.apply_updates(state.log_alpha, step)

    targets = jax.tree.map(lambda old, new: old + settings.tau * (new - old), state.targets, critics)
    metrics = {"q_loss": q_loss, "policy_loss": policy_loss, "alpha": jnp.exp(log_alpha), "entropy": -density}
    after = SacState(actor, critics, targets, log_alpha, actor_optimizer, critic_optimizer, alpha_optimizer)
    return after, metrics


def pack(batch: Transitions) -> np.ndarray:
    """Rows for the replay memory, [B, 2n + m + 2] float32."""
    columns = [x[:, None] if x.ndim == 1 else x for x in batch]
    return np.concatenate(columns, 1, dtype=np.float32)


def unpack(rows: Any, n: int, m: int) -> Transitions:
    """The way back."""
    return Transitions(*jnp.split(rows[..., :-2], [n, n + m], -1), rows[..., -2], rows[..., -1])


def empty_replay(capacity: int, n: int, m: int) -> Replay:
    """Room for `capacity` transitions."""
    return Replay(jnp.zeros((capacity, 2 * n + m + 2), jnp.float32), jnp.int32(0))


def make_act(box: Box, seed: int) -> Callable:
    """Compile `act(actor, observation, step, warming_up) -> action`: sampled, or uniform while warming up."""

    def act(actor: Params, observation: Any, step: Any, warming_up: Any) -> Any:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 0), step)
        shape = observation.shape[0], box.centre.shape[0]
        action, _ = sample_action(actor, observation, jax.random.normal(key, shape), box)
        uniform = box.centre + box.half * jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)
        return jnp.where(warming_up, uniform, action)

    return jax.jit(act)


def make_learn(box: Box, n: int, settings: RecoverySettings) -> Callable:
    """Compile `learn(state, replay, rows, step) -> (state, replay, metrics)`.

    Inserts the new rows, then makes `updates_per_step` updates on uniformly drawn batches. The capacity must be a
    multiple of the number of new rows. Randomness depends on seed and step alone, so it needs no saved state.
    """
    m, shape = box.centre.shape[0], (settings.updates_per_step, settings.batch_size)

    def learn(state: SacState, replay: Replay, rows: Any, step: Any):
        replay = insert(replay, rows)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(settings.seed), 1), step)
        index_key, noise_key = jax.random.split(key)
        filled = jnp.minimum(replay.count, replay.rows.shape[0])
        index = jax.random.randint(index_key, shape, 0, filled)
        noise = jax.random.normal(noise_key, (shape[0], 2, shape[1], m))

        def one(state, drawn):
            index, noise = drawn
            return sac_update(state, unpack(replay.rows[index], n, m), (noise[0], noise[1]), box, settings)

        state, metrics = jax.lax.scan(one, state, (index, noise))
        return state, replay, jax.tree.map(lambda x: x.mean(), metrics)

    return jax.jit(learn, donate_argnums=(0, 1))


def insert(replay: Replay, rows: Any) -> Replay:
    """Write new rows over the oldest ones."""
    start = replay.count % replay.rows.shape[0]
    written = jax.lax.dynamic_update_slice(replay.rows, rows, (start, 0))
    return Replay(written, replay.count + rows.shape[0])
