"""`safeexplorer evaluate`: afterwards what an evaluation in the loop would have said."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from records import read_table
from short_runs import SHORT

from safeexplorer.cli import main
from safeexplorer.runs.training import train

UPDATES = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(replace(SHORT, steps=UPDATES * 256, eval_every=UPDATES, eval_episodes=2), folder)
    return folder


def test_it_equals_the_evaluation_in_the_loop(run, capsys):
    noisy, deterministic = read_table(run / "evaluations.csv")
    seed = int(np.random.SeedSequence([1, UPDATES]).generate_state(1)[0])
    assert main(["evaluate", str(run), "--episodes", "2", "--seed", str(seed), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == UPDATES * 256
    assert found["trailing_return"] == noisy["trailing_return"]
    assert found["mixed"]["total_return"] == noisy["mixed_return"]
    assert noisy["gap"] == noisy["mixed_return"] - noisy["total_return"] and deterministic["gap"] is None
    for name, row in (("noisy", noisy), ("deterministic", deterministic)):
        assert found[name] == {k: row[k] for k in ("total_return", "length", "falls", "beta")}


def test_the_table_shows_both(run, capsys):
    assert main(["evaluate", str(run), "--episodes", "1"]) == 0
    out = capsys.readouterr().out
    assert (
        "alone, no noise" in out
        and "with the recovery" in out
        and "half_cheetah, safeexplorer, seed 1" in out
    )


def test_a_folder_without_a_run_is_named(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
