"""The constrained learners' parts by hand: costs, budget, statistics, price, estimates, one update."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from safeexplorer.acting.costs import step_cost
from safeexplorer.acting.networks import policy_mean
from safeexplorer.acting.trajectory import Rollout, blank_rollout
from safeexplorer.learning.constrained.budget import WINDOW, Budget
from safeexplorer.learning.constrained.estimates import clipped, critic_loss, estimate
from safeexplorer.learning.constrained.learner import ConstrainedLearner, init_params
from safeexplorer.learning.constrained.ppo_lagrangian import penalised, raise_price
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters
from safeexplorer.learning.moments import deviation, merge, no_moments
from safeexplorer.learning.networks import gaussian_kl

METHODS = ("ppo_lagrangian", "cpo")


# -- cost and budget ---------------------------------------------------------------------------------------


def test_a_fall_costs_one_and_the_time_limit_nothing():
    terminated = np.array([False, True, False])  # the third robot ran out of time
    assert step_cost("fall", 0.5)(terminated, np.array([9.0, 9.0, 9.0])).tolist() == [0, 1, 0]


def test_the_region_costs_one_per_step_begun_outside():
    assert step_cost("region", 0.5)(np.ones(3, bool), np.array([0.4, 0.5, 0.6])).tolist() == [0, 0, 1]


def test_a_wrong_cost_lists_the_known_ones():
    with pytest.raises(ValueError, match="no cost 'fell'; known: fall, region"):
        step_cost("fell", 1.0)


def test_costs_add_up_per_episode_across_rollouts():
    budget = Budget(2, 0.05)
    assert budget.average() == 0.05  # nothing known: the limit itself
    cost = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    ended = np.array([[False, False], [False, True], [False, False]])
    assert budget.add(cost, ended) == [1.0]  # robot 1: 0 + 1
    assert budget.running.tolist() == [2.0, 1.0]
    assert budget.add(np.ones((1, 2)), np.ones((1, 2), bool)) == [3.0, 2.0]
    assert budget.average() == 2.0  # (1 + 3 + 2) / 3


def test_only_the_last_fifty_episodes_count():
    budget = Budget(1, 0.05)
    budget.add(np.ones((WINDOW, 1)), np.ones((WINDOW, 1), bool))
    budget.add(np.zeros((10, 1)), np.ones((10, 1), bool))
    assert budget.average() == pytest.approx(0.8)  # 40 of 50


# -- statistics --------------------------------------------------------------------------------------------


def test_statistics_equal_numpys_on_the_full_data():
    rng = np.random.default_rng(0)
    data = 1000.0 + rng.normal(size=(500, 3)) * np.array([1.0, 10.0, 0.1])
    moments = no_moments((3,))
    for part in np.split(data, [1, 7, 100, 350]):
        moments = merge(moments, part)
    assert moments.count == 500
    np.testing.assert_allclose(moments.mean, data.mean(0), rtol=1e-14)
    np.testing.assert_allclose(deviation(moments), data.std(0, ddof=1), rtol=1e-10)


def test_a_constant_is_not_divided_by_zero():
    assert deviation(no_moments()) == 1.0
    assert deviation(merge(no_moments(), np.array([3.0]))) == 1.0
    assert deviation(merge(no_moments(), np.full(9, 3.0))) == 0.01


def test_a_policy_with_a_normaliser_sees_normalised_observations_within_bounds():
    params = {
        "actor": [{"weight": np.eye(2, dtype=np.float32), "bias": np.zeros(2, np.float32)}],
        "normaliser": {"mean": np.array([1.0, 2.0]), "deviation": np.array([2.0, 0.1])},
    }
    assert policy_mean(params, np.array([[5.0, 1.0]])).tolist() == [
        [2.0, -5.0]
    ]  # (5 - 1) / 2, -10 held at -5


# -- PPO-Lagrangian ----------------------------------------------------------------------------------------


def adams_by_hand(start: float, rate: float, excesses: list[float]) -> list[float]:
    """lambda_t = max(0, lambda + rate m / (sqrt v + 1e-8)), m and v the corrected running means of c and c^2."""
    m = v = 0.0
    price, prices = start, []
    for t, c in enumerate(excesses, start=1):
        m, v = 0.9 * m + 0.1 * c, 0.999 * v + 0.001 * c * c
        price = max(0.0, price + rate * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8))
        prices.append(price)
    return prices


def test_the_price_follows_its_formula():
    excesses = [0.95, 0.95, 0.4, -0.05, -0.05, -0.05, 0.2, -0.05]
    price = jnp.float32(0.001)
    optimizer, found = optax.adam(0.035).init(price), []
    for excess in excesses:
        price, optimizer = raise_price(price, optimizer, jnp.float32(excess), 0.035)
        found.append(float(price))
    assert found == pytest.approx(adams_by_hand(0.001, 0.035, excesses), rel=1e-4)
    assert found[0] == pytest.approx(0.036, rel=1e-4)  # Adam's first step has the length of its rate


def test_the_price_never_falls_below_zero():
    price, _ = raise_price(
        jnp.float32(0.001), optax.adam(0.035).init(jnp.float32(0)), jnp.float32(-1.0), 0.035
    )
    assert price == 0.0


def test_penalised_advantage():
    assert penalised(4.0, 2.0, 3.0) == pytest.approx((4 - 3 * 2) / 4)


def test_kl_of_gaussians_by_hand():
    # log(2/1) + (1^2 + (0 - 3)^2) / (2 * 2^2) - 1/2
    kl = gaussian_kl((jnp.zeros(1), jnp.zeros(1)), (jnp.full(1, 3.0), jnp.log(jnp.full(1, 2.0))))
    assert float(kl[0]) == pytest.approx(math.log(2) + 10 / 8 - 0.5)


# -- estimates ---------------------------------------------------------------------------------------------


def one_robot(terminated: list[int], truncated: list[int]) -> Rollout:
    """Four steps of one robot; the observation is the step's number, 10 more where an episode has ended."""
    steps = np.arange(4.0, dtype=np.float32)[:, None, None]
    ended = (np.array(terminated) | np.array(truncated)).astype(bool)[:, None, None]
    return blank_rollout(
        (4, 1),
        observation=steps,
        next_observation=np.where(ended, steps + 11.0, steps + 1.0),
        terminated=np.array(terminated, bool)[:, None],
        truncated=np.array(truncated, bool)[:, None],
    )


