"""Normalised observations and scaled rewards: the networks mean the same before and after every change of units."""

import jax
import numpy as np
import pytest

from safeexplorer.acting.networks import mlp, normalised_observation, policy_mean, value
from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.normalising import BELIEVED, Normaliser, RewardScale

RNG = np.random.default_rng(0)


def params():
    made = init_actor_critic(np.random.default_rng(1), 3, 2, (8,))
    return jax.tree.map(lambda x: (x + 0.3 * RNG.normal(size=x.shape)).astype(np.float32), made)


def seen(count=BELIEVED):
    """Steps of one robot around (5, 0, -1), with deviations of 3, 1 and 0.1."""
    observation = RNG.normal(size=(count, 1, 3)) * [3.0, 1.0, 0.1] + [5.0, 0.0, -1.0]
    return blank_rollout((count, 1), n=3)._replace(observation=observation.astype(np.float32))


def test_nothing_is_changed_before_anything_was_seen():
    observation = RNG.normal(size=(10, 3)).astype(np.float32)
    np.testing.assert_allclose(Normaliser(3).of(observation), observation, rtol=1e-5)


def test_the_belief_gives_way_to_what_is_seen():
    normaliser = Normaliser(3)
    for _ in range(20):
        normaliser.add(seen(), params())
    got = normaliser.params  # 20 parts in 21 of what is seen, one of mean 0 and deviation 1
    np.testing.assert_allclose(got["mean"], np.array([5.0, 0.0, -1.0]) * 20 / 21, atol=0.02)
    np.testing.assert_allclose(got["deviation"], [3.1, 1.0, 0.32], atol=0.05)


def test_policy_and_critic_are_the_same_functions_after_a_change():
    normaliser, before = Normaliser(3), params()
    observation = (RNG.normal(size=(50, 3)) * 0.5).astype(np.float32)
    old = normaliser.params
    after = jax.device_get(normaliser.add(seen(), before))
    assert np.abs(normaliser.params["mean"] - old["mean"]).max() > 1
    for name in ("actor", "critic"):
        was = mlp(before[name], normalised_observation(old, observation))
        now = mlp(after[name], normalised_observation(normaliser.params, observation))
        np.testing.assert_allclose(was, now, atol=1e-4)


def test_the_actor_that_carries_the_normaliser_acts_alike():
    normaliser, made = Normaliser(3), params()
    observation = seen(20).observation[:, 0]
    made = jax.device_get(normaliser.add(seen(), made))
    whole = policy_mean(made | {"normaliser": normaliser.params}, observation)
    np.testing.assert_array_equal(whole, mlp(made["actor"], normaliser.of(observation)))


def rewarded(reward, ended=()):
    rollout = blank_rollout((len(reward), 1))._replace(task_reward=np.array(reward, float)[:, None])
    rollout.truncated[list(ended)] = True
    return rollout


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums():
    scale = RewardScale(1, gamma=0.5)
    scale.add(rewarded([1.0, 1.0, 1.0, 4.0], ended=[2]), params())
    # sums 1, 1.5, 1.75, then a new episode: 4; mean 2.0625
    wanted = np.std([1.0, 1.5, 1.75, 4.0])
    assert scale.scale == pytest.approx(wanted)
    assert scale.apply(rewarded([3.0])).task_reward[0, 0] == pytest.approx(3.0 / wanted)


def test_sums_go_on_from_one_rollout_to_the_next():
    whole, parts = RewardScale(1, 0.9), RewardScale(1, 0.9)
    reward = RNG.normal(size=20)
    whole.add(rewarded(reward), params())
    for part in (reward[:7], reward[7:]):
        parts.add(rewarded(part), params())
    assert parts.scale == pytest.approx(whole.scale)


def test_the_critic_means_the_same_after_a_change_of_unit():
    scale, before = RewardScale(1, 0.9), params()
    observation, outside = RNG.normal(size=(20, 3)).astype(np.float32), np.zeros(20, bool)
    after = jax.device_get(scale.add(rewarded(10.0 * RNG.normal(size=50)), before))
    was = value(before["critic"], observation, outside)
    now = value(after["critic"], observation, outside) * scale.scale
    assert scale.scale > 2
    np.testing.assert_allclose(was, now, rtol=1e-4)
