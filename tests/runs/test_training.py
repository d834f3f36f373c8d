"""Runs: counted, resumable bit for bit, protected from second writers, changed settings and damage."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from records import read_table
from same_run import assert_same_run, final_state
from short_runs import SHORT

from safeexplorer.cli import main
from safeexplorer.commands.train import run as train_command_run
from safeexplorer.files.checkpoint import checkpoints, load_checkpoint, sha256
from safeexplorer.files.interruption import Stopped
from safeexplorer.files.locks import RunInUse, exclusive
from safeexplorer.runs.exits import exit_states, read_exits
from safeexplorer.runs.results import collect_run, write_result
from safeexplorer.runs.settings import stored_settings
from safeexplorer.runs.training import open_run, train

SMALL = replace(SHORT, steps=8 * 256, max_radius=0.6, exits_per_update=4, falls_kept=2)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    train(replace(SMALL, eval_every=4, eval_episodes=1), folder)
    return folder


def test_every_step_and_every_exit_is_accounted_for(whole_run):
    for row in read_table(whole_run / "metrics.csv"):
        assert row["steps"] == row["main_steps"] + row["recovery_steps"]
        assert row["exits"] == row["succeeded"] + row["failed"] + row["open"]
        assert row["recovery_steps"] > 0


def test_episodes_agree_with_the_counts(whole_run):
    last, episodes = read_table(whole_run / "metrics.csv")[-1], read_table(whole_run / "episodes.csv")
    assert len(episodes) == last["episodes"]
    assert sum(e["fell"] for e in episodes) == last["falls"]


def test_evaluations_are_without_recovery_with_and_without_noise(whole_run):
    rows = read_table(whole_run / "evaluations.csv")
    assert [(r["update"], r["deterministic"]) for r in rows] == [(4, 0), (4, 1), (8, 0), (8, 1)]
    assert all(0 <= r["beta"] <= 1 and r["length"] >= 1 for r in rows)


def test_j_and_j_mix_have_one_policy_and_equal_starts(tmp_path):
    """Where nothing is outside the region the recovery never acts, and both are the same to the bit."""
    everywhere = {"schedule": "constant", "max_radius": 1e9}
    train(replace(SMALL, steps=256, eval_every=1, eval_episodes=2, **everywhere), tmp_path)
    noisy, deterministic = read_table(tmp_path / "evaluations.csv")
    assert noisy["mixed_return"] == noisy["total_return"] and noisy["gap"] == noisy["alpha"] == 0.0
    assert deterministic["mixed_return"] is deterministic["gap"] is None


def test_evaluations_leave_the_training_as_it_is(whole_run, tmp_path):
    train(SMALL, tmp_path)
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / name).read_bytes() == (whole_run / name).read_bytes()


def test_logged_exits_restore_to_the_edge_of_the_region(whole_run):
    from safeexplorer import robots

    records = read_exits(whole_run)
    world = robots.make("half_cheetah", len(records))
    world.reset(seed=0)
    world.set_state(exit_states(records))
    assert len(records) > 0
    assert (world.distance() > records["radius"]).all()


def test_summary_and_settings_are_written(whole_run):
    summary = json.loads((whole_run / "summary.json").read_text())
    assert summary["steps"] == 8 * 256
    assert stored_settings(whole_run) == replace(SMALL, eval_every=4, eval_episodes=1).resolved()


def test_a_run_with_a_remainder_runs_whole_updates_only(tmp_path):
    settings = replace(SMALL, steps=2 * 256 + 100).resolved()
    assert settings.updates == 2


@pytest.mark.parametrize("stop_after", [1, 3, 4, 7])
def test_stopped_and_resumed_is_bit_identical(whole_run, tmp_path, stop_after):
    settings = replace(SMALL, eval_every=4, eval_episodes=1)

    def interrupt(run, row):
        if run.update == stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        train(settings, tmp_path, interrupt)
    train(settings, tmp_path)
    assert_same_run(whole_run, tmp_path)


KILLED = """
import sys
from pathlib import Path
from safeexplorer.runs.settings import from_dict, stored_settings
from safeexplorer.runs.training import train
import json
train(from_dict(json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_is_bit_identical(tmp_path):
    settings = replace(SMALL, steps=60 * 256, checkpoint_every=2)
    train(settings, tmp_path / "whole")
    moments = random.Random(7)
    command = [sys.executable, "-c", KILLED, json.dumps(settings.as_dict()), str(tmp_path / "killed")]
    for _ in range(3):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        metrics = tmp_path / "killed" / "metrics.csv"
        size = metrics.stat().st_size if metrics.exists() else 0
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > size + 500):
            time.sleep(0.02)
        time.sleep(moments.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True)
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_the_update_in_hand_is_saved_whatever_its_watch_does(tmp_path):
    def fail(run, row):
        if run.update == 2:
            raise RuntimeError("the dashboard is down")

    with pytest.raises(RuntimeError, match="dashboard"):
        train(SMALL, tmp_path, fail)
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["0000000002"]


def test_a_terminal_that_has_gone_ends_no_training(tmp_path, monkeypatch):
    for name in ("stdout", "stderr"):
        reader, writer = os.pipe()
        os.close(reader)
        monkeypatch.setattr(sys, name, os.fdopen(writer, "w"))
    assert train_command_run(SMALL.resolved(), tmp_path) == 0
    sys.stderr.close()  # nothing is left that could not be written
    sys.stdout.close()
    assert json.loads((tmp_path / "summary.json").read_text())["steps"] == 8 * 256


def test_a_terminal_that_hangs_up_stops_a_training_and_saves_it(tmp_path):
    with pytest.raises(Stopped):
        train(SMALL, tmp_path, lambda run, row: os.kill(os.getpid(), signal.SIGHUP))
    assert [path.name for path in checkpoints(tmp_path / "checkpoints")] == ["0000000001"]


def test_what_dead_processes_left_is_swept(tmp_path):
    (tmp_path / "checkpoints" / ".0000000009.12345").mkdir(parents=True)
    (tmp_path / ".summary.json.12345.part").write_text("{")
    (tmp_path / ".history.1").write_text("of somebody else")
    train(replace(SMALL, steps=256), tmp_path)
    left = [path.name for path in [*tmp_path.iterdir(), *(tmp_path / "checkpoints").iterdir()]]
    assert [name for name in left if name.startswith(".")] == [".history.1"]


def test_a_checkpoint_is_not_written_twice_and_what_a_robot_learned_is_saved_whatever_it_raises(tmp_path):
    run = open_run(SMALL.resolved(), tmp_path)
    run.run_update()
    run.save()
    (tmp_path / "checkpoints" / "0000000001" / "untouched").touch()
    run.save()
    assert (tmp_path / "checkpoints" / "0000000001" / "untouched").exists()
    run.run_update()
    run.collector.collect = fails = lambda *_: 1 / 0
    for state, saved in (
        (run.collector.get_state(), 1),
        ({}, 2),
    ):  # of a simulation, which is repeated; of a robot
        run.collector.get_state = lambda state=state: state
        with pytest.raises(ZeroDivisionError):
            run.run_update()
        assert (run.update, run.saved, run.collector.collect) == (2, saved, fails)
    run.close()


def test_falls_replace_links_and_leave_the_files_of_others(tmp_path):
    (tmp_path / "falls").mkdir()
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "falls" / "00000001.npz").symlink_to(tmp_path / "victim")
    (tmp_path / "falls" / "notes.txt").write_text("mine")
    settings = replace(SMALL, method="ppo", checkpoint_every=1)
    with pytest.raises(Stopped):
        train(settings, tmp_path, lambda run, row: row["falls"] == 0)
    assert (tmp_path / "victim").read_text() == "precious"
    shutil.copy(tmp_path / "falls" / "00000001.npz", tmp_path / "falls" / "first.npz")
    train(settings, tmp_path)
    assert {"first.npz", "notes.txt"} <= {path.name for path in (tmp_path / "falls").iterdir()}


