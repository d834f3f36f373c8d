"""Soft actor-critic against an independent transcription and against calculus."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from safeexplorer.learning.networks import init_squashed
from safeexplorer.pretraining.sac import (
    Box,
    Replay,
    Transitions,
    actor_loss,
    alpha_loss,
    bellman_target,
    critic_loss,
    init_sac,
    insert,
    pack,
    sac_update,
    unpack,
)
from safeexplorer.pretraining.settings import RecoverySettings
from safeexplorer.recovery.actor import SquashedActor

N, M, B = 5, 3, 32
LOW, HIGH = np.array([-1.0, 0.5, -2.8], np.float32), np.array([1.0, 4.5, -0.9], np.float32)


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(0)
    state = init_sac(rng, N, M, RecoverySettings(hidden=(16, 16)))
    targets = jax.tree.map(lambda x: x + 0.1, state.targets)
    state = state._replace(targets=targets, log_alpha=jnp.float32(-0.7))
    batch = Transitions(
        observation=rng.standard_normal((B, N)).astype(np.float32),
        action=rng.uniform(LOW, HIGH, (B, M)).astype(np.float32),
        next_observation=rng.standard_normal((B, N)).astype(np.float32),
        reward=rng.standard_normal(B).astype(np.float32),
        terminal=(rng.random(B) < 0.3).astype(np.float32),
    )
    noise = rng.standard_normal((2, B, M)).astype(np.float32)
    return state, batch, noise


def network(layers, x):
    layers = [{k: np.asarray(v, np.float64) for k, v in layer.items()} for layer in layers]
    for layer in layers[:-1]:
        x = np.maximum(x @ layer["weight"] + layer["bias"], 0)
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def twin(critics, i, s, a):
    layers = [{k: np.asarray(v)[i] for k, v in layer.items()} for layer in critics]
    return network(layers, np.hstack([s, a]))[:, 0]


def act(actor, s, noise):
    output = network(actor["actor"], s)
    mean, log_std = output[:, :M], -5 + 3.5 * (np.tanh(output[:, M:]) + 1)
    u = mean + np.exp(log_std) * noise
    normal = np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / np.exp(log_std)
    slope = (HIGH - LOW) / 2 * (1 - np.tanh(u) ** 2)
    return (HIGH + LOW) / 2 + (HIGH - LOW) / 2 * np.tanh(u), np.log(normal / slope).sum(1)


def test_the_bellman_target_and_the_losses_equal_a_transcription(example):
    state, batch, noise = example
    box, gamma, alpha = Box.between(LOW, HIGH), 0.99, np.exp(-0.7)
    a, log_mu = act(state.actor, batch.next_observation, noise[0])
    worst = np.minimum(*(twin(state.targets, i, batch.next_observation, a) for i in (0, 1)))
    y = batch.reward + gamma * np.where(batch.terminal == 1, 0, worst - alpha * log_mu)
    target = bellman_target(state, batch, noise[0], box, gamma)
    np.testing.assert_allclose(target, y, rtol=1e-5, atol=1e-5)

    q_loss = sum(np.mean((twin(state.critics, i, batch.observation, batch.action) - y) ** 2) for i in (0, 1))
    np.testing.assert_allclose(critic_loss(state.critics, batch, target), q_loss, rtol=1e-5)

    a, log_mu = act(state.actor, batch.observation, noise[1])
    worst = np.minimum(*(twin(state.critics, i, batch.observation, a) for i in (0, 1)))
    loss, density = actor_loss(state.actor, state.critics, state.log_alpha, batch.observation, noise[1], box)
    np.testing.assert_allclose(loss, np.mean(alpha * log_mu - worst), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(density, log_mu.mean(), rtol=1e-5, atol=1e-5)
    expected = np.mean(-alpha * (log_mu - M))  # the target entropy is -|A|
    np.testing.assert_allclose(alpha_loss(state.log_alpha, density, -float(M)), expected, rtol=1e-5)


def test_one_update_moves_everything_as_adam_says(example):
    state, batch, noise = example
    box, hyper = Box.between(LOW, HIGH), RecoverySettings(hidden=(16, 16), q_learning_rate=1e-3, tau=0.01)
    update = jax.jit(lambda state: sac_update(state, batch, (noise[0], noise[1]), box, hyper))
    after, _ = update(state)
    target = bellman_target(state, batch, noise[0], box, hyper.gamma)
    gradient = jax.grad(critic_loss)(state.critics, batch, target)[-1]["bias"]
    step = -1e-3 * gradient / (np.abs(gradient) + 1e-8)  # Adam's first step: g / (|g| + eps)
    np.testing.assert_allclose(
        after.critics[-1]["bias"] - state.critics[-1]["bias"], step, rtol=1e-3, atol=1e-7
    )
    moved = 0.99 * state.targets[0]["weight"] + 0.01 * after.critics[0]["weight"]
    np.testing.assert_allclose(after.targets[0]["weight"], moved, rtol=1e-5, atol=1e-7)
    # the actor improves on the critics that have just been updated
    gradient, _ = jax.grad(actor_loss, has_aux=True)(
        state.actor, after.critics, state.log_alpha, batch.observation, noise[1], box
    )
    gradient = gradient["actor"][-1]["bias"]
    step = -3e-4 * gradient / (np.abs(gradient) + 1e-8)
    change = after.actor["actor"][-1]["bias"] - state.actor["actor"][-1]["bias"]
    np.testing.assert_allclose(change, step, rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-2.818, -0.888), (0.0, 10.0)])
def test_the_squashed_density_integrates_to_one(low, high):
    actor = SquashedActor(init_squashed(np.random.default_rng(3), 2, 1, (8,)), [low], [high])
    edges = np.linspace(-9, 9, 20_001)  # even in u, so that the grid is fine where the density is steep
    a = (high + low) / 2 + (high - low) / 2 * np.tanh(edges)
    observation = np.tile([0.3, -0.2], (a.size, 1))
    density = np.exp(actor.log_density(observation, a[:, None]).astype(np.float64))
    assert np.trapezoid(density, a) == pytest.approx(1.0, abs=2e-4)


def test_the_density_is_the_change_of_variables():
    """mu(a) = N(u) / |da/du| with da/du by central differences."""
    actor = SquashedActor(init_squashed(np.random.default_rng(5), N, M, (16,)), LOW, HIGH)
    observation = np.random.default_rng(6).standard_normal((20, N))
    action, log_density = actor.sample(observation, np.random.default_rng(7))
    noise = np.random.default_rng(7).standard_normal((20, M), np.float32).astype(np.float64)
    output = network(actor.params["actor"], observation)
    std = np.exp(-5 + 3.5 * (np.tanh(output[:, M:]) + 1))
    u = output[:, :M] + std * noise

    def squash(u):
        return (HIGH + LOW) / 2 + (HIGH.astype(float) - LOW) / 2 * np.tanh(u)

    slope = (squash(u + 1e-6) - squash(u - 1e-6)) / 2e-6
    expected = np.log(np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / std / slope).sum(1)
    np.testing.assert_allclose(action, squash(u), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(log_density, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(actor.log_density(observation, action), log_density, atol=2e-3)


def test_the_replay_overwrites_the_oldest_rows_and_gives_back_what_it_got(example):
    _, batch, _ = example
    rows = pack(batch)
    for name, there, back in zip(Transitions._fields, batch, unpack(rows, N, M), strict=True):
        np.testing.assert_array_equal(back, there, err_msg=name)
    replay = Replay(jnp.zeros((2 * B, rows.shape[1])), jnp.int32(0))
    for k in (1, 2, 3):
        replay = insert(replay, k * rows)
    np.testing.assert_array_equal(replay.rows, np.vstack([3 * rows, 2 * rows]))
    assert int(replay.count) == 3 * B
