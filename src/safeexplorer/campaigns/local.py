"""Runs as processes of this machine: one spawned process and one thread each."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from safeexplorer.campaigns.campaign import Outcome
from safeexplorer.files.trouble import MISTAKE
from safeexplorer.files.writing import no_link
from safeexplorer.runs.specs import RunSpec, command_words

IN_USE = "is in use by process"


class Attempt(NamedTuple):
    """A process and where its words in the log begin."""

    process: subprocess.Popen
    log: Path
    offset: int


class LocalEngine:
    """`safeexplorer train` in a process of its own, in a session of its own: Ctrl-C reaches the campaign alone."""

    def __init__(self, workers: int):
        if workers < 1:
            raise ValueError(f"--workers is {workers}; allowed: a whole number of at least 1")
        self.slots = workers

    def start(self, spec: RunSpec, folder: Path) -> Attempt:
        words = command_words(spec.settings, folder)
        no_stray_modules = "-P"  # of the working directory
        command = [sys.executable, no_stray_modules, "-m", "safeexplorer", *words]
        log = folder / "log.txt"
        with open(log, "ab", opener=no_link) as file:
            offset = file.tell()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        return Attempt(process, log, offset)

    def outcome(self, attempt: Attempt) -> Outcome | None:
        code = attempt.process.poll()
        if code is None:
            return None
        if code == 0:
            return Outcome()
        if code < 0:
            return Outcome(f"killed by signal {-code} ({signal.strsignal(-code) or 'without a name'})")
        words = last_line(attempt.log, attempt.offset) or f"exit code {code}"
        return Outcome(words, code == MISTAKE and IN_USE not in words)

    def stop(self, attempt: Attempt) -> None:
        attempt.process.terminate()

    def kill(self, attempt: Attempt) -> None:
        attempt.process.kill()

    def close(self) -> None:
        """Nothing outlives the processes."""


def last_line(log: Path, offset: int) -> str:
    """The last words of an attempt."""
    with open(log, "rb") as file:
        file.seek(offset)
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
