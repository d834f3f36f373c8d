"""A campaign over an environment of one's own."""

from __future__ import annotations

import pytest
from own_factories import make, make_broken, make_deaf

from safeexplorer.campaigns.campaign import FAILED, Campaign, make_jobs
from safeexplorer.campaigns.own import OwnEngine, compare, comparison, spec_of

STEPS = 256  # four updates


def test_methods_times_seeds_are_trained_and_the_same_call_goes_on(tmp_path, capsys):
    make("ppo", 1).learn(STEPS, folder=tmp_path / spec_of(make, "ppo", 1, STEPS).name)  # before the campaign
    found = compare(make, ["ppo", "safeexplorer"], [1, 2], STEPS, tmp_path, workers=2)
    assert [(run.spec.settings.method, run.spec.settings.seed, run.status) for run in found] == [
        (method, seed, "finished") for method in ("ppo", "safeexplorer") for seed in (1, 2)
    ]
    out = capsys.readouterr().out
    assert "Drift" in out and out.count("2 of 2") == 2 and "±" in out
    # each run is what the class alone would have made
    alone = make("safeexplorer", 2).learn(STEPS)
    assert found[3].numbers["falls"] == alone.summary["falls"]
    assert found[3].numbers["final_reward"] == alone.summary["final_reward"]
    # nothing is trained twice
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.csv")}
    compare(make, ["ppo", "safeexplorer"], [1, 2], STEPS, tmp_path, workers=2)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.csv")} == before


def test_a_run_that_cannot_work_fails_with_its_own_words_and_is_counted(tmp_path):
    jobs = make_jobs([spec_of(make, "safeexplorer", 1, STEPS)], tmp_path)
    Campaign(jobs, OwnEngine(make_broken, 1)).run()
    (job,) = jobs
    assert job.state == FAILED and job.attempts == 1 and "recovery" in job.error


def test_what_no_process_can_import_is_refused_before_any_starts(tmp_path):
    with pytest.raises(ValueError, match="allowed: a function at the top of a module"):
        compare(lambda method, seed: make(method, seed), ["ppo"], [1], STEPS, tmp_path)
    with pytest.raises(ValueError, match=r"make\('ppo', 1\) gave an agent of \('ppo', 7\); hand both on"):
        compare(make_deaf, ["ppo"], [1], STEPS, tmp_path)
    assert not list(tmp_path.iterdir())


def test_one_run_has_no_deviation_and_none_no_number(tmp_path, capsys):
    found = compare(make, ["ppo"], [1], STEPS, tmp_path)
    table = comparison(found, ["ppo", "masked"])
    runs, falls = (list(table.columns[k].cells) for k in (1, 3))
    assert runs == ["1 of 1", "0 of 0"] and falls == [f"{found[0].numbers['falls']:,.1f}", "-"]