# -- records that are not as they were saved


def stopped_run(folder: Path) -> Path:
    with pytest.raises(Stopped):
        train(SMALL, folder, lambda run, row: run.update < 4)
    return folder


def change_a_digit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    digits = [i for i, byte in enumerate(content) if byte in b"1234567"]
    content[digits[len(digits) // 2]] += 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["metrics.csv", "exits.bin"])
def test_a_changed_or_shortened_record_is_refused_by_name(tmp_path, name):
    folder = stopped_run(tmp_path)
    path = folder / name
    whole = path.read_bytes()
    change_a_digit(path)
    with pytest.raises(ValueError, match=rf"{name} was changed"):
        train(SMALL, folder)
    path.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=rf"{name} has {len(whole) - 30} bytes; the checkpoint needs"):
        train(SMALL, folder)
    assert path.read_bytes() == whole[:-30]
    path.write_bytes(whole)
    train(SMALL, folder)


@pytest.mark.parametrize("finished", [True, False])
def test_changed_records_are_not_shown_and_not_replayed(whole_run, tmp_path, finished):
    folder = tmp_path / "run"
    shutil.copytree(whole_run, folder)
    if not finished:
        (folder / "summary.json").unlink()
    assert set(collect_run(folder).records) == {"metrics", "episodes", "evaluations"}
    change_a_digit(folder / "metrics.csv")
    with pytest.raises(ValueError, match=r"metrics\.csv was changed"):
        collect_run(folder)
    change_a_digit(folder / "exits.bin")
    with pytest.raises(ValueError, match=r"exits\.bin was changed"):
        read_exits(folder)


def test_a_run_of_an_older_release_without_digests_goes_on_and_is_read(whole_run, tmp_path):
    folder = stopped_run(tmp_path)
    forget_digests(folder)
    train(SMALL, folder)
    summary = json.loads((folder / "summary.json").read_text())
    summary.pop("records")
    (folder / "summary.json").write_text(json.dumps(summary))
    facts = json.loads((folder / "run.json").read_text())
    facts.pop("stretches")
    (folder / "run.json").write_text(json.dumps(facts))
    result = collect_run(folder)
    assert result.finished and result.records == {} and len(result.stretches) == 1


def forget_digests(folder: Path) -> None:
    for path in checkpoints(folder / "checkpoints"):
        state = json.loads((path / "state.json").read_text())
        state.pop("digests")
        for name in ("sampled_recovery", "min_log_std"):  # settings that it did not have
            state["settings"].pop(name)
        (path / "state.json").write_text(json.dumps(state))
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(
            json.dumps(manifest | {"state.json": sha256(path / "state.json")})
        )


# -- records without checkpoints


def test_records_whose_checkpoints_are_gone_are_not_wiped_unless_asked(tmp_path):
    folder = stopped_run(tmp_path)
    shutil.rmtree(folder / "checkpoints")
    before = (folder / "metrics.csv").read_bytes()
    with pytest.raises(ValueError, match="4 rows of records, but their checkpoints are gone"):
        train(SMALL, folder)
    assert (folder / "metrics.csv").read_bytes() == before
    (folder / "falls" / "00000099.npz").write_bytes(b"of the run before")
    train(SMALL, folder, start_over=True)
    assert len(read_table(folder / "metrics.csv")) == 8
    assert not (folder / "falls" / "00000099.npz").exists()


def test_a_run_killed_before_its_first_checkpoint_begins_again_with_resume(tmp_path, whole_run):
    settings = replace(SMALL, eval_every=4, eval_episodes=1).resolved()
    run = open_run(settings, tmp_path)
    run.run_update()
    run.close()  # as a killed process leaves it
    assert main(["resume", str(tmp_path)]) == 0
    assert_same_run(whole_run, tmp_path)


# -- other versions


def test_going_on_under_other_versions_is_said_written_down_and_refused_where_exact(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XLA_FLAGS", "")
    folder = stopped_run(tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_thunk_runtime=false")
    with pytest.raises(ValueError, match="--exact allows none"):
        train(SMALL, folder, exact=True)
    with pytest.raises(Stopped):
        train(SMALL, folder, lambda run, row: run.update < 6)
    assert capsys.readouterr().err.count("xla_flags: '' -> '--xla_cpu_use_thunk_runtime=false'") == 1
    train(SMALL, folder, exact=True)  # nothing has changed since
    stretches = collect_run(folder).stretches
    assert [s["update"] for s in stretches] == [0, 4]
    assert [s["provenance"]["xla_flags"] for s in stretches] == ["", "--xla_cpu_use_thunk_runtime=false"]
    written = json.loads(write_result(collect_run(folder), folder / "results").read_text())
    assert written["stretches"] == stretches


def test_threads_do_not_change_the_result(whole_run, tmp_path):
    train(replace(SMALL, eval_every=4, eval_episodes=1, threads=2), tmp_path)
    assert final_state(whole_run)[0] == final_state(tmp_path)[0]


def test_a_second_process_on_the_same_folder_is_refused(tmp_path):
    with exclusive(tmp_path), pytest.raises(RunInUse, match=f"in use by process {os.getpid()}"):
        train(SMALL, tmp_path)


def test_changed_settings_are_refused_with_the_difference(whole_run):
    changed = replace(SMALL, eval_every=4, eval_episodes=1, lambda_compat=0.5).resolved()
    with pytest.raises(ValueError, match=r"lambda_compat: 0\.001 -> 0\.5"):
        open_run(changed, whole_run)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, whole_run, capsys):
    settings = replace(SMALL, eval_every=4, eval_episodes=1)
    train(settings, tmp_path)
    newest = checkpoints(tmp_path / "checkpoints")[-1] / "arrays.npz"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    train(settings, tmp_path)
    assert "damaged checkpoint passed over" in capsys.readouterr().err
    assert_same_run(whole_run, tmp_path)


def test_non_finite_parameters_stop_the_run_and_keep_the_checkpoint(tmp_path):
    run = open_run(SMALL.resolved(), tmp_path)
    run.learning_rate = lambda progress: 1e30
    run.save()
    with pytest.raises(FloatingPointError, match="non-finite"):
        for _ in range(4):
            run.run_update()
    run.close()
    arrays, _ = load_checkpoint(checkpoints(tmp_path / "checkpoints")[-1])
    assert all(np.isfinite(a).all() for a in arrays.values() if a.dtype.kind == "f")


def test_the_black_box_shows_the_last_two_seconds_before_a_fall(tmp_path):
    settings = replace(SMALL, method="ppo", steps=16 * 256)
    train(settings, tmp_path)
    falls = int(read_table(tmp_path / "metrics.csv")[-1]["falls"])
    files = sorted((tmp_path / "falls").iterdir())
    kept = [n for n in range(1, falls + 1) if n <= 2 or n > falls - 2]
    assert [int(path.stem) for path in files] == kept
    with np.load(files[-1]) as fall:
        assert 1 <= len(fall["qpos"]) <= 40  # 2 s at 20 Hz
        assert len(fall["qpos"]) == len(fall["action"]) == len(fall["distance"])
        assert np.isnan(fall["radius"])  # PPO has no region; a pickled None would not be readable here


def test_a_jump_start_trains_and_logs_its_exits(tmp_path):
    train(replace(SMALL, steps=2 * 256, intervention="jump_start", handoff=20), tmp_path)
    records = read_exits(tmp_path)
    assert len(records) > 0 and np.isnan(records["radius"]).all()


def test_multi_sample_values_differ_only_under_noise(tmp_path):
    results = {}
    for noise in (0.0, 0.2):
        for samples in (1, 3):
            settings = replace(
                SMALL, steps=2 * 256, action_noise=noise, analytic_samples=samples, max_radius=0.2
            )
            train(settings, tmp_path / f"{noise}-{samples}")
            results[noise, samples] = read_table(tmp_path / f"{noise}-{samples}" / "metrics.csv")[-1][
                "value_loss"
            ]
    assert results[0.0, 3] == pytest.approx(results[0.0, 1], rel=0.05)
    assert results[0.2, 3] != results[0.2, 1]
