"""`safeexplorer audit` of recordings and of robots."""

import json

import pytest
from recordings import native, three_episodes, written

from safeexplorer.audit import audit
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED
from safeexplorer.cli import main
from safeexplorer.files.checkpoint import flatten
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import open_run
from safeexplorer.theory.update import example_rollout


def test_a_recording_with_its_policy_is_audited_from_the_command_line(tmp_path, capsys):
    params, rollout = three_episodes()
    weights = {f"policy/{name}": array for name, array in flatten(params).items()}
    path = written(tmp_path, native(rollout) | weights)
    assert main(["audit", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shares"]["recovery_steps"] == 1 and found["falls"] == {"policy": 2, "recovery": 1}
    assert found["gradients"] == audit(rollout, params).as_dict()["gradients"]
    assert main(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "came back" in out and "unmasked" in out and "Suggestions" in out


def test_a_robot_is_tried_out_with_the_policy_of_a_run(tmp_path, capsys):
    run = open_run(Settings(steps=8192, hidden=(8,)).resolved(), tmp_path)
    run.update = 1
    run.save()
    run.close()
    words = ["audit", "half_cheetah", "--policy", str(tmp_path), "--steps", "128", "--radius", "0.15"]
    assert main([*words, "--sampled-recovery", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == f"{tmp_path} at 0.0% of its training"
    assert found["determinism"]["verdict"] == "stochastic recovery" and found["density"]
    assert 0 < found["importance"]["ess_share"] <= 1
    assert main(["audit", "ant", "--policy", str(tmp_path)]) == 2
    assert "is a run of half_cheetah, not of ant" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "'nowhere' is no robot and no file"),
        (["half_cheetah", "--steps", "10"], "steps is 10; allowed: a positive multiple of num_envs, 4"),
        (["half_cheetah", "--num-envs", "0"], "num_envs is 0; allowed: a whole number from 1 to 65536"),
        (["half_cheetah", "--radius", "-1"], "radius is -1.0; allowed: a number above 0"),
        (["half_cheetah", "--progress", "2"], "progress is 2.0; allowed: a number from 0 to 1"),
        (["half_cheetah", "--radius", "1", "--progress", "0.5"], "radius and progress are both given"),
        (["half_cheetah", "--recovery", "hold", "--sampled-recovery"], "recovery is 'hold', which has"),
        (["half_cheetah", "--policy", "nowhere.npz"], "nowhere.npz"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(capsys, words, says):
    assert main(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and says in error


def test_options_of_a_robot_are_refused_for_a_recording(tmp_path, capsys):
    path = written(tmp_path, native(example_rollout()))
    assert main(["audit", str(path), "--radius", "1"]) == 2
    assert "--radius is for a robot" in capsys.readouterr().err


def test_help_names_every_array(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in REQUIRED | OPTIONAL)
