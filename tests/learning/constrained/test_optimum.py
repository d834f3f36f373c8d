"""Both constrained methods on a small world whose best policy within the limit is a linear program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from probes import Probe
from scipy.optimize import linprog

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.costs import step_cost
from safeexplorer.acting.interventions import NoIntervention
from safeexplorer.acting.networks import policy_mean
from safeexplorer.learning.constrained.budget import Budget
from safeexplorer.learning.constrained.learner import ConstrainedLearner, init_params
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters

# Every step brings an offer u, drawn afresh. Who takes it (a > 0) earns u and, with probability 1/2, begins the next
# step in the heat, which costs 1; who leaves it (a <= 0) earns nothing and stays cool.
HORIZON = 6
OFFERS = np.linspace(0.0, 1.0, 11)
HEAT = 0.5
LIMIT = 1.0


class Offers(Probe):
    """The world above, as the collector sees it; the step after the last is a fall, so that nothing bootstraps."""

    def __init__(self, num_envs: int):
        super().__init__(lambda x, a: x, num_envs, limit=HORIZON, falls_at_limit=True)
        self.chance = np.random.default_rng(7)

    def advance(self, action):
        taken, offer = action > 0, self.offer
        self.x = (taken & (self.chance.random(self.num_envs) < HEAT)).astype(float)
        self.offer = self.chance.choice(OFFERS, self.num_envs)
        return taken * offer

    def reset(self, *, seed=None, options=None):
        self.offer = self.chance.choice(OFFERS, self.num_envs)
        return super().reset(seed=seed)

    def _observe(self):
        return np.stack([self.offer, self.t / self.limit], axis=1)


def best_within(limit: float) -> tuple[float, float]:
    """Return and cost of the best policy, as a linear program in the chance of taking each offer at each time.

    An offer comes with probability 1/11 at each step; heat after the last step costs nothing.
    """
    reward = np.tile(OFFERS, HORIZON) / len(OFFERS)
    heat = np.repeat(np.where(np.arange(HORIZON) < HORIZON - 1, HEAT, 0.0), len(OFFERS)) / len(OFFERS)
    found = linprog(-reward, A_ub=heat[None], b_ub=[limit], bounds=(0, 1))
    return -found.fun, float(heat @ found.x)


def exact(params) -> tuple[float, float]:
    """Return and cost per episode of the Gaussian policy, which takes an offer with probability Phi(mean / sigma)."""
    total = cost = 0.0
    for t in range(HORIZON):
        observation = np.array([[offer, t / HORIZON] for offer in OFFERS], np.float32)
        z = policy_mean(params, observation)[:, 0] / np.exp(params["log_std"][0])
        taken = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z])
        total += (taken * OFFERS).mean()
        cost += HEAT * taken.mean() if t < HORIZON - 1 else 0.0
    return total, cost


def learn(method: str, updates: int = 300) -> tuple[float, float]:
    """Train from scratch; exact return and cost of the policy, averaged over the last tenth of the updates."""
    rng = np.random.default_rng(2)
    env = Offers(64)
    collector = Collector(env, None, NoIntervention(), 2 * HORIZON)
    collector.reset(0)
    hyper = ConstrainedHyperparameters(gamma=1.0, minibatches=4, multiplier_start=2.0, multiplier_rate=0.05)
    params = init_params(rng, 2, 1, (16, 16))
    learner = ConstrainedLearner(method, hyper, params, Budget(64, LIMIT), step_cost("region", 0.5))
    size, results = 64 * 2 * HORIZON, []
    for update in range(updates):
        rollout = collector.collect(learner.params, 0.0, rng)
        order = np.stack([rng.permutation(size) for _ in range(hyper.epochs)]).astype(np.int32)
        row = learner.update(rollout, order, 3e-3 * (1 - update / updates))
        assert row["finite"]
        results.append(exact(learner.params))
    return tuple(np.mean(results[-updates // 10 :], axis=0))


def test_the_program_is_a_knapsack():
    # Heat is free after the last step: take everything there, 0.5 on average. Before it 5 steps may take 2 of 5 offers
    # (2 * 0.5 = 1 degree of heat): per step 1, 0.9, 0.8, 0.7 and 0.4 of 0.6, that is 3.64 / 11.
    assert best_within(LIMIT) == pytest.approx((0.5 + 5 * 3.64 / 11, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ppo_lagrangian", "cpo"])
def test_ends_at_the_best_policy_within_the_limit(method):
    best, limit = best_within(LIMIT)
    found, cost = learn(method)
    assert found == pytest.approx(best, rel=0.05)
    assert cost == pytest.approx(limit, rel=0.2)
