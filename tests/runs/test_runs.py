"""Runs as values, and their results as small files."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest
from records import read_table
from synthetic import write_run

from safeexplorer.cli import main
from safeexplorer.commands import train as train_commands
from safeexplorer.commands.train import add_train, settings_of
from safeexplorer.files.interruption import Stopped
from safeexplorer.files.tables import read_columns
from safeexplorer.learning.methods import CONSTRAINED, METHODS
from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import Protocol
from safeexplorer.runs.results import collect_run, load_results, result_from_dict, write_result
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import command_words, run_spec, without_effect
from safeexplorer.runs.summary import TRAILING, falls_at, success_levels, summarise_run

SMALL = Settings(steps=300 * 8192)


def test_equal_settings_are_one_run_and_the_name_is_stable():
    spec = run_spec(Settings(robot="ant", seed=3))
    assert spec.key == run_spec(replace(Settings(robot="ant", seed=3), steps=8_000_000)).key
    assert spec.name == "ant-safeexplorer-seed3-" + spec.key[:10]
    assert spec.identity == {"robot": "ant", "method": "safeexplorer", "seed": 3, "steps": 8_000_000}


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"lambda_compat": 0.01}, {"max_radius": 3.2}, {"schedule": "log"}, {"action_noise": 0.05},
     {"steps": 4_000_000}, {"method": "analytic"}, {"hidden": (32, 32)}, {"sampled_recovery": True}],
    ids=str,
)  # fmt: skip
def test_what_shapes_the_numbers_makes_another_run(change):
    assert run_spec(replace(Settings(), **change)).key != run_spec(Settings()).key


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        (Settings(), {"threads": 2, "eval_every": 4, "checkpoint_every": 5, "falls_kept": 3}),
        (Settings(method="ppo"), {"max_radius": 3.2, "recovery": "hold", "lambda_compat": 1.0}),
        (Settings(method="analytic"), {"lambda_compat": 1.0, "per_segment": True}),
        (Settings(), {"fraction": 0.5, "handoff": 100, "importance_cap": 3.0, "cost_limit": 1.0}),
        (Settings(schedule="constant"), {"initial_radius": 0.5}),
        (Settings(method="truncated_is"), {"sampled_recovery": True}),
    ],
    ids=[
        "how it is watched",
        "ppo reads no radius",
        "no gate, no weight",
        "unused options",
        "constant",
        "implied",
    ],
)
def test_what_a_run_never_reads_does_not_name_it(settings, change):
    assert run_spec(replace(settings, **change)).key == run_spec(settings).key


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        (Settings(method="ppo", lambda_compat=0.5, recovery="hold"), ["recovery", "lambda_compat"]),
        (Settings(method="cpo", min_log_std=-1.0), ["min_log_std"]),
        (Settings(schedule="constant", initial_radius=0.1), ["initial_radius"]),
        (Settings(method="ppo", threads=2, eval_every=4, gamma=0.9), []),
        (Settings(lambda_compat=0.5, max_radius=0.3), []),
    ],
)
def test_what_was_set_without_effect_is_known(settings, ignored):
    settings = replace(settings, robot="ant").resolved()
    assert without_effect(settings) == ignored


def test_train_says_what_has_no_effect_before_it_starts(capsys, monkeypatch, tmp_path):
    def stop(*_):
        raise Stopped("stopped")

    monkeypatch.setattr(train_commands, "train", stop)
    settings = Settings(robot="ant", method="ppo", lambda_compat=0.5, max_radius=0.3).resolved()
    with pytest.raises(Stopped, match=r"stopped\. Continue with: safeexplorer resume"):
        train_commands.run(settings, tmp_path)
    assert "no effect on this run of ppo: --lambda-compat, --max-radius\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, method",
    [
        ([], "safeexplorer_auto"),
        (["--schedule", "auto"], "safeexplorer_auto"),
        (["--schedule", "linear"], "safeexplorer"),
        (["--schedule", "linear", "--method", "safeexplorer_auto"], "safeexplorer_auto"),
        (["--method", "ppo"], "ppo"),
    ],
)
def test_a_training_that_names_no_method_measures_but_where_it_names_a_clock(
    words, method, monkeypatch, tmp_path
):
    started = []
    monkeypatch.setattr(
        train_commands, "run", lambda settings, *_, **__: started.append(settings.method) or 0
    )
    assert main(["train", "half_cheetah", *words, "--out", str(tmp_path / "run")]) == 0
    assert started == [method]


def test_every_method_has_runs_of_its_own():
    keys = {run_spec(Settings(method=method)).key for method in (*METHODS, *CONSTRAINED)}
    assert len(keys) == len(METHODS) + len(CONSTRAINED)


def test_the_command_of_every_run_of_the_paper_gives_back_its_settings(tmp_path):
    parser = argparse.ArgumentParser()
    add_train(parser)
    for artefact in ARTEFACTS.values():
        for spec in artefact.specs(Protocol(seeds=1)):
            words = command_words(spec.settings, tmp_path)
            assert settings_of(parser.parse_args(words[1:])) == spec.settings


def test_a_result_survives_its_file(tmp_path):
    result = collect_run(write_run(tmp_path / "runs", replace(SMALL, eval_every=4)))
    path = write_result(result, tmp_path / "results")
    again = result_from_dict(json.loads(path.read_text()), path)
    assert replace(again, folder=result.folder).as_dict() == json.loads(json.dumps(result.as_dict()))
    assert path.stat().st_size < 60_000


def test_the_gap_of_an_older_release_is_no_gap(tmp_path):
    """It set J beside the last 100 training episodes, a dozen updates older."""
    old = {
        "format": 1,
        "settings": SMALL.resolved().as_dict(),
        "name": "old",
        "status": "finished",
        "updates": 300,
    }
    old |= {"numbers": {"mixed_return_late": 5.0, "alone_return_late": 3.0, "gap_late": 2.0}}
    result = result_from_dict(old | {"evaluations": {"steps": [1], "gap": [2.0]}}, tmp_path)
    assert result.numbers == {"trailing_return_late": 5.0, "alone_return_late": 3.0}
    assert result.evaluations == {"steps": [1]}


def test_evaluations_of_an_older_release_are_read(tmp_path):
    folder = write_run(tmp_path, SMALL)
    (folder / "evaluations.csv").write_text(
        "update,steps,deterministic,mixed_return,total_return,length,falls,beta,gap\n300,2457600,0,5,3,900,0,0,2\n"
    )
    numbers = collect_run(folder).numbers
    assert (numbers["trailing_return_late"], numbers["alone_return_late"]) == (5, 3)
    assert numbers["mixed_return_late"] is numbers["gap_late"] is None


def test_a_result_of_another_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="format is 99; allowed: 1, 2"):
        result_from_dict({"format": 99}, tmp_path)


@pytest.mark.parametrize("method", ["ppo", "safeexplorer"])
def test_falls_to_success_from_the_small_file_for_any_bar(tmp_path, method):
    folder = write_run(tmp_path, replace(SMALL, method=method))
    result, episodes = collect_run(folder), read_table(folder / "episodes.csv")
    returns, fell = [e["total_return"] for e in episodes], [e["fell"] for e in episodes]
    levels = success_levels(returns, fell)
    for bar in np.linspace(-200, max(returns) * 1.05, 60):
        expected = next(
            (sum(fell[: i + 1]) for i in range(TRAILING - 1, len(returns))
             if np.mean(returns[i - TRAILING + 1 : i + 1]) >= bar),
            None,
        )  # fmt: skip
        assert falls_at(levels, bar) == expected
        ours = result.falls_to(bar)
        if expected is None or expected <= 200:
            assert ours == expected
        else:
            assert expected <= ours <= 1.005 * expected


def test_numbers_agree_with_the_records(tmp_path):
    folder = write_run(tmp_path, replace(SMALL, eval_every=4))
    numbers, episodes = collect_run(folder).numbers, read_table(folder / "episodes.csv")
    last_tenth = [e["total_return"] for e in episodes if e["update"] > 270]
    last_twentieth = [e["fell"] for e in episodes if e["update"] > 285]
    assert numbers["final_reward"] == pytest.approx(np.mean(last_tenth))
    assert numbers["falls"] == sum(e["fell"] for e in episodes)
    assert numbers["final_cost"] == pytest.approx(np.mean(last_twentieth))
    assert numbers.items() <= summarise_run(folder, numbers["seconds"]).items()  # what summary.json says
    late = [e["gap"] for e in read_table(folder / "evaluations.csv") if e["update"] > 240]
    assert numbers["gap_late"] == pytest.approx(np.mean(late))


def test_curves_are_sampled_and_end_where_the_run_ends(tmp_path):
    result = collect_run(write_run(tmp_path, SMALL))
    assert {len(column) for column in result.curve.values()} == {200}
    assert result.curve["steps"][-1] == SMALL.steps
    assert result.curve["falls"][-1] == result.numbers["falls"]


def test_a_cut_last_line_is_left_out(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("update,radius\n1,\n2,0.5\n3,0.")
    columns = read_columns(path)
    assert columns["update"].tolist() == [1, 2]
    assert np.isnan(columns["radius"][0]) and columns["radius"][1] == 0.5


def test_of_two_records_of_a_run_the_finished_one_counts(tmp_path):
    write_run(tmp_path / "a", SMALL, finished=False, updates=100)
    write_run(tmp_path / "b", SMALL)
    (result,) = load_results([tmp_path / "a", tmp_path / "b"])
    assert result.finished and result.updates == 300


def test_a_path_without_runs_is_named():
    with pytest.raises(ValueError, match="nowhere is neither a run folder"):
        load_results(["nowhere"])
