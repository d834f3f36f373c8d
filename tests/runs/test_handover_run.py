"""Whole runs with a hand-over: resumable bit for bit, at any rollout length, with any kind of action."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from records import read_table
from rich.console import Console
from same_run import assert_same_run
from toys import Choice, Drift, choose_back, far, pull_back

from safeexplorer import SafeExplorer, SafeRegion, auto
from safeexplorer.files.interruption import Stopped
from safeexplorer.learning.methods import PARTS
from safeexplorer.runs.display import summary_table
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import train

SMALL = Settings(
    robot="half_cheetah",
    method="safeexplorer_auto",
    recovery="hold",
    num_envs=2,
    rollout_steps=128,
    epochs=2,
    minibatches=4,
    steps=10 * 256,
    max_radius=0.6,
    imitation_share=0.3,
    checkpoint_every=3,
)
TOY = {"rollout_steps": 32, "minibatches": 4, "epochs": 2, "hidden": (8,), "method": "safeexplorer_auto"}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    train(replace(SMALL, eval_every=5, eval_episodes=1), folder)
    return folder


@pytest.mark.parametrize("stop_after", [2, 3, 4, 7])
def test_stopped_and_resumed_is_bit_identical(whole_run, tmp_path, stop_after):
    """Before the copy is tried, in its trial, just after the hand-over and well after it."""
    settings = replace(SMALL, eval_every=5, eval_episodes=1)

    def interrupt(run, row):
        if run.update == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        train(settings, tmp_path, interrupt)
    train(settings, tmp_path)
    assert_same_run(whole_run, tmp_path)


def test_the_recovery_acts_alone_and_then_the_policy_within_the_radius(whole_run):
    rows = read_table(whole_run / "metrics.csv")
    assert [row["recovery_rate"] for row in rows[:3]] == [1.0] * 3
    assert [row["radius"] for row in rows[:2]] == [0.0] * 2 and rows[2]["radius"] > 0  # its copy is tried
    assert all(0 < row["radius"] <= 0.6 and row["recovery_rate"] < 1 for row in rows[3:])
    assert all(0 <= row["beta_bound"] <= 1 and row["gap_bound"] >= 0 for row in rows[3:])


def test_the_summary_says_what_is_known_of_the_policy_alone(whole_run):
    summary = json.loads((whole_run / "summary.json").read_text())
    late = [row["beta_bound"] for row in read_table(whole_run / "metrics.csv") if row["update"] > 8]
    assert summary["beta_bound"] == pytest.approx(np.mean(late)) and summary["gap_bound"] > 0
    console = Console(record=True, width=100)
    console.print(summary_table(summary))
    assert "the policy alone" in console.export_text()


def agent(env=Drift, recovery=pull_back, **changes) -> SafeExplorer:
    region = changes.pop("region", SafeRegion(distance=far, radius=auto(0.9)))
    return SafeExplorer([env, env], recovery=recovery, region=region, **TOY | changes)


@pytest.mark.parametrize("env, recovery", [(Drift, pull_back), (Choice, choose_back)])
def test_the_copy_does_what_the_recovery_does(env, recovery):
    made = agent(env, recovery, imitation_share=0.9, rollout_steps=512, epochs=10)
    made.learn(20 * 1024, callback=lambda agent, row: agent.learner.handover.alone)
    assert not made.learner.handover.alone
    states = np.array([[x, 0.5] for x in (-0.8, -0.4, 0.4, 0.8)], np.float32)
    action, _ = made.predict(states, deterministic=True)
    wanted = recovery(states).reshape(action.shape)
    assert np.abs(action - wanted).max() < 0.3


def test_a_categorical_copy_starts_with_the_chosen_spread():
    made = agent(Choice, choose_back, imitation_share=0.9, rollout_steps=512, epochs=10)
    made.learn(20 * 1024, callback=lambda agent, row: agent.learner.handover.alone)
    states = np.tile(
        np.array([[0.1, 0.5]], np.float32), (4000, 1)
    )  # where it mostly is; further out it is surer
    action, _ = made.predict(states)
    assert 0.7 < np.mean(action == choose_back(states)) < 0.97


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_switched_off(part):
    made = agent(**{part: False}).learn(640)
    assert made.summary["steps"] == 640


def test_choices_are_handed_over_without_a_spread():
    made = agent(Choice, choose_back).learn(640)
    assert not made.learner.handover.alone and "log_std" not in made.learner.params


def test_rollouts_shorter_than_an_episode_imitate_what_was_waited_for():
    made = agent(rollout_steps=4, imitation_share=1.0)
    waited = []
    made.learn(1600, callback=lambda agent, row: waited.append(row["waiting"]))
    assert max(waited) > 4
    action, _ = made.predict(np.array([[-0.5, 0.5], [0.5, 0.5]]), deterministic=True)
    np.testing.assert_allclose(
        action[:, 0], [1.0, -1.0], atol=0.3
    )  # as `pull_back` does; untrained it is near 0


def test_a_region_given_by_radius_auto_needs_no_other_number():
    made = agent(region=SafeRegion(distance=far)).learn(640)
    assert made.settings.schedule == "auto" and made.settings.max_radius is None
    assert made.learner.handover.plan.by_evidence


def test_a_region_with_a_clock_is_followed_after_the_imitation():
    made = agent(region=SafeRegion(distance=far, radius=0.4), imitation_share=0.2)
    radii = []
    made.learn(640, callback=lambda agent, row: radii.append(row["radius"]))
    assert radii[:2] == [0.0, 0.0] and 0.0 < radii[2] < 1.1  # the copy is tried where the recovery rests
    assert radii[3:] == [0.4] * 7


def test_training_twice_hands_over_once():
    made = agent().learn(640)
    radius = made.learner.handover.radius
    rates = []
    made.learn(640, callback=lambda agent, row: rates.append(row["recovery_rate"]))
    assert max(rates) < 1.0 and made.learner.handover.radius == radius


def test_a_saved_agent_acts_and_goes_on_as_before(tmp_path):
    made = agent().learn(640)
    path = made.save(tmp_path / "agent")
    states = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    bare = SafeExplorer.load(path)
    again = SafeExplorer.load(
        path, [Drift] * 3, recovery=pull_back, region=SafeRegion(distance=far, radius=auto(0.9)), num_envs=3
    )
    for loaded in (bare, again):
        wanted, got = (each.predict(states, deterministic=True)[0] for each in (made, loaded))
        np.testing.assert_array_equal(wanted, got)
    assert again.learner.handover.radius == made.learner.handover.radius
    again.learn(384)


def test_an_exported_policy_carries_its_normaliser(tmp_path):
    made = agent().learn(640)
    assert made.export(tmp_path / "policy.onnx")["max_error"] < 1e-5
    assert np.abs(made.learner.params["normaliser"]["mean"]).max() > 0


def test_evaluation_knows_the_region(tmp_path):
    made = agent().learn(640)
    result = made.evaluate()
    assert 0 <= result.beta <= 1
