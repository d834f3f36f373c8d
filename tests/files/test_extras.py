"""Without the extras: the class works, and a command that needs one says which in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BARE = """
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mujoco", "imageio", "matplotlib", "PIL"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
COMMAND = "from safeexplorer.cli import main; sys.exit(main())"
CLASS = """
import numpy as np
from safeexplorer import SafeExplorer, SafeRegion
agent = SafeExplorer(
    "CartPole-v1", recovery=lambda o: (o[:, 2] + o[:, 3] > 0).astype(int), num_envs=2, rollout_steps=32, epochs=1,
    minibatches=2, region=SafeRegion(distance=lambda o: np.abs(o[:, 2]), radius=0.1),
)
agent.learn(total_timesteps=128)
print(agent.predict(np.zeros((1, 4), np.float32))[0].shape)
"""


def without_extras(program: str, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", BARE + program, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_the_class_learns_on_any_environment():
    done = without_extras(CLASS)
    assert done.returncode == 0 and done.stdout.strip() == "(1,)", done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("train half_cheetah --method ppo --steps 8192 --out {}/run", "robots"),
        ("show go1 --out {}/go1.png", "robots"),
        ("recovery grade ant --resets 2", "robots"),
        ("render curves --runs results --figures {}", "plots"),
    ],
)
def test_a_command_says_which_extra_it_lacks(words, extra, tmp_path):
    done = without_extras(COMMAND, *words.format(tmp_path).split())
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and f"pip install safeexplorer[{extra}]" in done.stderr, done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "lock"] == []
