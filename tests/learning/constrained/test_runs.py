"""Runs of the constrained methods: resumed exactly, reported raw, judged against their limit."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from records import read_table
from short_runs import SHORT
from synthetic import write_run

from safeexplorer.files.checkpoint import checkpoints, load_checkpoint
from safeexplorer.files.interruption import Stopped
from safeexplorer.files.tables import Table
from safeexplorer.paper.feasibility import feasibility
from safeexplorer.runs.results import collect_run, load_results
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import train

METHODS = ("ppo_lagrangian", "cpo")
UPDATES = 9  # 1152 steps per robot: past the time limit, so that an episode ends
SMALL = replace(SHORT, steps=UPDATES * 256, checkpoint_every=2)


@pytest.fixture(scope="module", params=METHODS)
def whole_run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    train(replace(SMALL, method=request.param), folder)
    return folder


def test_stopped_and_resumed_is_bit_identical(whole_run, tmp_path):
    settings = replace(SMALL, method=json.loads((whole_run / "run.json").read_text())["settings"]["method"])

    def interrupt(run, row):
        if run.update == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        train(settings, tmp_path, interrupt)
    train(settings, tmp_path)
    one, other = (load_checkpoint(checkpoints(f / "checkpoints")[-1])[0] for f in (whole_run, tmp_path))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name, strict=True)
    for name in ("metrics.csv", "episodes.csv"):
        assert (whole_run / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_normaliser_is_saved(whole_run):
    arrays, _ = load_checkpoint(checkpoints(whole_run / "checkpoints")[-1])
    count = [array for name, array in arrays.items() if name.endswith("observations/0")]
    assert [int(n) for n in count] == [UPDATES * 256]


def test_reported_returns_are_raw_task_returns(whole_run):
    rows, episodes = (read_table(whole_run / name) for name in ("metrics.csv", "episodes.csv"))
    for row in rows:
        raw = [e["total_return"] for e in episodes if e["update"] == row["update"]]
        assert row["return_mean"] == (pytest.approx(np.mean(raw)) if raw else None)
    assert min(e["total_return"] for e in episodes) < -10  # normalised rewards would sum to nearly nothing


def test_the_settings_that_are_the_methods_own(whole_run):
    settings = Settings(method="cpo").resolved()
    assert (settings.rollout_steps, settings.max_gradient_norm, settings.adam_epsilon) == (512, 40.0, 1e-8)
    assert settings.batch_size == 2048
    assert replace(settings, rollout_steps=2048).resolved().rollout_steps == 2048
    assert Settings(method="cpo", num_envs=1).resolved().rollout_steps == 2048
    assert Settings(method="ppo").resolved().rollout_steps == 2048
    stored = json.loads((whole_run / "run.json").read_text())["settings"]
    assert (stored["rollout_steps"], stored["max_gradient_norm"]) == (128, 40.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": "step"}, "cost is 'step'; allowed: fall, region"),
        ({"cost_limit": -1.0}, "cost_limit is -1.0; allowed: a number of at least 0"),
        ({"target_kl": 0.0}, "target_kl is 0.0; allowed: a number above 0"),
        ({"num_envs": 0}, "num_envs is 0; allowed"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Settings(method="cpo", **change).resolved()


# -- feasibility -------------------------------------------------------------------------------------------


def constrained_run(folder: Path, method: str, seed: int, ended: list[tuple[int, float]]) -> Path:
    """A run of as many updates, each with (episodes that ended, their cost)."""
    folder = write_run(
        folder, Settings(robot="ant", method=method, seed=seed, steps=2048 * len(ended)), name=str(seed)
    )
    metrics, episodes = (read_table(folder / name) for name in ("metrics.csv", "episodes.csv"))
    rows = [
        dict.fromkeys(episodes[0], 0) | {"update": update}
        for update, (count, _) in enumerate(ended, start=1)
        for _ in range(count)
    ]
    costs = [row | {"cost_ended": cost} for row, (_, cost) in zip(metrics, ended, strict=True)]
    for name, table in (("metrics.csv", costs), ("episodes.csv", rows)):
        written = Table(folder / name, list(table[0]))
        written.append(*table)
        written.close()
    return folder


def test_cost_is_per_episode_of_the_last_twentieth(tmp_path):
    run = constrained_run(tmp_path, "cpo", 1, [(5, 5.0)] * 38 + [(3, 1.0), (1, 0.0)])
    cost = collect_run(run).numbers["final_cost"]
    assert cost == pytest.approx(1.0 / 4)  # 2 of 40 updates: 4 episodes, cost 1


def test_no_episode_at_the_end_is_said_and_not_guessed(tmp_path):
    run = constrained_run(tmp_path, "cpo", 1, [(1, 1.0)] * 19 + [(0, 0.0)])
    assert collect_run(run).numbers["final_cost"] is None


def test_feasibility_over_seeds_beside_the_paper(tmp_path):
    for seed, cost in ((1, 2.0), (2, 4.0)):
        constrained_run(tmp_path, "cpo", seed, [(10, 10.0)] * 19 + [(10, cost)])
    (row,) = feasibility(load_results([tmp_path]))
    assert (row["robot"], row["method"], row["limit"], row["seeds"]) == ("ant", "cpo", 0.05, 2)
    assert row["cost"] == pytest.approx(0.3)
    assert row["deviation"] == pytest.approx(0.1 * math.sqrt(2))  # 0.2 and 0.4, ddof = 1
    assert row["feasible"] is False
    assert row["paper"] == (0.103, 0.029)


def test_other_methods_have_no_budget(tmp_path):
    write_run(tmp_path, Settings(method="ppo", steps=20 * 8192), name="mine")
    with pytest.raises(ValueError, match="mine is a run of ppo; a budget of cost have: ppo_lagrangian, cpo"):
        feasibility(load_results([tmp_path]))
