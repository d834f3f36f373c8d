"""The class on a physical robot."""

from __future__ import annotations

import time

import numpy as np
import pytest
from small_agents import REGION, SMALL
from toys import Drift, pull_back

import safeexplorer
from safeexplorer import SafeExplorer


class Still:
    """Hardware that never moves."""

    observation_space, action_space = Drift.observation_space, Drift.action_space

    def read(self):
        return np.zeros(2), time.monotonic()

    def write(self, action): ...

    def reward(self, observation, action, next_observation):
        return 1.0

    def fallen(self, observation):
        return False


@pytest.fixture
def loop(tmp_path):
    with safeexplorer.RobotLoop(
        Still(),
        recovery=pull_back,
        intervention=REGION,
        rate=200.0,
        safe_action=[0.0],
        log=tmp_path / "log.jsonl",
    ) as made:
        yield made


def test_a_physical_robot_is_armed_for_learning_and_disarmed_afterwards(loop, tmp_path):
    settings = SMALL | {"rollout_steps": 40}
    made = SafeExplorer(loop, **settings).learn(
        120, folder=tmp_path / "run", callback=lambda _, row: row["update"] < 2
    )
    assert made.num_timesteps == 80 and not loop.armed and loop.status().commands > 80
    again = SafeExplorer(loop, **settings).learn(120, folder=tmp_path / "run")
    assert again.summary["steps"] == 120 and again.summary["episodes"] == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "ppo"}, "method is 'ppo'; allowed on a physical robot: recovery_rl"),
        ({"method": "truncated_is"}, "method is 'truncated_is'"),
        ({"recovery": pull_back}, "belong to the RobotLoop"),
    ],
)
def test_what_a_physical_robot_cannot_do_is_refused(loop, changes, message):
    with pytest.raises(ValueError, match=message):
        SafeExplorer(loop, **changes)
