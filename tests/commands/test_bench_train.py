"""`bench train`: what it times, beside what, and how it says no."""

import json
from dataclasses import replace

import pytest
from short_runs import SHORT

from safeexplorer.cli import main
from safeexplorer.files.interruption import Stopped
from safeexplorer.robots.physics import RawLoop
from safeexplorer.runs import benchmark
from safeexplorer.runs.training import train

UPDATES, DONE = 8, 3
SMALL = replace(SHORT, steps=UPDATES * 256)


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory):
    """A run that was stopped after update 3 of 8."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Stopped):
        train(SMALL, folder, lambda run, row: run.update < DONE)
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_timed_from_where_it_stands_and_left_alone(capsys, stopped_run):
    before = contents(stopped_run)
    assert main(["bench", "train", "--run", str(stopped_run), "--updates", "4", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["robot"], row["method"], row["first_step"]) == ("half_cheetah", "safeexplorer", DONE * 256)
    assert row["ratio"] == pytest.approx(row["steps_per_second"] / row["raw_steps_per_second"])
    assert sum(row[part] for part in ("simulate", "act", "learn", "rest")) == pytest.approx(1.0)
    assert contents(stopped_run) == before


def test_the_raw_loop_of_a_training_does_the_same_physics(stopped_run, tmp_path, monkeypatch):
    """It ends every update in the same states, resets included, so that the ratio compares like with like."""
    seconds, resets, run = RawLoop.seconds, [], benchmark.open_copy(stopped_run, tmp_path, 5)

    def checking(raw, before, actions, starts):
        taken = seconds(raw, before, actions, starts)
        for data, qpos in zip(raw.data, run.env.now.qpos, strict=True):
            assert data.qpos.tolist() == qpos.tolist()
        resets.append(len(starts))
        return taken

    monkeypatch.setattr(RawLoop, "seconds", checking)
    benchmark.bench_training(run, 5)
    assert len(resets) == 5 and sum(resets) > 0


def test_a_table_shows_each_run_that_was_timed(capsys, monkeypatch):
    timed = []

    def bench_training(run, updates):
        run.close()
        timed.append((run.settings.robot, run.settings.method, run.settings.updates))
        numbers = dict.fromkeys(("simulate", "act", "learn", "rest", "peak_memory_mib", "first_step"), 0)
        speeds = {"steps_per_second": 4000.0, "raw_steps_per_second": 5000.0, "ratio": 0.8}
        return {"robot": run.settings.robot, "method": run.settings.method, **numbers, **speeds}

    monkeypatch.setattr(benchmark, "bench_training", bench_training)
    monkeypatch.setattr(benchmark, "peer_speed", lambda name: 1000.0)
    assert main(["bench", "train", "--robot", "ant", "--method", "ppo", "masked", "--updates", "7"]) == 0
    out = capsys.readouterr().out
    assert timed == [("ant", "ppo", 7), ("ant", "masked", 7)]
    assert "masked" in out and "0.80" in out and "4.0x" in out  # nothing is cut off in 80 columns


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--updates", "2"], "--updates is 2; allowed: more than the 2 that warm up"),
        (["--robot", "cat"], "no robot 'cat'; known: half_cheetah, ant, go1"),
        (["--method", "ppo", "nonsense"], "no method 'nonsense'; known: ppo"),
        (["--run", "nowhere"], "nowhere holds no run"),
        (["--run", "RUN", "--method", "ppo"], "--run has its own robot, method and recovery"),
        (["--run", "RUN", "--updates", "6"], "allowed with RUN: up to the 5 it has left"),
    ],
)
def test_what_cannot_be_timed_is_refused_in_one_line(capsys, stopped_run, words, message):
    code = main(["bench", "train", *(str(stopped_run) if word == "RUN" else word for word in words)])
    error = capsys.readouterr().err
    assert code == 2 and error.count("\n") == 1
    assert message.replace("RUN", str(stopped_run)) in error
