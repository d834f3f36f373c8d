"""A campaign as a person watches it: one line per run at work, and how many wait, finished or failed."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from safeexplorer.campaigns.campaign import ELSEWHERE, FAILED, FINISHED, RUNNING, WAITING, Job
from safeexplorer.files.console import stderr_console
from safeexplorer.files.tables import last_row

REFRESH_SECONDS = 0.5
PRINT_SECONDS = 60.0


class Overview:
    """A context manager and a `watch` function. Without a terminal it prints what changes."""

    def __init__(self, console: Console | None = None):
        self.console = console or stderr_console()
        self.live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self.shown = self.printed = 0.0
        self.states: dict[str, str] = {}
        self.starts: dict[tuple[str, int], tuple[float, float]] = {}  # (run, attempt) -> (time, steps)

    def __enter__(self) -> Overview:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, jobs: list[Job]) -> None:
        now = time.perf_counter()
        if self.live and now - self.shown > REFRESH_SECONDS:
            self.shown = now
            self.live.update(self.table(jobs, now), refresh=True)
        self.say_changes(jobs)
        if not self.live and now - self.printed > PRINT_SECONDS:
            self.printed = now
            self.console.print(f"{self.counts(jobs)}; {self.share(jobs):.0%} of all updates are made")

    def say_changes(self, jobs: list[Job]) -> None:
        """A line for each run that finished, failed or is tried again."""
        for job in jobs:
            before, self.states[job.spec.key] = self.states.get(job.spec.key, job.state), job.state
            if before == job.state or job.state == RUNNING:
                continue
            words = {FINISHED: "finished", FAILED: "failed", WAITING: "ended early, will be tried again",
                     ELSEWHERE: "is in the hands of another process"}[job.state]  # fmt: skip
            detail = f": {job.error}" if job.error and job.state in (FAILED, WAITING) else ""
            self.console.print(f"{job.spec.label} {words}{detail}", soft_wrap=True)

    def table(self, jobs: list[Job], now: float) -> Group:
        table = Table(
            "run", "progress", "", "steps/s", "return", "falls", "recovery", box=None, pad_edge=False
        )
        for job in [job for job in jobs if job.state in (RUNNING, ELSEWHERE)][:40]:
            row, total = last_row(job.folder / "metrics.csv"), job.spec.settings.updates
            if row is None or any(row.get(name) is None for name in ("steps", "update", "falls")):
                table.add_row(Text(job.spec.label), ProgressBar(1, 0, 20), "", "starting", "", "", "")
                continue
            began = self.starts.setdefault((job.spec.key, job.attempts), (now, row["steps"]))
            elapsed = now - began[0]
            speed = f"{(row['steps'] - began[1]) / elapsed:,.0f}" if elapsed > 2 else ""
            table.add_row(
                Text(job.spec.label),
                ProgressBar(total, row["update"], 20),
                f"{row['update'] / total:.0%}",
                speed,
                "" if row.get("return_trailing") is None else f"{row['return_trailing']:,.0f}",
                f"{row['falls']:,.0f}",
                "" if row.get("recovery_rate") is None else f"{row['recovery_rate']:.0%}",
            )
        return Group(table, Text(self.counts(jobs), style="bold"))

    @staticmethod
    def share(jobs: list[Job]) -> float:
        """How much of the work is done."""
        rows = [last_row(job.folder / "metrics.csv") or {} for job in jobs]
        done = sum(row.get("update") or 0.0 for row in rows)
        return done / sum(job.spec.settings.updates for job in jobs)

    @staticmethod
    def counts(jobs: list[Job]) -> str:
        """How many are where."""
        tally = Counter(job.state for job in jobs)
        order = (FINISHED, RUNNING, ELSEWHERE, WAITING, FAILED)
        return f"{len(jobs)} runs: " + ", ".join(f"{tally[state]} {state}" for state in order if tally[state])
