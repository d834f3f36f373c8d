"""Hand-overs that have come so far, and what a period shows them."""

import math

import numpy as np
from rollouts import rollout_of

from safeexplorer.acting.handover import Handover
from safeexplorer.acting.plan import PERIOD, Plan
from safeexplorer.acting.spread import UPDATES

ROBOTS, STEPS = 4, PERIOD // 4
START = np.log(0.1 * np.array([1.0, 1.0, 0.5]))  # the wide second joint is taken as most


def handover(**changes) -> Handover:
    plan = Plan(**{"updates": 100, "largest_radius": 0.5} | changes)
    return Handover(plan, ROBOTS, np.array([1.0, 5.0, 0.5]))


def alone(steps=STEPS, distance=0.1):
    """The recovery acts throughout."""
    return rollout_of(np.ones((steps, ROBOTS)), distance=distance)


def busy(exits: int, falls: int = 0):
    """So many exits of two steps each, the last `falls` of them ending in one, in one period."""
    recovering, fell = np.zeros((2, STEPS, ROBOTS), bool)
    for number in range(exits):
        robot, start = number % ROBOTS, 1 + 4 * (number // ROBOTS)
        recovering[start : start + 2, robot] = True
        fell[start + 1, robot] = number >= exits - falls
    return rollout_of(recovering, fell)


def hand_over(made: Handover, rollout=None) -> Handover:
    """Two periods until the recovery is shaken as the policy will be, one in which the copy is close, and one in which
    it is tried."""
    periods = 4 if made.plan.begin_as_recovery else 1
    answers = [made.observe(alone() if rollout is None else rollout, np.zeros(10)) for _ in range(periods)]
    assert answers == [False] * (periods - 1) + [True]
    return made


def begun(**changes) -> Handover:
    """Handed over at a radius of 1.1 times the rest of 0.1, the spread being fully open."""
    made = hand_over(handover(**changes))
    made.spread.opened = 0.0
    return made


def short(**changes) -> Handover:
    """Handed over with 16 of 20 periods left: 80 decisions are 16 * 5 of them, so that the haste is 5."""
    return hand_over(handover(updates=20, **changes))


def feed(made: Handover, rollout, times: int = 1, log_std=None, noise_cost=None) -> Handover:
    for _ in range(times):
        made.observe(rollout, None, log_std, noise_cost)
    return made


def measured(made: Handover, cost: float, error: float = 0.01) -> Handover:
    """As many costs of noise as are remembered, with this mean and this standard error of it."""
    around = error * math.sqrt(UPDATES) * np.array([1.0, -1.0])
    for each in np.tile(around, UPDATES // 2):
        made.spread.noise.add(cost + each)
    return made
