"""What a policy's noise costs: closed forms of d ln J / d ln sigma."""

import numpy as np
import pytest
from scipy.stats import norm

from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import SAFEEXPLORER_AUTO
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.noise import make_noise_cost

SIGMA, COUNT = 0.2, 40_000
HYPER = Hyperparameters()


def params():
    """A policy with mean zero at an observation of zeros, and a critic that knows nothing."""
    made = init_actor_critic(np.random.default_rng(1), 3, 2, (16,))
    return made | {"log_std": np.full(2, np.log(SIGMA), np.float32)}


def gaussian() -> np.ndarray:
    """[COUNT, 2] actions of the policy: the quantiles of each number, in an order of its own."""
    one = SIGMA * norm.ppf((np.arange(COUNT) + 0.5) / COUNT)
    return np.stack([one, np.random.default_rng(0).permutation(one)], -1).astype(np.float32)


def cost(rollout) -> float:
    return float(make_noise_cost(SAFEEXPLORER_AUTO, HYPER)(params(), rollout))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_reward_that_is_quadratic_in_the_noise_changes_by_twice_the_relative_change(sign):
    """r = +-|a|^2 in episodes of one step: J = +-m sigma^2, so that -dJ / d ln sigma / E|r| = -+2."""
    action = gaussian()[:, None]
    reward = sign * (action.astype(float) ** 2).sum(-1)
    ended = np.ones(reward.shape, bool)
    rollout = blank_rollout(reward.shape, 3, 2, action=action, task_reward=reward, terminated=ended)
    assert cost(rollout) == pytest.approx(-2.0 * sign, rel=0.02)


def test_a_reward_that_no_noise_touches_costs_nothing():
    action = gaussian()[:, None]
    reward = 1.0 + action[..., 0].astype(float)
    ended = np.ones(reward.shape, bool)
    rollout = blank_rollout(reward.shape, 3, 2, action=action, task_reward=reward, terminated=ended)
    assert cost(rollout) == pytest.approx(0.0, abs=0.02)


def test_what_noise_does_later_counts_as_the_advantage_counts_it():
    """The second of two steps pays -|a|^2 of the first: E[A score] = -2 gamma lambda m sigma^2. Of its own noise it
    does not. Both means, that of E[A score] and that of E|r|, are over twice as many steps."""
    first = gaussian()
    second = np.random.default_rng(1).permutation(first)
    action = np.stack([first, second], 1).reshape(-1, 1, 2)
    paid = -(first.astype(float) ** 2).sum(-1)
    reward = np.stack([np.zeros(COUNT), paid], 1).reshape(-1, 1)
    ended = np.tile([[False], [True]], (COUNT, 1))
    rollout = blank_rollout(reward.shape, 3, 2, action=action, task_reward=reward, terminated=ended)
    assert cost(rollout) == pytest.approx(2.0 * HYPER.gamma * HYPER.gae_lambda, rel=0.02)


def test_the_recoverys_steps_do_not_count():
    action = gaussian()[:, None]
    reward = -(action.astype(float) ** 2).sum(-1)
    known = {"action": action, "task_reward": reward, "terminated": np.ones(reward.shape, bool)}
    alone = cost(blank_rollout(reward.shape, 3, 2, **known))
    doubled = {name: np.concatenate([array, array[::-1]]) for name, array in known.items()}
    doubled["action"][len(action) :] = 0.9
    recovering = np.arange(2 * len(action))[:, None] >= len(action)
    both = blank_rollout(recovering.shape, 3, 2, recovering=recovering, **doubled)
    assert cost(both) == pytest.approx(alone, rel=1e-4)
