"""Whole updates: against a transcription of the formulas, and against PPO where nothing was recovered."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import METHODS, PPO, SAFEEXPLORER
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import init_learner, make_learn
from safeexplorer.theory.update import example_rollout

HYPER = Hyperparameters(epochs=2, minibatches=2, lambda_compat=0.1, entropy_coefficient=0.01)
RATE = 3e-2  # large, so that clipping of ratios and gradients comes into play
ORDER = np.stack([np.random.default_rng(seed).permutation(20) for seed in (0, 1)])


def small_rollout(recovers: bool = True) -> Rollout:
    """The example in float32; without recovery, every step is the main policy's."""
    rollout = example_rollout()
    if not recovers:
        nowhere = np.zeros_like(rollout.recovering)
        rollout = rollout._replace(recovering=nowhere, next_outside=nowhere, action=rollout.proposed)
    return jax.tree.map(lambda x: np.asarray(x, bool if np.asarray(x).dtype == bool else np.float32), rollout)


def small_params() -> dict:
    """Random, with a policy that prefers something."""
    rng = np.random.default_rng(3)
    params = init_actor_critic(rng, 3, 2, (8,))
    return jax.tree.map(lambda x: (x + 0.3 * rng.normal(size=x.shape)).astype(np.float32), params)


def update(method, rollout):
    """New parameters and metrics after the real update."""
    learn = make_learn(method, HYPER)
    state, metrics = learn(init_learner(small_params(), HYPER), rollout, ORDER, np.float32(RATE))
    return jax.tree.map(np.asarray, state.params), metrics


# The formulas, transcribed: nothing below this line is imported from the package


def network(layers, x):
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["weight"] + layer["bias"])
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def log_prob(params, observation, action):
    sigma = jnp.exp(params["log_std"])
    z = (action - network(params["actor"], observation)) / sigma
    return (-(z**2) / 2 - jnp.log(sigma) - jnp.log(2 * jnp.pi) / 2).sum(axis=-1)


def transcribed_values(params, rollout, safe):
    """V(s_t), V(s_{t+1}) and the learning reward; `safe` overwrites the value at triggering states."""
    value = np.array(network(params["critic"], rollout.observation)[..., 0])
    after = np.array(network(params["critic"], rollout.next_observation)[..., 0])
    reward = np.array(rollout.task_reward)
    gate = np.zeros_like(reward)
    if safe:
        reward[rollout.recovering & ~rollout.terminated] = 0.0
        value[2, 0] = 0.99**3 * value[5, 0]  # robot 0: steps 2, 3, 4, back inside at 5
        value[3, 1] = 0.99**3 * rollout.task_reward[6, 1]  # robot 1: steps 3 to 6, fallen
        gate[2:5, 0] = 1.0
    return value, after, reward, gate


def transcribed_gae(value, after, reward, rollout):
    advantage, trace = np.zeros_like(reward), np.zeros(2)
    for t in reversed(range(10)):
        over = rollout.terminated[t] | rollout.truncated[t]
        following = value[t + 1] if t < 9 else after[9]
        following = np.where(over, after[t], following) * ~rollout.terminated[t]
        trace = reward[t] + 0.99 * following - value[t] + 0.99 * 0.95 * ~over * trace
        advantage[t] = trace
    return advantage


def transcribed_loss(params, rows):
    """Clipped surrogate on main steps, squared error, imitation and entropy; a minibatch of rows."""
    observation, action, old, advantage, target, recovering, gate = rows
    main = ~recovering
    normal = (advantage - advantage[main].mean()) / (advantage[main].std(ddof=1) + 1e-8)
    likelihood = log_prob(params, observation, action)
    ratio = jnp.exp(likelihood - old)[main]
    clipped = jnp.clip(ratio, 0.8, 1.2)
    policy = -jnp.minimum(ratio * normal[main], clipped * normal[main]).mean()
    critic = 0.5 * ((network(params["critic"], observation)[..., 0] - target) ** 2).mean()
    imitation = -0.1 * (gate * likelihood).sum() / max(recovering.sum(), 1)
    entropy = (params["log_std"] + 0.5 * (1 + jnp.log(2 * jnp.pi))).sum()
    return policy + 0.5 * critic + imitation - 0.01 * entropy


def transcribed_update(params, rollout, safe):
    """Two epochs of two minibatches; global-norm clip at 0.5; Adam (0.9, 0.999, 1e-5) written out."""
    old = log_prob(params, rollout.observation, rollout.action)
    value, after, reward, gate = transcribed_values(params, rollout, safe)
    advantage = transcribed_gae(value, after, reward, rollout)
    table = [rollout.observation, rollout.action, old, advantage, advantage + value, rollout.recovering, gate]
    flat = [np.asarray(x).reshape(20, *np.shape(x)[2:]) for x in table]
    leaves, tree = jax.tree.flatten(params)
    first, second, step = [0.0] * len(leaves), [0.0] * len(leaves), 0
    for order in ORDER:
        for rows in (order[:10], order[10:]):
            step += 1
            minibatch = [x[rows] for x in flat]
            gradient = jax.tree.leaves(
                jax.grad(transcribed_loss)(jax.tree.unflatten(tree, leaves), minibatch)
            )
            norm = np.sqrt(sum((np.asarray(g, float) ** 2).sum() for g in gradient))
            gradient = [np.asarray(g, float) * min(1.0, 0.5 / norm) for g in gradient]
            first = [0.9 * m + 0.1 * g for m, g in zip(first, gradient, strict=True)]
            second = [0.999 * v + 0.001 * g**2 for v, g in zip(second, gradient, strict=True)]
            for i, (m, v) in enumerate(zip(first, second, strict=True)):
                m_hat, v_hat = m / (1 - 0.9**step), v / (1 - 0.999**step)
                leaves[i] = (leaves[i] - RATE * m_hat / (np.sqrt(v_hat) + 1e-5)).astype(np.float32)
    return jax.tree.unflatten(tree, leaves)


@pytest.mark.parametrize("method", [PPO, SAFEEXPLORER], ids=lambda m: m.name)
def test_update_equals_its_transcription(method):
    safe = method is SAFEEXPLORER
    rollout = small_rollout(recovers=safe)
    found, metrics = update(method, rollout)
    expected = transcribed_update(small_params(), rollout, safe)
    moved = 0.0
    for a, b, before in zip(*map(jax.tree.leaves, (found, expected, small_params())), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
        moved = max(moved, np.abs(a - before).max())
    assert moved > 0.06  # four steps of at most 0.03 each: the update did something
    assert metrics["clip_share"] > 0


def test_transcribed_segments_are_those_of_the_example():
    recovering = example_rollout().recovering
    assert np.flatnonzero(recovering[:, 0]).tolist() == [2, 3, 4]
    assert np.flatnonzero(recovering[:, 1]).tolist() == [3, 4, 5, 6]


@pytest.fixture(scope="module")
def ppo_without_recovery():
    return update(PPO, small_rollout(recovers=False))[0]


@pytest.mark.parametrize("name", ["unmasked", "masked", "analytic", "safeexplorer"])
def test_without_recovery_steps_every_method_is_ppo_bit_for_bit(name, ppo_without_recovery):
    found, _ = update(METHODS[name], small_rollout(recovers=False))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(ppo_without_recovery), strict=True):
        np.testing.assert_array_equal(a, b)
