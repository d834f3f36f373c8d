"""The class on a physical robot."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from small_agents import REGION, SMALL
from toys import Drift, pull_back

import safeexplorer
from safeexplorer import SafeExplorer
from safeexplorer.files.checkpoint import checkpoints
from safeexplorer.files.interruption import Stopped


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


def test_a_physical_robot_is_handed_over_from_its_recovery(loop):
    settings = SMALL | {"rollout_steps": 40, "method": "safeexplorer_auto", "imitation_share": 0.5}
    made, rates = SafeExplorer(loop, **settings), []
    made.learn(160, callback=lambda _, row: rates.append(row["recovery_rate"]))
    assert rates[:2] == [1.0, 1.0] and rates[-1] < 1.0  # it stands in the middle of its region
    handover = made.learner.handover
    assert not handover.alone and handover.haste == 1.0 and not loop.armed


def test_one_ctrl_c_while_a_halted_robot_is_waited_for_saves_the_run_and_ends_it(loop, tmp_path):
    def press(agent, row):
        if row["update"] == 1:
            loop.estop("button")
            threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    settings, folder = SMALL | {"rollout_steps": 40, "checkpoint_every": 100}, tmp_path / "run"
    with pytest.raises(Stopped, match="halted"):
        SafeExplorer(loop, **settings).learn(120, folder=folder, callback=press)
    assert not loop.armed
    assert [path.name for path in checkpoints(folder / "checkpoints")] == ["0000000001"]
    loop.release()
    again = SafeExplorer(loop, **settings).learn(120, folder=folder)
    assert again.summary["steps"] == 120


def test_whatever_ends_the_learning_on_a_robot_every_update_before_is_saved(loop, tmp_path, monkeypatch):
    settings, folder = SMALL | {"rollout_steps": 40, "checkpoint_every": 100}, tmp_path / "run"
    updates = []

    def reward(observation, action, next_observation):
        return float("nan") if len(updates) == 2 else 1.0

    monkeypatch.setattr(loop.hardware, "reward", reward)
    with pytest.raises(ValueError, match=r"hardware\.reward of row 0 is nan"):
        SafeExplorer(loop, **settings).learn(160, folder=folder, callback=lambda _, row: updates.append(row))
    assert not loop.armed
    assert [path.name for path in checkpoints(folder / "checkpoints")] == ["0000000002"]
    updates.clear()
    assert SafeExplorer(loop, **settings).learn(160, folder=folder).summary["steps"] == 160


def test_a_robot_that_falls_while_the_learner_compiles_is_reset_before_arming(loop, tmp_path):
    loop.hardware.fallen = lambda observation: not resets
    resets = []
    loop.reset = lambda: resets.append(loop.armed)
    SafeExplorer(loop, **SMALL | {"rollout_steps": 40}).learn(40)
    assert resets == [False]


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
