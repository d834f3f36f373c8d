"""Re-rolled recoveries leave no trace, and begin where the recovery began."""

from __future__ import annotations

import numpy as np

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.rerolls import Reroller
from safeexplorer.recovery import CheckedRecovery
from safeexplorer.robots import get_robot, make


class Counting:
    """A controller whose memory is how often it was asked."""

    def __init__(self):
        self.count, self.began = 0, []

    def __call__(self, observation):
        self.began.append(int(self.count))
        self.count += 1
        return np.zeros((len(observation), 6))

    def get_state(self):
        return {"count": np.array(self.count)}

    def set_state(self, state):
        self.count = int(state["count"])


def test_a_recovery_with_a_memory_is_re_rolled_from_the_memory_at_the_trigger_and_put_back():
    env, controller = make("half_cheetah", 2), Counting()
    recovery = CheckedRecovery(controller, get_robot("half_cheetah").interface(), "counting")
    collector = Collector(env, recovery, SafeRegion(1e9), 4)  # back inside after one step
    collector.reset(0)
    reroller = Reroller(env, recovery, samples=3, gamma=0.99)
    for step, count in ((0, 7), (2, 20)):
        controller.count = count
        reroller.note(step, np.array([step // 2]))
    controller.count = 64
    params = init_actor_critic(np.random.default_rng(0), 17, 6, (8,))
    rollout = reroller.fill(blank_rollout((4, 2), 17, 6), collector, params, 0.0, np.random.default_rng(0))
    assert controller.began == [7, 7, 20, 20]
    assert controller.count == 64
    assert rollout.reroll_count[0, 0] == rollout.reroll_count[2, 1] == 2
