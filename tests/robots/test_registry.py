"""A robot of one's own: what `register` refuses, and that every command knows it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from safeexplorer.cli import main
from safeexplorer.robots import ROBOTS, get_robot, register
from safeexplorer.robots.simulation import Simulation

HOPPER = Path(__file__).parents[2] / "examples" / "hopper.py"
CHEETAH = get_robot("half_cheetah")
SMALL = "--num-envs 2 --rollout-steps 32 --epochs 1 --minibatches 2"
# Each line is a command; the last words hand a run to a worker process, as a campaign does.
COMMANDS = f"""
train hopper {SMALL} --steps 128 --out {{0}}/run
robots
show hopper --seconds 0.1 --size 64x64 --out {{0}}/hopper.png
film {{0}}/run --seconds 0.1 --size 64x64 --out {{0}}/hopper.gif
evaluate {{0}}/run --episodes 1
recovery grade hopper --resets 4 --out {{0}}/grade.json
recovery train hopper --steps 256 --num-envs 8 --learning-starts 128 --updates-per-step 1 --out {{0}}/recovery
collect {{0}}/run --out {{0}}/results
report {{0}}/run --out {{0}}/page.html
"""
PROGRAM = """
import sys
from safeexplorer.cli import main
for line in sys.argv[2].strip().splitlines():
    code = main([*line.split(), "--robot-file", sys.argv[1]])
    assert code == 0, (line, code)
from pathlib import Path
from safeexplorer.campaigns.local import LocalEngine
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import run_spec
folder = Path(sys.argv[3]) / "worker"
folder.mkdir()
small = dict(num_envs=2, rollout_steps=32, epochs=1, minibatches=2, steps=64)
attempt = LocalEngine(1).start(run_spec(Settings(robot="hopper", **small)), folder)
attempt.process.wait()
print(LocalEngine(1).outcome(attempt))
"""


@pytest.mark.slow
def test_a_robot_from_a_file_is_known_to_every_command_and_worker(tmp_path):
    words = [str(HOPPER), COMMANDS.format(tmp_path), str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Outcome(error=None" in done.stdout
    run = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert (run["robot"], run["recovery"], run["max_radius"]) == ("hopper", "default", 0.2)
    summary = json.loads((tmp_path / "worker" / "summary.json").read_text())
    assert summary["robot"] == "hopper" and summary["steps"] == 64
    names = [grade["recovery"] for grade in json.loads((tmp_path / "grade.json").read_text())]
    assert names == ["hold", "passive"]
    assert "Hopper" in (tmp_path / "page.html").read_text()
    assert list((tmp_path / "recovery" / "snapshots").glob("*.npz"))


@pytest.mark.parametrize("name", ["action_size", "observation_size"])
def test_sizes_that_are_not_the_models_are_refused(name):
    with pytest.raises(ValueError, match=f"half_cheetah: {name} is 3; "):
        Simulation(replace(CHEETAH, **{name: 3}), 1).reset(seed=0)


def test_an_unknown_robot_is_answered_with_the_known_ones_and_the_way_to_add_one(capsys):
    assert main(["train", "hopper"]) == 2
    error = capsys.readouterr().err
    assert "no robot 'hopper'; known: half_cheetah, ant, go1, or your own from a --robot-file" in error


@pytest.mark.parametrize(
    ("text", "message"), [(None, "allowed: a Python file"), ("x = 1", "registers no robot")]
)
def test_a_robot_file_that_is_none_is_refused(text, message, tmp_path, capsys):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["--robot-file", str(path), "robots"])
    assert stop.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "name is 'half_cheetah'; allowed: any but half_cheetah, ant, go1"),
        ({"name": "my robot"}, "name is 'my robot'; allowed: letters"),
        ({"name": "mine", "terms": ("forward",)}, "flavour 'task' weighs 'ctrl'; its terms: forward"),
        ({"name": "mine", "flavours": {"task": {}}}, "mine has no flavour 'recovery'"),
        ({"name": "mine", "action_size": 5}, "posture has \\[6, 6, 6\\] joints; allowed: action_size = 5"),
    ],
)
def test_a_robot_that_cannot_work_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        register(replace(CHEETAH, **change))
    assert list(ROBOTS) == ["half_cheetah", "ant", "go1"]
