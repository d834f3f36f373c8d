"""`quickstart`: two runs as a campaign, then what they tell."""

from __future__ import annotations

import json

import pytest

from safeexplorer.cli import main
from safeexplorer.commands import quickstart
from safeexplorer.files.interruption import Stopped


def finish(falls):
    """Stands in for the campaign: both runs end with these falls."""

    def run_jobs(jobs, engine, workers):
        assert (engine, workers) == ("local", 2)
        for job in jobs:
            job.folder.mkdir(parents=True)
            s = job.spec.settings
            summary = {"method": s.method, "falls": falls[s.method], "final_reward": 1234.5, "steps": s.steps}
            summary |= {"seconds": 2.0, "updates": s.updates}
            (job.folder / "summary.json").write_text(json.dumps(summary))
            facts = {"settings": s.as_dict(), "updates": s.updates}
            (job.folder / "run.json").write_text(json.dumps(facts))
        return []

    return run_jobs


@pytest.mark.parametrize(
    ("ours", "sentence"),
    [(4, "SafeExplorer 4 times."), (1, "SafeExplorer once."), (0, "SafeExplorer not once.")],
)
def test_both_methods_are_compared(tmp_path, monkeypatch, capsys, ours, sentence):
    monkeypatch.setattr(quickstart, "run_jobs", finish({"ppo": 300, "safeexplorer_auto": ours}))
    assert main(["quickstart", "--steps", "20000", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert f"PPO fell 300 times, {sentence}" in said and "10,000" in said  # 20,000 steps in 2 s
    assert f"safeexplorer report {tmp_path} --out report.html" in said.replace("\n", "")
    assert str(tmp_path / "half_cheetah-ppo-seed1-") in said


def test_a_run_that_failed_is_named(tmp_path, monkeypatch, capsys):
    def fail(jobs, engine, workers):
        jobs[0].error = "killed by signal 9"
        return jobs[:1]

    monkeypatch.setattr(quickstart, "run_jobs", fail)
    assert main(["quickstart", "--out", str(tmp_path)]) == 1
    assert "half_cheetah ppo seed 1 steps=1000000 failed: killed by signal 9" in capsys.readouterr().err


def test_being_stopped_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise Stopped("stopped; every run is saved, the same command continues")

    monkeypatch.setattr(quickstart, "run_jobs", stop)
    assert main(["quickstart", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "stopped; every run is saved, the same command continues\n"