def linear_params(slope: float):
    """V_c(s) = slope * s; a reward critic and an actor of zeros."""
    layer = [{"weight": np.zeros((1, 1), np.float32), "bias": np.zeros(1, np.float32)}]
    critic = [{"weight": np.full((1, 1), slope, np.float32), "bias": np.zeros(1, np.float32)}]
    unit = {"mean": np.zeros(1, np.float32), "deviation": np.full(1, 100.0, np.float32)}  # far from the clip
    policy = {"actor": layer, "log_std": np.zeros(1, np.float32)}
    return policy | {"critic": layer, "cost_critic": critic, "normaliser": unit}


def test_cost_returns_by_hand_with_a_fall_and_a_time_limit():
    # V_c(s) = 0.1 s. A fall at step 1 (cost 1), the time limit at step 3, where s' = 14.
    rollout = one_robot([0, 1, 0, 0], [0, 0, 0, 1])
    hyper = ConstrainedHyperparameters(gamma=0.5, gae_lambda=0.5)
    cost = np.array([[0.0], [1.0], [0.0], [0.0]], np.float32)
    steps = estimate(linear_params(10.0), rollout, np.zeros((4, 1), np.float32), cost, hyper)
    d0 = 0.0 + 0.5 * 0.1 - 0.0  # 0.05
    d1 = 1.0 + 0.0 - 0.1  # the fall: nothing after it
    d2 = 0.0 + 0.5 * 0.3 - 0.2  # -0.05
    d3 = 0.0 + 0.5 * 1.4 - 0.3  # the time limit: V_c(14) = 1.4
    advantage = np.array([d0 + 0.25 * d1, d1, d2 + 0.25 * d3, d3])
    np.testing.assert_allclose(steps.cost_target, advantage + [0.0, 0.1, 0.2, 0.3], rtol=1e-5)
    np.testing.assert_allclose(steps.cost_advantage, advantage - advantage.mean(), rtol=1e-4, atol=1e-6)


