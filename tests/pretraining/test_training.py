"""Recoveries in training: a task with a known return, files, kills and resumes, settings."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from safeexplorer.files.interruption import Stopped
from safeexplorer.pretraining.settings import RecoverySettings, recovery_settings
from safeexplorer.pretraining.trainer import Trainer
from safeexplorer.pretraining.training import train_recovery
from safeexplorer.recovery.actor import SquashedActor, load_actor, read_arrays
from safeexplorer.recovery.protocol import Interface


class Pendulum(SyncVectorEnv):
    """Pendulum-v1 with the episode totals that the trainer reads."""

    def __init__(self, count: int):
        super().__init__(
            [lambda: gymnasium.make("Pendulum-v1")] * count, autoreset_mode=AutoresetMode.SAME_STEP
        )
        self.total = np.zeros(count)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.total += reward
        if "final_info" in info:
            info["final_info"] |= {
                "episode_return": self.total.copy(),
                "episode_length": np.full(len(reward), 200),
            }
            self.total[terminated | truncated] = 0.0
        return observation, reward, terminated, truncated, info


@pytest.mark.slow
def test_it_swings_the_pendulum_up():
    """A random policy gets about -1,200 an episode; a balanced pendulum gets about -150."""
    settings = RecoverySettings(
        "pendulum",
        num_envs=8,
        updates_per_step=8,
        learning_starts=800,
        hidden=(64, 64),
        batch_size=128,
        replay=20_000,
    )
    trainer = Trainer(Pendulum(8), settings)
    while trainer.steps < 12_800:
        trainer.advance()
    actor = SquashedActor(jax.device_get(trainer.learner.actor), trainer.low, trainer.high)
    judge = Pendulum(20)
    observation, _ = judge.reset(seed=123)
    total = np.zeros(20)
    for _ in range(200):
        observation, reward, *_ = judge.step(actor(observation))
        total += reward
    assert total.mean() > -250


TINY = {"num_envs": 8, "updates_per_step": 2, "learning_starts": 80, "hidden": (16, 16), "batch_size": 32}
TINY |= {"replay": 400, "record_every": 100, "snapshot_every": 400, "steps": 1200, "seed": 4}


def final_bits(folder):
    newest = sorted((folder / "checkpoints").glob("[0-9]*"))[-1]
    with np.load(newest / "arrays.npz") as file:
        arrays = {name: file[name] for name in file.files}
    snapshots = {path.name: read_arrays(path)["actor/1/weight"] for path in folder.glob("snapshots/*.npz")}
    return arrays, (folder / "metrics.csv").read_bytes(), snapshots


def assert_same_run(whole, other):
    arrays, metrics, snapshots = final_bits(whole)
    others, other_metrics, other_snapshots = final_bits(other)
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)
    assert metrics == other_metrics
    for name, array in snapshots.items():
        np.testing.assert_array_equal(array, other_snapshots[name], err_msg=name)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    trainer = train_recovery(recovery_settings("half_cheetah", **TINY), folder, checkpoint_every=160)
    assert trainer.updates == (1200 - 80) // 8 * 2
    return folder


def test_a_run_that_crashed_and_was_stopped_ends_as_if_nothing_had_happened(whole_run, tmp_path):
    settings = recovery_settings("half_cheetah", **TINY)

    def crash(trainer, row):
        if trainer.steps > 700:
            raise RuntimeError("the power went off")

    def ask_to_stop(trainer, row):
        if trainer.steps > 800:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(RuntimeError, match="power"):
        train_recovery(settings, tmp_path, checkpoint_every=160, watch=crash)
    with pytest.raises(Stopped, match=r"stopped after 904 of 1,200 steps"):
        train_recovery(settings, tmp_path, checkpoint_every=10_000, threads=2, watch=ask_to_stop)
    assert not (tmp_path / "snapshots" / "0000000904.npz").exists()  # `select` would grade it
    train_recovery(settings, tmp_path)
    assert_same_run(whole_run, tmp_path)


def test_changed_records_and_records_without_checkpoints_are_left_as_they_are(whole_run, tmp_path):
    settings, folder = recovery_settings("half_cheetah", **TINY), tmp_path / "run"
    shutil.copytree(whole_run, folder)
    metrics = folder / "metrics.csv"
    whole = metrics.read_bytes()
    metrics.write_bytes(whole.replace(b"1", b"2", 1))
    with pytest.raises(ValueError, match=r"metrics\.csv was changed"):
        train_recovery(settings, folder)
    metrics.write_bytes(whole)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(ValueError, match="12 rows of records, but their checkpoints are gone"):
        train_recovery(settings, folder)
    assert metrics.read_bytes() == whole


def test_a_killed_run_ends_as_if_it_had_not(whole_run, tmp_path):
    settings = json.dumps(recovery_settings("half_cheetah", **TINY).as_dict())
    program = f"""
        import json, time
        from pathlib import Path
        from safeexplorer.pretraining.settings import recovery_settings
        from safeexplorer.pretraining.training import train_recovery
        settings = recovery_settings(**json.loads('{settings}'))
        train_recovery(settings, Path({str(tmp_path)!r}), checkpoint_every=160, watch=lambda *_: time.sleep(0.05))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    while not list(tmp_path.glob("checkpoints/[0-9]*")) and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.1)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    train_recovery(recovery_settings("half_cheetah", **TINY), tmp_path, checkpoint_every=160)
    assert_same_run(whole_run, tmp_path)


