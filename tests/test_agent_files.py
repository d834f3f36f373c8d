"""What the class leaves on disk: stopped and resumed, saved and loaded, exported."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import onnxruntime
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from small_agents import REGION, agent, equal
from toys import Choice, Drift, choose_back, far, pull_back

from safeexplorer import SafeExplorer, SafeRegion, linear
from safeexplorer.acting.interventions import StateShield
from safeexplorer.files.interruption import Stopped
from safeexplorer.runs.likeness import answers


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


OTHERS = {
    "radius": (
        {"region": SafeRegion(distance=far, radius=linear(0.1, 0.7))},
        r"radius at the start, .* 0\.5, .* -> .* 0\.45,",
    ),
    "schedule": ({"region": SafeRegion(distance=far, radius=0.1)}, "radius at the start"),
    "distance": (
        {"region": SafeRegion(distance=lambda o: 2 * far(o), radius=linear(0.1, 0.8))},
        "D: other answers",
    ),
    "where D comes from": (
        {"region": SafeRegion(distance="gap", radius=linear(0.1, 0.8))},
        "D: other answers",
    ),
    "recovery": ({"recovery": lambda o: -0.5 * np.sign(o[:, :1])}, "the recovery's actions: other answers"),
    "who decides": (
        {"region": None, "intervention": StateShield(lambda o: far(o) > 0.5)},
        "who decides who acts: SafeRegion -> StateShield",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_run_does_not_go_on_with_another_region_or_recovery(tmp_path, what):
    other, message = OTHERS[what]
    agent().learn(256, folder=tmp_path, callback=lambda _, row: row["update"] < 2)
    with pytest.raises(ValueError, match=message):
        agent(**other).learn(256, folder=tmp_path)


class Memory:
    """A recovery that counts how often it was asked."""

    count = 0

    def __call__(self, observation):
        self.count += 1
        return pull_back(observation)

    def get_state(self):
        return {"count": np.array(self.count)}

    def set_state(self, state):
        self.count = int(state["count"])


def test_what_cannot_be_compared_is_said_and_a_memory_is_put_back(tmp_path, capsys):
    class Mine:
        def takes_over(self, situation, progress):
            return np.abs(situation.observation[:, 0]) > 0.5

    memory = Memory()
    world = agent(recovery=memory).world
    answers(world, np.zeros((3, 2), np.float32))
    assert memory.count == 0
    ways = {"region": None, "intervention": Mine()}
    agent(**ways).learn(256, folder=tmp_path, callback=lambda _, row: row["update"] < 2)
    agent(**ways).learn(256, folder=tmp_path)
    said = capsys.readouterr().err
    assert "the environment and the intervention Mine cannot be compared" in said


def test_a_signal_stops_the_training_with_its_checkpoint_on_disk(tmp_path):
    def interrupt(made, row):
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        agent().learn(6400, folder=tmp_path, callback=interrupt)
    assert list((tmp_path / "checkpoints").iterdir())


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


def rewritten(path, **changes):
    """The saved agent with some arrays replaced."""
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | changes)


def test_a_saved_agent_of_another_format_or_with_a_nan_is_refused(tmp_path):
    path = agent().save(tmp_path / "agent")
    with np.load(path) as file:
        facts = file["facts"]
        name = next(
            name for name in file.files if name.startswith("learner/") and file[name].dtype.kind == "f"
        )
        weights = np.full_like(file[name], np.nan)
    newer = facts.tobytes().replace(b'"format": 1', b'"format": 2')
    rewritten(path, facts=np.frombuffer(newer, np.uint8))
    with pytest.raises(ValueError, match="is no saved agent: its format is 2; this release reads 1"):
        SafeExplorer.load(path)
    rewritten(path, facts=facts, **{name: weights})
    with pytest.raises(ValueError, match="holds a number that is not finite"):
        SafeExplorer.load(path)


def test_a_saved_agent_that_is_cut_or_flipped_is_one_line(tmp_path):
    path = agent().save(tmp_path / "agent")
    whole = path.read_bytes()
    for place in range(1, len(whole), len(whole) // 12):
        path.write_bytes(whole[:place])
        with pytest.raises(ValueError, match=r"^[^\n]*agent\.npz is no saved agent: [^\n]+$"):
            SafeExplorer.load(path)


def test_an_agent_is_exported_and_the_graph_acts_as_it_does(tmp_path):
    made = agent()
    made.export(tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    observation = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    (action,) = session.run(["action"], {"observation": observation})
    np.testing.assert_allclose(action, made.predict(observation, deterministic=True)[0], atol=1e-6)
