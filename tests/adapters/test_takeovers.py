"""Takeovers under other people's names become the mask."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Drift, far, pull_back

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import ReportedTakeovers, SafeRegion
from safeexplorer.adapters.environments import Environments
from safeexplorer.adapters.takeovers import RecoveryWrapper, ReportTakeovers, takeover_of
from safeexplorer.learning.networks import init_actor_critic

DIALECTS = {
    "ours": lambda flag, action: {"intervention": flag, "executed_action": action},
    "lerobot": lambda flag, action: {"is_intervention": flag, "action_intervention": action},
    "gym-hil": lambda flag, action: {"is_intervention": flag, "teleop_action": action},
    "flagged": lambda flag, action: {"intervene_flag": flag, "intervene_action": action},
    "hil-serl": lambda flag, action: {"intervene_action": action} if flag else {},
}


class Teleoperated(Drift):
    """A person takes over beyond 0.5 and pushes back by 0.7."""

    def __init__(self, dialect: str):
        super().__init__(limit=15)
        self.report = DIALECTS[dialect]

    def step(self, action):
        flag = abs(self.x) > 0.5
        executed = np.array([-0.7 * np.sign(self.x)], np.float32) if flag else np.asarray(action, np.float32)
        *result, info = super().step(executed)
        return *result, info | self.report(flag, executed)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_recovery_steps_and_executed_actions(dialect, mode):
    env = SyncVectorEnv([lambda: Teleoperated(dialect)] * 3, autoreset_mode=mode)
    collector = Collector(Environments(env), None, ReportedTakeovers(), 60)
    collector.reset(3)
    params = init_actor_critic(np.random.default_rng(0), 2, 1, (4,))
    rollout = collector.collect(params, 0.0, np.random.default_rng(1))
    outside = np.abs(rollout.observation[..., 0]) > 0.5
    np.testing.assert_array_equal(rollout.recovering, outside)
    assert 0 < outside.mean() < 1
    np.testing.assert_array_equal(
        rollout.action[outside][:, 0], np.float32(-0.7) * np.sign(rollout.observation[outside][:, 0])
    )
    np.testing.assert_array_equal(rollout.action[~outside], rollout.proposed[~outside])


def test_a_takeover_without_its_action_is_an_error_that_names_the_keys():
    with pytest.raises(
        ValueError, match=r"'is_intervention'\] reports a takeover without its action; allowed: exec"
    ):
        takeover_of({"is_intervention": np.array([True])}, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_wrapper_reports_one_environments_takeovers_in_our_words(dialect):
    env = ReportTakeovers(Teleoperated(dialect))
    env.reset(seed=0)
    seen = set()
    for _ in range(15):
        outside = abs(env.unwrapped.x) > 0.5
        _, _, terminated, truncated, info = env.step(np.ones(1, np.float32))
        assert info["intervention"] == outside
        assert info["executed_action"] == pytest.approx([-0.7 * np.sign(1.0)] if outside else [1.0])
        seen.add(outside)
        if terminated or truncated:
            break
    assert seen == {True, False}


def test_the_recovery_wrapper_says_who_acted_what_was_proposed_and_which_segment():
    env = RecoveryWrapper(Drift(limit=60), pull_back, SafeRegion(0.4), distance=far)
    observation, _ = env.reset(seed=0)
    segments, acted = [], []
    for _ in range(60):
        outside = abs(np.float64(observation[0])) > 0.4
        proposed = np.ones(1, np.float32)
        observation, _, _, truncated, info = env.step(proposed)
        assert info["intervention"] == outside
        assert info["proposed_action"] is proposed
        assert (info["segment"] >= 0) == outside
        if not outside:
            assert info["executed_action"] is proposed
        acted.append(outside)
        segments.append(info["segment"])
        if truncated:
            break
    starts = [b and not a for a, b in zip([False, *acted], acted, strict=False)]
    assert max(segments) == sum(starts) - 1 > 0
