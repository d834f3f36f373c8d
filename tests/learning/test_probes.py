"""The whole loop on worlds whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from probes import Controller, Probe, learn_on

from safeexplorer.acting.interventions import JumpStart, SafeRegion, StateShield
from safeexplorer.acting.networks import mlp, value
from safeexplorer.acting.schedules import constant
from safeexplorer.learning.hyperparameters import Hyperparameters


def one(x, a):
    return np.ones_like(x)


def critic(params, x, t=0.0, outside=False):
    return float(value(params["critic"], np.array([x, t], np.float32), np.array(outside)))


def test_a_constant_reward_with_a_time_limit_is_worth_one_over_one_minus_gamma():
    params, _ = learn_on(Probe(one, limit=5))
    # The time limit bootstraps: 1 + 0.9 + 0.81 + ... = 1 / (1 - 0.9) = 10 at every time.
    for t in (0.0, 0.4, 0.8):
        assert critic(params, 0.0, t) == pytest.approx(10.0, abs=0.3)


def test_a_constant_reward_that_ends_in_a_fall_is_worth_what_is_left():
    params, _ = learn_on(Probe(one, limit=5, falls_at_limit=True))
    # k steps left: (1 - 0.9^k) / (1 - 0.9); 5 left: 4.0951, 3 left: 2.71, 1 left: 1.
    for t, expected in ((0.0, 4.0951), (0.4, 2.71), (0.8, 1.0)):
        assert critic(params, 0.0, t) == pytest.approx(expected, abs=0.15)


def test_the_policy_finds_the_best_action():
    params, _ = learn_on(Probe(lambda x, a: -((a - 0.5) ** 2)), updates=80)
    assert mlp(params["actor"], np.zeros(2, np.float32))[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    "intervention",
    [
        SafeRegion(constant(0.5)),
        JumpStart(constant(3)),
        StateShield(lambda observation: np.abs(observation[:, 0]) > 0.5),
    ],
)
def test_every_intervention_trains_and_hands_over(intervention):
    recovery = Controller(lambda observation: -observation[:, 0])
    env = Probe(lambda x, a: -np.abs(x), move=0.5, limit=20, falls_beyond=3.0)
    _, rows = learn_on(env, "safeexplorer", 5, intervention=intervention, recovery=recovery)
    assert all(0.0 < row["recovery_rate"] < 1.0 for row in rows)
    assert all(row["finite"] for row in rows)


def test_the_compatibility_loss_teaches_the_recoverys_action_outside_the_region():
    recovery = Controller(lambda observation: -np.sign(observation[:, 0]))
    env = Probe(lambda x, a: np.zeros_like(x), move=0.3, limit=50)
    hyper = Hyperparameters(gamma=0.9, epochs=4, minibatches=4, lambda_compat=10.0)
    region = SafeRegion(constant(0.5))
    params, _ = learn_on(env, "safeexplorer", 10, hyper, region, recovery)
    for x in (0.7, -0.7):
        action = mlp(params["actor"], np.array([x, 0.5], np.float32))[0]
        assert action == pytest.approx(-np.sign(x), abs=0.3)


def test_recovery_is_worth_its_discounted_exit_and_a_failure_its_terminal_reward():
    # Outside the region the recovery walks home in two steps: 0.9 -> 0.6 -> 0.3 (inside |x| <= 0.5).
    recovery = Controller(lambda observation: np.full(len(observation), -0.3))
    env = Probe(lambda x, a: np.where(np.abs(x) <= 0.5, 1.0, 0.0), move=1.0, limit=50)
    params, _ = learn_on(env, "analytic", 60, intervention=SafeRegion(constant(0.5)), recovery=recovery)
    inside = critic(params, 0.3, 0.5)
    assert critic(params, 0.6, 0.5) == pytest.approx(0.9 * inside, rel=0.15)
