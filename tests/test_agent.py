"""The class: any environment, the same training loop, save and load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import gymnasium
import jax
import numpy as np
import onnxruntime
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Choice, Drift, Stepper, choose_back, far, pull_back

import safeexplorer
from safeexplorer import JumpStart, ReportedTakeovers, SafeExplorer, SafeRegion, StateShield, linear
from safeexplorer.files.interruption import Stopped
from safeexplorer.runs.recording import read_table
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import train

REGION = SafeRegion(distance=far, radius=linear(0.1, 0.8))
SMALL = {"rollout_steps": 32, "minibatches": 4, "epochs": 2, "hidden": (8,)}


def agent(env=None, **changes) -> SafeExplorer:
    env = [Drift, Drift] if env is None else env
    return SafeExplorer(env, **({"recovery": pull_back, "region": REGION} | SMALL | changes))


def equal(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_the_class_and_the_command_give_bit_identical_parameters(tmp_path):
    small = {
        "robot": "half_cheetah",
        "rollout_steps": 64,
        "epochs": 1,
        "hidden": (8,),
        "seed": 3,
        "steps": 1024,
    }
    run = train(Settings(**small), tmp_path)
    steps, robot = small.pop("steps"), small.pop("robot")
    for name in (robot, "SafeExplorer/HalfCheetah-v0"):
        assert equal(SafeExplorer(name, **small).learn(steps).learner.params, run.params)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_autoreset_mode_trains_to_the_same_parameters(mode):
    factories = [Drift, Drift]
    env = SyncVectorEnv(factories, autoreset_mode=mode)
    assert equal(agent(env).learn(256).learner.params, agent(factories).learn(256).learner.params)


@pytest.mark.parametrize("method", ["ppo", "recovery_rl", "soft_decomposed", "safeexplorer"])
def test_choices_are_learned_by_a_categorical_policy(method):
    made = agent([Choice, Choice], recovery=choose_back, method=method).learn(256)
    action, _ = made.predict(np.zeros((20, 2)))
    assert set(action.tolist()) <= {5, 6, 7} and action.dtype == np.int64
    assert "log_std" not in made.learner.params


def test_a_categorical_policy_finds_the_better_choice():
    class Bandit(Choice):
        def step(self, action):
            *result, info = super().step(6)
            result[1] = float(int(action) == 7)
            return *result, info

    made = SafeExplorer([Bandit], method="ppo", rollout_steps=64, minibatches=4, learning_rate=0.01).learn(
        1024
    )
    assert made.predict(np.zeros(2), deterministic=True)[0] == 7


@pytest.mark.parametrize(
    "intervention",
    [
        JumpStart(linear(5, -5)),
        StateShield(lambda observation: np.abs(observation[:, 0]) > 0.4),
        REGION,
    ],
)
def test_each_intervention_lets_the_recovery_act_on_its_steps_alone(intervention, tmp_path):
    agent(region=None, intervention=intervention).learn(256, folder=tmp_path)
    assert 0.0 < read_table(tmp_path / "metrics.csv")[0]["recovery_rate"] < 1.0


def test_an_intervention_of_ones_own_needs_one_method():
    class EveryOther:
        def takes_over(self, situation, progress):
            return situation.step % 2 == 1

    rows = []
    agent(region=None, intervention=EveryOther()).learn(64, callback=lambda _, row: rows.append(row))
    assert 0.3 < rows[0]["recovery_rate"] <= 0.5


def test_takeovers_that_the_environment_reports_need_no_recovery():
    made = agent(recovery=None, region=None, intervention=ReportedTakeovers())
    assert made.learn(64).summary["recovery_rate"] == 0.0


def test_stopped_and_resumed_training_ends_bit_for_bit_as_if_it_had_not_been(tmp_path):
    whole = agent().learn(640, folder=tmp_path / "whole")
    agent().learn(640, folder=tmp_path / "parts", callback=lambda _, row: row["update"] < 4)
    again = agent().learn(640, folder=tmp_path / "parts")
    assert equal(again.learner.get_state(), whole.learner.get_state())
    for name in ("metrics.csv", "episodes.csv", "exits.bin"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_environment_that_cannot_be_repeated_goes_on_with_new_episodes_and_says_so(tmp_path, capsys):
    def same_step():
        return SyncVectorEnv([Drift, Drift], autoreset_mode=AutoresetMode.SAME_STEP)

    agent(same_step()).learn(256, folder=tmp_path, callback=lambda _, row: row["update"] < 2)
    agent(same_step()).learn(256, folder=tmp_path)
    assert "goes on with new episodes" in capsys.readouterr().err
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 256


def test_a_signal_stops_the_training_with_its_checkpoint_on_disk(tmp_path):
    code = """
        import os, signal
        import sys; sys.path[:0] = [{here!r}, {here!r} + '/support']
        from test_agent import agent
        agent().learn(6400, folder={folder!r}, callback=lambda _, row: os.kill(os.getpid(), signal.SIGTERM))
    """
    script = textwrap.dedent(code).format(folder=str(tmp_path), here=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ})
    assert Stopped.__name__ in done.stderr and list((tmp_path / "checkpoints").iterdir())


def test_callbacks_see_the_agent_and_the_metrics_and_may_stop_it():
    seen = []
    made = agent()
    made.learn(
        640, callback=[lambda who, row: seen.append((who, row["update"])), lambda _, row: row["update"] < 3]
    )
    assert seen == [(made, 1), (made, 2), (made, 3)]
    assert made.num_timesteps == 192


def test_learning_again_goes_on_from_the_parameters_it_has():
    made = agent().learn(128)
    before = jax.tree.map(np.copy, made.learner.params)
    made.learn(64, callback=lambda who, row: False)
    moved = [
        np.abs(a - b).max()
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(made.learner.params), strict=True)
    ]
    assert 0 < max(moved) < 0.1


def test_an_evaluation_environment_is_judged_without_the_recovery(tmp_path):
    agent(eval_env=[Drift] * 3, eval_every=2).learn(256, folder=tmp_path)
    rows = read_table(tmp_path / "evaluations.csv")
    assert [(row["update"], row["deterministic"]) for row in rows] == [(2, 0), (2, 1), (4, 0), (4, 1)]


@pytest.mark.parametrize("kind", [Drift, Choice])
def test_a_saved_agent_predicts_the_same_and_learns_on(kind, tmp_path):
    law = pull_back if kind is Drift else choose_back
    made = agent([kind, kind], recovery=law).learn(128)
    made.save(tmp_path / "agent")
    observation = np.random.default_rng(0).standard_normal((9, 2))
    alone = SafeExplorer.load(tmp_path / "agent")
    np.testing.assert_array_equal(
        alone.predict(observation, deterministic=True)[0], made.predict(observation, deterministic=True)[0]
    )
    assert alone.action_space == made.action_space and alone.num_timesteps == 128
    with pytest.raises(ValueError, match="load it with env="):
        alone.learn(128)
    again = SafeExplorer.load(tmp_path / "agent", env=[kind, kind], recovery=law, region=REGION)
    assert equal(again.learn(128).learner.params, made.learn(128).learner.params)


def test_a_file_that_is_no_agent_is_refused(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"not a zip file")
    with pytest.raises(ValueError, match=r"x\.npz is no saved agent"):
        SafeExplorer.load(tmp_path / "x")
    with pytest.raises(ValueError, match="no saved agent at"):
        SafeExplorer.load(tmp_path / "y")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": None}, "needs to know where the policy acts"),
        ({"recovery": None}, "needs a recovery"),
        ({"intervention": JumpStart(linear(5, -5))}, "region and intervention are both given"),
        ({"region": 0.3}, "region is 0.3; allowed: an object with takes_over"),
        ({"env": "Pendulum-v1", "num_envs": 0}, "num_envs is 0"),
        ({"method": "sac"}, "no method 'sac'"),
        ({"gama": 0.9}, "unknown setting 'gama'"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"env": [Choice, Choice], "method": "cpo"}, "method is 'cpo'; allowed with discrete actions"),
        ({"action_noise": 0.1}, "action_noise is 0.1; allowed with an environment of your own: 0.0"),
        ({"eval_every": 2}, "eval_every is 2; allowed without an eval_env: 0"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(changes, message):
    with pytest.raises(ValueError, match=message):
        agent(**changes)


def test_a_region_whose_distance_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="distance is 'height'"):
        agent(region=SafeRegion(distance="height", radius=0.5)).learn(64)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((2, 2, 2)), np.array([np.nan, 0.0])])
def test_predict_refuses_observations_that_no_action_follows_from(bad):
    with pytest.raises(ValueError, match="observation"):
        agent().predict(bad)


@pytest.mark.parametrize(
    "name", ["Pendulum-v1", "InvertedPendulum-v5", "Hopper-v5", "Reacher-v5", "CartPole-v1"]
)
def test_gymnasiums_own_environments_train_without_special_cases(name):
    made = SafeExplorer(name, method="ppo", num_envs=2, **SMALL).learn(64)
    space = gymnasium.make(name).action_space
    assert space.contains(made.predict(np.zeros(made.observation_space.shape))[0])


def test_a_vector_environment_that_resets_by_steps_trains_too():
    env = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    made = SafeExplorer(env, method="ppo", **SMALL).learn(192)
    assert 5 < made.summary["episodes"] < 30 and made.predict(np.zeros(4))[0] in (0, 1)
    with pytest.raises(ValueError, match="spends steps on resets"):
        SafeExplorer(Stepper(), method="cpo", **SMALL)


def test_every_public_name_is_there():
    assert all(getattr(safeexplorer, name) is not None for name in safeexplorer.__all__)
    assert Path(safeexplorer.__file__).name == "__init__.py"


def test_an_agent_is_exported_and_the_graph_acts_as_it_does(tmp_path):
    made = agent()
    made.export(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    observation = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    (action,) = session.run(["action"], {"observation": observation})
    np.testing.assert_allclose(action, made.predict(observation, deterministic=True)[0], atol=1e-6)


def test_an_audit_of_ones_own_environment_counts_what_the_recovery_does():
    made = agent(region=SafeRegion(distance=far, radius=0.3))
    found = made.audit(512)
    assert 0.1 < found.shares.recovery_rate < 0.9
    assert found.segments.count > 10 and found.gradients.masked_norm > 0
    with pytest.raises(ValueError, match="steps is 511; allowed: a positive multiple of the 2 environments"):
        made.audit(511)


class OldVecEnv:
    """What Stable-Baselines3 calls a VecEnv, over two of the toys."""

    num_envs, observation_space, action_space = 2, Drift.observation_space, Drift.action_space

    def __init__(self):
        self.envs = [Drift(limit=6), Drift(limit=9)]
        self.seeds = [None, None]

    def seed(self, seed):
        self.seeds = [seed, seed + 1]

    def reset(self):
        got = [env.reset(seed=seed) for env, seed in zip(self.envs, self.seeds, strict=True)]
        self.seeds, self.reset_infos = [None, None], [info for _, info in got]
        return np.stack([observation for observation, _ in got])

    def step(self, actions):
        rows, rewards, dones, infos = [], [], [], []
        for i, env in enumerate(self.envs):
            observation, reward, terminated, truncated, info = env.step(actions[i])
            if terminated or truncated:
                info |= {
                    "terminal_observation": observation,
                    "TimeLimit.truncated": truncated and not terminated,
                }
                observation, self.reset_infos[i] = env.reset()
            row = observation, reward, terminated or truncated, info
            for column, value in zip((rows, rewards, dones, infos), row, strict=True):
                column.append(value)
        return np.stack(rows), np.array(rewards), np.array(dones), infos

    def step_async(self, actions): ...

    def env_is_wrapped(self, wrapper): ...

    def close(self): ...


@pytest.mark.parametrize("distance", [far, "gap"])
def test_an_sb3_vecenv_trains_to_the_same_parameters_as_the_environments_in_it(distance):
    region = SafeRegion(distance=distance, radius=linear(0.1, 0.8))
    ours = agent([lambda: Drift(limit=6), lambda: Drift(limit=9)], region=region).learn(128)
    assert equal(agent(OldVecEnv(), region=region).learn(128).learner.params, ours.learner.params)


def test_the_spread_of_the_policy_stays_above_its_floor():
    """A recovery that always does the same is imitated ever more closely."""
    still = {"recovery": lambda observation: np.zeros((len(observation), 1)), "region": SafeRegion(0.0, far)}
    free, held = (
        agent(min_log_std=floor, learning_rate=0.01, **still).learn(256).learner.params["log_std"]
        for floor in (-20.0, -0.02)
    )
    assert free.min() < -0.05 and held.min() == pytest.approx(-0.02)


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
