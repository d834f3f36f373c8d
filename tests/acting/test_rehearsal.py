"""While a recovery is copied the robots may be sent something else; what is stored is what it would do."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Drift, far, pull_back

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.copying import Rehearsal
from safeexplorer.acting.policy import propose
from safeexplorer.adapters.environments import Environments
from safeexplorer.learning.networks import init_actor_critic

STEPS = 40


class PullBack:
    """The toy's recovery, as a collector asks for it."""

    def act(self, observation):
        return pull_back(observation).astype(np.float32)


class Everywhere:
    """The recovery acts in every state."""

    def takes_over(self, situation, progress):
        return np.ones(len(situation.step), bool)


class Listening(Environments):
    """Remembers what it was sent."""

    def step(self, actions):
        self.heard.append(np.array(actions))
        return super().step(actions)


def rehearse(rehearsal: Rehearsal):
    """A rollout in which the recovery acts everywhere; what the robots were sent, and the policy's mean."""
    env = Listening(SyncVectorEnv([Drift] * 3, autoreset_mode=AutoresetMode.SAME_STEP), distance=far)
    env.heard = []
    collector = Collector(env, PullBack(), Everywhere(), STEPS)
    collector.reset(3)
    collector.rehearsal = rehearsal
    params = init_actor_critic(np.random.default_rng(0), 2, 1, (4,))
    rollout = collector.collect(params, 0.0, np.random.default_rng(1))
    assert rollout.recovering.all()
    np.testing.assert_array_equal(rollout.action[..., 0], -np.sign(rollout.observation[..., 0]))
    mean = propose(params, rollout.observation.reshape(-1, 2)).reshape(rollout.action.shape)
    return rollout, np.stack(env.heard), mean


def test_without_a_rehearsal_the_robots_are_sent_what_is_stored():
    rollout, sent, _ = rehearse(Rehearsal())
    np.testing.assert_array_equal(sent, rollout.action)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_shaken_recovery_is_sent_with_that_share_of_the_policys_noise(share):
    rollout, sent, mean = rehearse(Rehearsal(shaking=share))
    np.testing.assert_allclose(sent, rollout.action + share * (rollout.proposed - mean), atol=1e-6)


def test_a_copy_that_is_tried_acts_inside_its_radius_and_the_recovery_outside():
    rollout, sent, mean = rehearse(Rehearsal(radius=0.3, noise=0.25))
    inside = rollout.distance <= 0.3
    assert 0.1 < inside.mean() < 0.9
    np.testing.assert_array_equal(sent[~inside], rollout.action[~inside])
    own = mean + 0.25 * (rollout.proposed - mean)
    np.testing.assert_allclose(sent[inside], own[inside], atol=1e-6)
