"""Grades from resets and from logged exits, against arithmetic and against a second way to count."""

import json

import numpy as np
import pytest

from safeexplorer.cli import main
from safeexplorer.pretraining.grading import NEVER, Share, follow, grade, share
from safeexplorer.pretraining.settings import recovery_settings
from safeexplorer.pretraining.training import train_recovery
from safeexplorer.recovery import RecoveryError, load_recovery
from safeexplorer.recovery.actor import read_provenance
from safeexplorer.robots import get_robot, make
from safeexplorer.runs.exits import ExitLog, exit_states, read_exits
from safeexplorer.runs.replay import replay

CHEETAH = get_robot("half_cheetah")


def test_wilson_intervals():
    """8 of 10, z = 1.96: (8 + 1.92 +- 1.96 sqrt(1.6 + 0.96)) / 13.84 = (9.92 +- 3.14) / 13.84."""
    eight = share(np.arange(10) < 8)
    assert (eight.value, eight.low, eight.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert share(np.zeros(10, bool))[2:] == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share(np.ones(10, bool))[2:] == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert share(np.zeros(0, bool))[2:] == (0.0, 1.0)


class Film:
    """Robots whose distances and falls are written down beforehand."""

    def __init__(self, distances, falls):
        self.distances, self.falls, self.num_envs, self.t = np.array(distances), falls, len(falls), 0

    def observe(self):
        return np.zeros((self.num_envs, 1))

    def distance(self):
        return self.distances[:, 0]

    def step(self, action):
        self.t += 1
        fell = np.array([fall == self.t for fall in self.falls])
        return self.observe(), np.zeros(self.num_envs), fell, ~fell, {"distance": self.distances[:, self.t]}


class Still:
    def act(self, observation):
        return np.zeros((len(observation), 1))


def test_follow_counts_first_entries_before_any_fall():
    world = Film(
        distances=[
            [0.9, 0.4, 0.1, 0.4],  # enters R(0.5) at step 1 and R(0.2) at step 2
            [0.9, 0.9, 0.1, 0.1],  # falls at step 2: what it does later is the next episode's
            [0.1, 0.3, 0.3, 0.6],  # starts inside R(0.2) and leaves it: no entry; is in R(0.5) from step 1
            [0.9, 0.9, 0.9, 0.4],  # only at the last step
        ],
        falls=[NEVER, 2, NEVER, NEVER],
    )
    outcomes = follow(world, Still(), np.tile([0.2, 0.5], (4, 1)), 3)
    np.testing.assert_array_equal(outcomes.start, [0.9, 0.9, 0.1, 0.9])
    np.testing.assert_array_equal(outcomes.fell_at, [NEVER, 2, NEVER, NEVER])
    np.testing.assert_array_equal(outcomes.entered_at, [[2, 1], [NEVER, NEVER], [NEVER, 1], [NEVER, 3]])


def test_a_grade_adds_up_and_can_be_repeated():
    hold = load_recovery("hold", CHEETAH)
    result = grade(CHEETAH, hold, resets=60, seed=3, batch=40)
    assert result == grade(CHEETAH, hold, resets=60, seed=3, batch=40, threads=2)
    assert json.loads(json.dumps(result)) == result
    survived = Share(**result["survived"])
    assert survived.total == 60
    shares = [Share(**row["of_all"]) for row in result["reentry"]]
    assert [s.count for s in shares] == sorted(
        s.count for s in shares
    )  # a larger region is entered more often
    for row in result["reentry"]:
        assert row["of_survivors"]["total"] == survived.count
        assert row["of_outside"]["total"] <= row["of_all"]["total"] == 60
    assert result["reentry"][0]["radius"] == CHEETAH.initial_radius
    assert result["reentry"][-1]["radius"] == CHEETAH.max_radius


@pytest.fixture
def run_with_exits(tmp_path):
    """Eight cheetahs thrown about by full random torques; every one that is outside R(0.3) is logged."""
    world = make("half_cheetah", 8)
    world.reset(seed=5)
    log = ExitLog(tmp_path, world, per_update=1000)
    log.begin(1, 0.3, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for step in range(60):
        *_, info = world.step(rng.choice([-1.0, 1.0], (8, 6)))
        outside = np.flatnonzero(info["distance"] > 0.3)
        if step % 10 == 9:
            log.on_exit(step, outside)
    log.finish()
    log.close()
    settings = {"robot": "half_cheetah", "recovery": "hold"}
    (tmp_path / "run.json").write_text(json.dumps({"settings": settings}))
    world.close()
    return tmp_path


def test_replay_equals_going_on_from_each_exit_alone(run_with_exits):
    records = read_exits(run_with_exits)
    assert len(records) >= 10
    hold = load_recovery("hold", CHEETAH)
    survived = reentered = 0
    for k in range(len(records)):
        world = make("half_cheetah", 1, max_episode_steps=5000)
        world.set_state(exit_states(records[k : k + 1]))
        observation = world.observe()
        for _ in range(1000):
            observation, _, terminated, _, info = world.step(hold.act(observation))
            if terminated[0] or info["distance"][0] <= 0.3:
                break
        survived += not terminated[0]
        reentered += not terminated[0] and info["distance"][0] <= 0.3
        world.close()
    result = replay(run_with_exits, hold, batch=7)
    assert result["exits"] == len(records)
    assert (result["survived"]["count"], result["reentered"]["count"]) == (survived, reentered)


def test_the_commands_print_and_write(run_with_exits, tmp_path, capsys):
    assert main(["recovery", "replay", str(run_with_exits), "--recovery", "hold", "passive", "--json"]) == 0
    assert [entry["recovery"] for entry in json.loads(capsys.readouterr().out)] == ["hold", "passive"]
    assert main(["recovery", "replay", str(run_with_exits)]) == 0
    assert "hold" in capsys.readouterr().out
    out, plot = tmp_path / "grades.json", tmp_path / "grades.png"
    words = ["recovery", "grade", "half_cheetah", "--recovery", "hold", "passive", "--resets", "20"]
    assert main([*words, "--out", str(out), "--plot", str(plot)]) == 0
    assert "survived" in capsys.readouterr().out
    assert {graded["recovery"] for graded in json.loads(out.read_text())} == {"hold", "passive"}
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(["recovery", "list", "--json"]) == 0
    assert {"hold", "passive"} <= json.loads(capsys.readouterr().out)["go1"].keys()


def test_select_keeps_the_snapshot_with_the_best_grade(tmp_path, capsys):
    tiny = {"num_envs": 8, "updates_per_step": 1, "learning_starts": 80, "hidden": [8], "batch_size": 8}
    settings = recovery_settings("half_cheetah", **tiny, replay=100, steps=320, snapshot_every=160)
    train_recovery(settings, tmp_path / "run")
    words = ["recovery", "select", str(tmp_path / "run"), "--trial-resets", "20", "--resets", "30"]
    assert main([*words, "--out", str(tmp_path / "best.npz"), "--commit", "abc"]) == 0
    facts = read_provenance(tmp_path / "best.npz")
    scores = facts["snapshot_scores"]
    assert set(scores) == {"0000000160", "0000000320"}
    assert facts["environment_steps"] == int(max(scores, key=scores.get))
    assert facts["commit"] == "abc" and facts["grade"]["resets"] == 30
    load_recovery(tmp_path / "best.npz", CHEETAH)
    assert main([*words, "--out", str(tmp_path / "first.npz"), "--snapshot", "160"]) == 0
    assert read_provenance(tmp_path / "first.npz")["environment_steps"] == 160
    assert main([*words, "--out", str(tmp_path / "none.npz"), "--snapshot", "7"]) == 2
    assert "holds no snapshot at 7 steps" in capsys.readouterr().err


def test_recovery_errors_are_value_errors():
    """The command line turns them into one line."""
    assert issubclass(RecoveryError, ValueError)
    assert main(["recovery", "grade", "half_cheetah", "--recovery", "gallop"]) == 2
