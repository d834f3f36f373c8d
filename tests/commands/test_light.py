"""Commands that only read results load neither the learner, nor the simulator, nor what draws."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("jax", "optax", "mujoco", "matplotlib", "imageio", "PIL")
RUN = f"""
import contextlib, io, sys
from safeexplorer.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass  # --help
print(*(name for name in {HEAVY} if name in sys.modules))
"""


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "robots",
        "paper --runs results",
        "render main-results --runs results",
        "report results",
        "collect results",
    ],
)
def test_reading_results_is_light(words, tmp_path):
    out = ["--out", str(tmp_path / "out")] if words.split()[0] in ("report", "collect") else []
    command = [sys.executable, "-c", RUN, *words.split(), *out]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split() == []
