"""The learner behind a hand-over: updates that are limited, spreads that are held, states that go on."""

import jax
import numpy as np
import pytest

from safeexplorer.acting.handover import Handover
from safeexplorer.acting.plan import Plan
from safeexplorer.acting.policy import propose
from safeexplorer.acting.spread import FEWEST
from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import SAFEEXPLORER, SAFEEXPLORER_AUTO
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.prepared import PreparedLearner, paced
from safeexplorer.learning.update import clipped_apart, init_learner, make_learn

STEPS, ROBOTS = 64, 2
HYPER = Hyperparameters(epochs=4, minibatches=4)
ORDER = np.stack([np.random.default_rng(seed).permutation(STEPS * ROBOTS) for seed in range(4)])


def rollout(seed=0, recovers=False):
    """Main steps of a policy that is paid for pushing, or the recovery's, which pushes by 0.7 of the first number."""
    rng = np.random.default_rng(seed)
    observation = rng.normal(size=(STEPS + 1, ROBOTS, 3)).astype(np.float32)
    action = 0.7 * observation[:-1, :, :2] if recovers else 0.1 * rng.normal(size=(STEPS, ROBOTS, 2))
    action = action.astype(np.float32)
    return blank_rollout((STEPS, ROBOTS), 3, 2)._replace(
        observation=observation[:-1],
        next_observation=observation[1:],
        proposed=action,
        action=action,
        task_reward=action.sum(-1).astype(np.float64),
        recovering=np.full((STEPS, ROBOTS), recovers),
        distance=np.full((STEPS, ROBOTS), 0.1),
    )


def params(log_std=-2.3):
    made = init_actor_critic(np.random.default_rng(1), 3, 2, (16,))
    return made | {"log_std": np.full(2, log_std, np.float32)}


def learner(**changes) -> PreparedLearner:
    handover = Handover(Plan(**{"updates": 100} | changes), ROBOTS, np.ones(2))
    return PreparedLearner(SAFEEXPLORER_AUTO, HYPER, params(), handover, (ROBOTS, STEPS, 2))


@pytest.mark.parametrize("kl, pace", [(0.05, 0.4), (0.02, 0.6), (0.01, 0.9)])
def test_the_pace_follows_how_far_the_last_update_led(kl, pace):
    assert paced(0.6, kl, 0.02) == pytest.approx(pace)


def test_the_pace_stays_within_its_limits():
    assert paced(0.05, 1.0, 0.02) == 0.05 and paced(0.9, 0.0, 0.02) == 1.0


def test_a_limited_update_moves_a_narrow_policy_less_far():
    moved = {}
    for method in (SAFEEXPLORER, SAFEEXPLORER_AUTO):
        policy, rolled = params(log_std=-5.0), rollout()
        own = propose(policy, rolled.observation.reshape(-1, 3)).reshape(rolled.action.shape)
        rolled = rolled._replace(action=own + np.float32(0.067) * rolled.action)  # sigma e^-5 = 0.0067
        state = init_learner(policy, HYPER)
        _, metrics = make_learn(method, HYPER)(state, rolled, ORDER, np.float32(2e-3))
        moved[method.name] = float(metrics["approx_kl"])
    assert moved["safeexplorer"] > 0.1
    assert moved["safeexplorer_auto"] < 0.5 * moved["safeexplorer"]


def test_a_large_gradient_of_the_policy_leaves_the_critics_as_it_is():
    """Norms of 50 and of 0.05: the one is clipped to 0.5, the other is small enough. One norm for both would make it a
    hundredth."""
    gradient, of_policy = np.array([30.0, 40.0, 0.03, 0.04]), np.array([1.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(clipped_apart(gradient, of_policy, 0.5), [0.3, 0.4, 0.03, 0.04], rtol=1e-6)
    np.testing.assert_allclose(clipped_apart(0.0 * gradient, of_policy, 0.5), np.zeros(4))


@pytest.mark.parametrize("narrower", [0.0, 1.0, 2.0])
def test_imitation_pulls_on_a_narrow_policys_mean_as_on_the_first_ones(narrower):
    """d(-log pi)/d mean = (mean - a) / sigma^2, times (sigma / sigma_0)^2; sigma_0 is 0.1."""
    made = learner(begin_as_recovery=False, by_evidence=False)
    made.params = made.params | {"log_std": np.full(2, np.log(0.1) - narrower, np.float32)}
    sigma = np.exp(made.params["log_std"][0])
    assert made._imitation_share() / sigma**2 == pytest.approx(1.0 / 0.1**2, rel=1e-5)


def test_the_policy_learns_what_the_recovery_does_while_it_acts_alone():
    made = learner(imitation_share=1.0)
    for seed in range(40):
        row = made.update(ended_well(rollout(seed, recovers=True)), ORDER, 3e-4)
    assert made.handover.alone and row["spread_low"] == row["spread_high"] == pytest.approx(np.log(0.1))
    np.testing.assert_allclose(made.params["log_std"], np.log(0.1), rtol=1e-6)
    probe = rollout(99, recovers=True)
    error = propose(made.params, probe.observation.reshape(-1, 3)) - probe.action.reshape(-1, 2)
    assert np.sqrt((error**2).mean()) < 0.25


def ended_well(rolled):
    """The same with an episode that ends at the time limit, so that its outcome is known."""
    rolled.truncated[-1] = True
    return rolled


def test_a_fall_narrows_the_very_next_rollout():
    made = learner(begin_as_recovery=False, by_evidence=False, spread_fade=0.0)
    before = made.params["log_std"].copy()
    fallen = rollout()
    fallen.terminated[-1, 0] = True
    for _ in range(8192 // (STEPS * ROBOTS)):
        made.update(fallen, ORDER, 0.0)
    assert (made.params["log_std"] <= before - 0.59).all()  # three falls of a period count


def test_the_cost_of_noise_is_measured_once_the_policy_acts_and_its_spread_is_held():
    for changes, measured in (
        ({"begin_as_recovery": False, "by_evidence": False}, 3),
        ({"begin_as_recovery": False, "by_evidence": False, "hold_spread": False}, 0),
        ({}, 0),  # the recovery acts alone
    ):
        made = learner(**changes)
        for seed in range(3):
            row = made.update(rollout(seed), ORDER, 3e-4)
        assert made.handover.spread.noise.filled == measured and row["noise_cost_low"] is None
    made = learner(begin_as_recovery=False, by_evidence=False)
    for seed in range(FEWEST):
        row = made.update(rollout(seed), ORDER, 3e-4)
    assert row["noise_cost_low"] < row["noise_cost_high"]


def test_states_go_on_bit_for_bit():
    whole, first, second = learner(), learner(), learner()
    for seed in range(3):
        whole.update(rollout(seed), ORDER, 3e-4)
        first.update(rollout(seed), ORDER, 3e-4)
    second.set_state(first.get_state())
    for each in (whole, second):
        each.update(rollout(7), ORDER, 3e-4)
    for a, b in zip(jax.tree.leaves(whole.get_state()), jax.tree.leaves(second.get_state()), strict=True):
        np.testing.assert_array_equal(a, b)
