"""The examples run as they stand, at a small budget."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
LINES = 80


def run(name: str, words: list[str], monkeypatch, capsys) -> str:
    monkeypatch.setattr(sys, "argv", [name, *words])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_the_pendulum_falls_at_least_ten_times_less_often_than_with_ppo(monkeypatch, capsys):
    out = run("pendulum_lqr.py", ["--steps", "20480"], monkeypatch, capsys)
    falls = {name: int(count.replace(",", "")) for name, count in re.findall(r"(\w+): ([\d,]+) falls", out)}
    assert falls["ppo"] >= 100 and 10 * falls["safeexplorer"] <= falls["ppo"]


@pytest.mark.parametrize("name", ["jump_start.py", "state_shield.py", "emergency_stop.py", "tidy_table.py"])
def test_the_example_trains_both_methods(name, monkeypatch, capsys):
    out = run(name, ["--steps", "4096"], monkeypatch, capsys)
    assert re.search(r"^ppo: ", out, re.M) and re.search(r"^safeexplorer: ", out, re.M)


def test_a_campaign_over_an_own_environment_ends_in_a_table(tmp_path):
    words = ["--steps", "2048", "--seeds", "1", "--folder", str(tmp_path)]
    command = [sys.executable, EXAMPLES / "own_campaign.py", *words]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"ppo +\S 1 of 1", out) and re.search(r"safeexplorer +\S 1 of 1", out)


def test_a_model_with_predict_recovers_half_cheetah(monkeypatch, capsys):
    """Without torch: the example's import is answered by a model that stands still."""

    class SAC:
        def __init__(self, policy, env, seed):
            self.observation_space, self.action_space = env.observation_space, env.action_space

        def learn(self, steps, progress_bar):
            return self

        def predict(self, observation, deterministic):
            return np.zeros((len(observation), *self.action_space.shape), np.float32), None

    fake = ModuleType("stable_baselines3")
    fake.SAC = SAC
    monkeypatch.setitem(sys.modules, "stable_baselines3", fake)
    assert "falls" in run("sb3_recovery.py", ["--steps", "8192"], monkeypatch, capsys)


def test_the_fake_robot_learns_in_real_time_and_logs_it(monkeypatch, capsys, tmp_path):
    log = tmp_path / "robot.jsonl"
    out = run("fake_robot.py", ["--seconds", "2", "--log", str(log)], monkeypatch, capsys)
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[0] == "arm" and events[-1] == "disarm" and re.search(r"^\d+ falls, recovery", out, re.M)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_fits_on_a_page(path):
    assert len(path.read_text().splitlines()) <= LINES