def test_reward_advantages_are_standardised_and_cost_advantages_only_centred():
    rollout = one_robot([0, 0, 0, 1], [0, 0, 0, 0])
    reward = np.array([[3.0], [0.0], [7.0], [1.0]], np.float32)
    steps = estimate(linear_params(10.0), rollout, reward, 5 * reward, ConstrainedHyperparameters())
    assert float(steps.advantage.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(steps.advantage.std()) == pytest.approx(1.0, rel=1e-5)
    assert float(steps.cost_advantage.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(steps.cost_advantage.std()) > 5


def test_critic_loss_by_hand():
    critic = [{"weight": np.full((1, 1), 2.0, np.float32), "bias": np.full(1, 1.0, np.float32)}]
    # errors 3 - 1 and 5 - 5: mean square 2; 0.001 * (2^2 + 1^2)
    assert float(critic_loss(critic, np.array([[1.0], [2.0]]), np.array([1.0, 5.0]))) == pytest.approx(2.005)


def test_each_network_is_clipped_by_its_own_norm():
    gradient = {"actor": jnp.full(4, 30.0), "log_std": jnp.zeros(1), "critic": jnp.full(4, 1.0)}
    held = clipped(gradient, 40.0)
    np.testing.assert_allclose(held["actor"], 20.0, rtol=1e-5)  # norm 60 -> 40
    np.testing.assert_allclose(held["critic"], 1.0, rtol=1e-5)


# -- one update --------------------------------------------------------------------------------------------


def learner_and_rollout(method: str, **changes):
    rng = np.random.default_rng(0)
    shape = (16, 2)
    rollout = blank_rollout(
        shape,
        observation=rng.normal(size=(*shape, 3)).astype(np.float32),
        next_observation=rng.normal(size=(*shape, 3)).astype(np.float32),
        proposed=rng.normal(size=(*shape, 2)).astype(np.float32),
        action=rng.normal(size=(*shape, 2)).astype(np.float32),
        task_reward=rng.normal(size=shape),
        terminated=rng.random(shape) < 0.2,
    )
    hyper = ConstrainedHyperparameters(minibatches=4, **changes)
    learner = ConstrainedLearner(
        method, hyper, init_params(rng, 3, 2, (8,)), Budget(2, 0.05), step_cost("fall", 1.0)
    )
    order = np.stack([rng.permutation(32) for _ in range(hyper.epochs)]).astype(np.int32)
    return learner, (rollout, order, 3e-4)


def test_passes_stop_once_the_policy_has_moved_far_enough():
    learner, arguments = learner_and_rollout("ppo_lagrangian", target_kl=1e-8)
    assert learner.update(*arguments)["passes"] == 1
    learner, arguments = learner_and_rollout("ppo_lagrangian", target_kl=1.0)
    assert learner.update(*arguments)["passes"] == 10


@pytest.mark.parametrize("method", METHODS)
def test_statistics_change_only_after_the_update_that_used_them(method):
    learner, (rollout, *rest) = learner_and_rollout(method)
    assert learner.params["normaliser"]["deviation"].tolist() == [1.0] * 3
    learner.update(rollout, *rest)
    seen = rollout.observation.reshape(-1, 3).astype(float)
    np.testing.assert_allclose(learner.params["normaliser"]["mean"], seen.mean(0), rtol=1e-5)
    np.testing.assert_allclose(learner.params["normaliser"]["deviation"], seen.std(0, ddof=1), rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_reported_cost_is_that_of_the_falls(method):
    learner, arguments = learner_and_rollout(method)
    row = learner.update(*arguments)
    assert row["cost_ended"] == arguments[0].terminated.sum()
    assert row["episode_cost"] == 1.0  # every episode that ended fell
    assert row["finite"]


def test_a_policy_over_the_limit_goes_down_the_cost():
    learner, arguments = learner_and_rollout("cpo")
    row = learner.update(*arguments)
    assert row["case"] == 0.0
    assert 0.0 < row["approx_kl"] <= 0.02
