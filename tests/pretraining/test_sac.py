"""Soft actor-critic against an independent transcription, against calculus, and on a task with a known return."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from safeexplorer.files.interruption import Stopped
from safeexplorer.learning.networks import init_squashed
from safeexplorer.pretraining.sac import (
    Box,
    Replay,
    SacHyperparameters,
    Transitions,
    actor_loss,
    alpha_loss,
    bellman_target,
    critic_loss,
    init_sac,
    insert,
    pack,
    sac_update,
    unpack,
)
from safeexplorer.pretraining.settings import RecoverySettings, recovery_settings
from safeexplorer.pretraining.trainer import Trainer
from safeexplorer.pretraining.training import train_recovery
from safeexplorer.recovery.actor import SquashedActor, load_actor, read_arrays
from safeexplorer.recovery.protocol import Interface

N, M, B = 5, 3, 32
LOW, HIGH = np.array([-1.0, 0.5, -2.8], np.float32), np.array([1.0, 4.5, -0.9], np.float32)


@pytest.fixture(scope="module")
def example():
    rng = np.random.default_rng(0)
    state = init_sac(rng, N, M, SacHyperparameters(hidden=(16, 16)))
    targets = jax.tree.map(lambda x: x + 0.1, state.targets)
    state = state._replace(targets=targets, log_alpha=jnp.float32(-0.7))
    batch = Transitions(
        observation=rng.standard_normal((B, N)).astype(np.float32),
        action=rng.uniform(LOW, HIGH, (B, M)).astype(np.float32),
        next_observation=rng.standard_normal((B, N)).astype(np.float32),
        reward=rng.standard_normal(B).astype(np.float32),
        terminal=(rng.random(B) < 0.3).astype(np.float32),
    )
    noise = rng.standard_normal((2, B, M)).astype(np.float32)
    return state, batch, noise


# An independent transcription, in double precision, of the formulas.


def network(layers, x):
    layers = [{k: np.asarray(v, np.float64) for k, v in layer.items()} for layer in layers]
    for layer in layers[:-1]:
        x = np.maximum(x @ layer["weight"] + layer["bias"], 0)
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def twin(critics, i, s, a):
    layers = [{k: np.asarray(v)[i] for k, v in layer.items()} for layer in critics]
    return network(layers, np.hstack([s, a]))[:, 0]


def act(actor, s, noise):
    output = network(actor["actor"], s)
    mean, log_std = output[:, :M], -5 + 3.5 * (np.tanh(output[:, M:]) + 1)
    u = mean + np.exp(log_std) * noise
    normal = np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / np.exp(log_std)
    slope = (HIGH - LOW) / 2 * (1 - np.tanh(u) ** 2)
    return (HIGH + LOW) / 2 + (HIGH - LOW) / 2 * np.tanh(u), np.log(normal / slope).sum(1)


def test_the_bellman_target_and_the_losses_equal_a_transcription(example):
    state, batch, noise = example
    box, gamma, alpha = Box.between(LOW, HIGH), 0.99, np.exp(-0.7)
    a, log_mu = act(state.actor, batch.next_observation, noise[0])
    worst = np.minimum(*(twin(state.targets, i, batch.next_observation, a) for i in (0, 1)))
    y = batch.reward + gamma * np.where(batch.terminal == 1, 0, worst - alpha * log_mu)
    target = bellman_target(state, batch, noise[0], box, gamma)
    np.testing.assert_allclose(target, y, rtol=1e-5, atol=1e-5)

    q_loss = sum(np.mean((twin(state.critics, i, batch.observation, batch.action) - y) ** 2) for i in (0, 1))
    np.testing.assert_allclose(critic_loss(state.critics, batch, target), q_loss, rtol=1e-5)

    a, log_mu = act(state.actor, batch.observation, noise[1])
    worst = np.minimum(*(twin(state.critics, i, batch.observation, a) for i in (0, 1)))
    loss, density = actor_loss(state.actor, state.critics, state.log_alpha, batch.observation, noise[1], box)
    np.testing.assert_allclose(loss, np.mean(alpha * log_mu - worst), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(density, log_mu.mean(), rtol=1e-5, atol=1e-5)
    expected = np.mean(-alpha * (log_mu - M))  # the target entropy is -|A|
    np.testing.assert_allclose(alpha_loss(state.log_alpha, density, -float(M)), expected, rtol=1e-5)


def test_one_update_moves_everything_as_adam_says(example):
    state, batch, noise = example
    box, hyper = Box.between(LOW, HIGH), SacHyperparameters(hidden=(16, 16), q_learning_rate=1e-3, tau=0.01)
    update = jax.jit(lambda state: sac_update(state, batch, (noise[0], noise[1]), box, hyper))
    after, _ = update(state)
    target = bellman_target(state, batch, noise[0], box, hyper.gamma)
    gradient = jax.grad(critic_loss)(state.critics, batch, target)[-1]["bias"]
    step = -1e-3 * gradient / (np.abs(gradient) + 1e-8)  # Adam's first step: g / (|g| + eps)
    np.testing.assert_allclose(
        after.critics[-1]["bias"] - state.critics[-1]["bias"], step, rtol=1e-3, atol=1e-7
    )
    moved = 0.99 * state.targets[0]["weight"] + 0.01 * after.critics[0]["weight"]
    np.testing.assert_allclose(after.targets[0]["weight"], moved, rtol=1e-5, atol=1e-7)
    # the actor improves on the critics that have just been updated
    gradient, _ = jax.grad(actor_loss, has_aux=True)(
        state.actor, after.critics, state.log_alpha, batch.observation, noise[1], box
    )
    gradient = gradient["actor"][-1]["bias"]
    step = -3e-4 * gradient / (np.abs(gradient) + 1e-8)
    change = after.actor["actor"][-1]["bias"] - state.actor["actor"][-1]["bias"]
    np.testing.assert_allclose(change, step, rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-2.818, -0.888), (0.0, 10.0)])
def test_the_squashed_density_integrates_to_one(low, high):
    actor = SquashedActor(init_squashed(np.random.default_rng(3), 2, 1, (8,)), [low], [high])
    edges = np.linspace(-9, 9, 20_001)  # even in u, so that the grid is fine where the density is steep
    a = (high + low) / 2 + (high - low) / 2 * np.tanh(edges)
    observation = np.tile([0.3, -0.2], (a.size, 1))
    density = np.exp(actor.log_density(observation, a[:, None]).astype(np.float64))
    assert np.trapezoid(density, a) == pytest.approx(1.0, abs=2e-4)


def test_the_density_is_the_change_of_variables():
    """mu(a) = N(u) / |da/du| with da/du by central differences."""
    actor = SquashedActor(init_squashed(np.random.default_rng(5), N, M, (16,)), LOW, HIGH)
    observation = np.random.default_rng(6).standard_normal((20, N))
    action, log_density = actor.sample(observation, np.random.default_rng(7))
    noise = np.random.default_rng(7).standard_normal((20, M), np.float32).astype(np.float64)
    output = network(actor.params["actor"], observation)
    std = np.exp(-5 + 3.5 * (np.tanh(output[:, M:]) + 1))
    u = output[:, :M] + std * noise

    def squash(u):
        return (HIGH + LOW) / 2 + (HIGH.astype(float) - LOW) / 2 * np.tanh(u)

    slope = (squash(u + 1e-6) - squash(u - 1e-6)) / 2e-6
    expected = np.log(np.exp(-0.5 * noise**2) / np.sqrt(2 * np.pi) / std / slope).sum(1)
    np.testing.assert_allclose(action, squash(u), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(log_density, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(actor.log_density(observation, action), log_density, atol=2e-3)


def test_the_replay_overwrites_the_oldest_rows_and_gives_back_what_it_got(example):
    _, batch, _ = example
    rows = pack(batch)
    for name, there, back in zip(Transitions._fields, batch, unpack(rows, N, M), strict=True):
        np.testing.assert_array_equal(back, there, err_msg=name)
    replay = Replay(jnp.zeros((2 * B, rows.shape[1])), jnp.int32(0))
    for k in (1, 2, 3):
        replay = insert(replay, k * rows)
    np.testing.assert_array_equal(replay.rows, np.vstack([3 * rows, 2 * rows]))
    assert int(replay.count) == 3 * B


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


# Files, kills and resumes.

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
    assert (tmp_path / "snapshots" / "0000000904.npz").is_file()
    train_recovery(settings, tmp_path)
    assert_same_run(whole_run, tmp_path)


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
        ({"num_envs": 0}, "num_envs is 0; allowed: a whole number of at least 1"),
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
