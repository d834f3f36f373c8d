"""Real runs as processes of this machine, killed at random and interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from records import read_table
from same_run import assert_same_run
from short_runs import UPDATES, short_runs

from safeexplorer.files.locks import is_held

RUNS = 5
COORDINATOR = """
import json, sys
from pathlib import Path
from safeexplorer.campaigns import Campaign, make_engine, make_jobs
from safeexplorer.runs.specs import run_spec
from safeexplorer.runs.settings import from_dict

specs = [run_spec(from_dict(values)) for values in json.loads(sys.argv[1])]
Campaign(make_jobs(specs, Path(sys.argv[2])), make_engine("local", 2)).run()
"""


def writers(root: Path) -> list[int]:
    """The processes that hold runs now."""
    if not root.is_dir():
        return []
    held = [folder for folder in root.iterdir() if is_held(folder)]
    return [int(text) for folder in held if (text := (folder / "lock").read_text().strip())]


@pytest.fixture
def start() -> Iterator[Callable[[Path], subprocess.Popen]]:
    """Starts campaigns of the short runs in a folder, two at a time; nothing of them outlives the test."""
    started = []

    def start_campaign(root: Path) -> subprocess.Popen:
        values = json.dumps([spec.settings.as_dict() for spec in short_runs(RUNS)])
        command = [sys.executable, "-c", COORDINATOR, values, str(root)]
        started.append((subprocess.Popen(command, start_new_session=True), root))
        return started[-1][0]

    yield start_campaign
    for process, root in started:
        process.kill()
        process.wait()
        for pid in writers(root):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def disturb(root: Path, start: Callable[[Path], subprocess.Popen]) -> int:
    """Kill workers and coordinators outright at random moments, give the command again each time; how many died."""
    chance, deaths = random.Random(6), 0
    process = start(root)
    for victim in ("worker", "coordinator", "worker", "coordinator", "worker"):
        pids: list[int] = []
        while process.poll() is None and not pids:
            time.sleep(chance.uniform(0.5, 2.0))
            pids = writers(root)
        if process.poll() is not None:
            break
        if victim == "worker":
            os.kill(chance.choice(pids), signal.SIGKILL)
        else:
            process.kill()
            process.wait()
            process = start(root)
        deaths += 1
    assert process.wait() == 0
    return deaths


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_go_two_at_a_time_and_end_the_same_when_killed_at_random(start, tmp_path):
    process, most = start(tmp_path / "whole"), 0
    while process.poll() is None:
        most = max(most, len(writers(tmp_path / "whole")))
        time.sleep(0.05)
    assert process.returncode == 0 and most == 2

    killed = tmp_path / "killed"
    assert disturb(killed, start) >= 3
    assert sorted(folder.name for folder in killed.iterdir()) == sorted(
        spec.name for spec in short_runs(RUNS)
    )
    for spec in short_runs(RUNS):
        assert_same_run(tmp_path / "whole" / spec.name, killed / spec.name)
        updates = [row["update"] for row in read_table(killed / spec.name / "metrics.csv")]
        assert updates == list(range(1, UPDATES + 1))


@pytest.mark.slow
def test_an_interrupt_leaves_everything_resumable(start, tmp_path):
    process = start(tmp_path)
    while not writers(tmp_path):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert not writers(tmp_path)
    assert not any(folder.joinpath("failure.json").exists() for folder in tmp_path.iterdir())