def test_other_settings_in_the_same_folder_are_refused(whole_run):
    with pytest.raises(ValueError, match=r"other settings: seed: 4 -> 5"):
        train_recovery(recovery_settings("half_cheetah", **TINY | {"seed": 5}), whole_run)


def test_a_snapshot_is_the_actor_and_says_where_it_comes_from(whole_run):
    interface = Interface("half_cheetah", 17, -np.ones(6, np.float32), np.ones(6, np.float32))
    actor, facts, _ = load_actor(whole_run / "snapshots" / "0000001200.npz", interface)
    arrays, metrics, _ = final_bits(whole_run)
    np.testing.assert_array_equal(actor.params["actor"][0]["weight"], arrays["learner/0/actor/0/weight"])
    last = dict(
        zip(
            *(line.split(b",") for line in metrics.splitlines()[:: len(metrics.splitlines()) - 1]),
            strict=True,
        )
    )
    assert facts["environment_steps"] == 1200 == int(last[b"steps"])
    assert facts["falls"] == int(last[b"falls"])
    assert facts["settings"]["tau"] == 0.005


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"tau": 0.0}, "tau is 0.0; allowed: a number above 0 and of at most 1"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"q_learning_rate": float("nan")}, "q_learning_rate is nan"),
        ({"num_envs": 0}, "num_envs is 0; allowed: a whole number from 1 to 65536"),
        ({"replay": 10}, "replay is 10; allowed: at least num_envs and batch_size"),
        ({"flavour": "task"}, "a recovery is trained on a recovery flavour"),
        ({"flavour": "heroic"}, "no flavour 'heroic'"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(chosen, message):
    with pytest.raises(ValueError, match=message):
        recovery_settings("half_cheetah", **chosen)


def test_every_robot_has_the_recipe_of_the_paper_and_go1_a_tighter_reward():
    ant = recovery_settings("ant")
    assert (ant.policy_learning_rate, ant.q_learning_rate, ant.tau, ant.steps) == (
        1e-4,
        3e-4,
        0.002,
        3_000_000,
    )
    for robot, flavour, q_learning_rate in (
        ("half_cheetah", "recovery", 1e-3),
        ("go1", "recovery_tight", 3e-4),
    ):
        settings = recovery_settings(robot)
        assert (settings.policy_learning_rate, settings.tau) == (3e-4, 0.005)
        assert (settings.flavour, settings.q_learning_rate) == (flavour, q_learning_rate)
