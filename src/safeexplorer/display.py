"""Training as a person watches it: one live line, or one printed line now and then where there is no terminal."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from safeexplorer.training import Training

PRINT_SECONDS = 15.0


class TrainingDisplay:
    """Steps, speed, time left, return, falls, recovery rate and radius. A context manager and a `watch` function."""

    def __init__(self, label: str, total_steps: int, console: Console | None = None):
        self.label, self.total, self.console = label, total_steps, console or Console(stderr=True)
        self.live = self.console.is_terminal
        self.began: tuple[float, int] | None = None
        self.printed = 0.0
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
            console=self.console,
            disable=not self.live,
        )

    def __enter__(self) -> TrainingDisplay:
        self.progress.start()
        self.task = self.progress.add_task(self.label, total=self.total, facts="compiling the update")
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()

    def __call__(self, run: Training, row: dict[str, Any]) -> None:
        """Show one update."""
        now = time.perf_counter()
        if self.began is None:  # the first update compiles; it would spoil the speed
            self.began = now, row["steps"]
        facts = self.facts(row, self.speed(now, row["steps"]))
        self.progress.update(self.task, completed=row["steps"], facts=facts)
        last = row["steps"] + run.settings.batch_size > self.total
        if not self.live and (last or now - self.printed > PRINT_SECONDS):
            self.printed = now
            self.console.print(
                f"{self.label}  {row['steps']:>10,} steps  {facts}", highlight=False, soft_wrap=True
            )

    def speed(self, now: float, steps: int) -> float | None:
        """Environment steps per second since the first update."""
        seconds = now - self.began[0]
        return (steps - self.began[1]) / seconds if seconds > 0 else None

    @staticmethod
    def facts(row: dict[str, Any], speed: float | None) -> str:
        """The numbers of one update in one line."""
        trailing, radius = row["return_trailing"], row["radius"]
        parts = [
            f"{speed:,.0f} steps/s" if speed else "",
            f"return {trailing:,.0f}" if trailing is not None else "no episode yet",
            f"falls {row['falls']:,}",
            f"recovery {row['recovery_rate']:.1%}",
            f"d {radius:.3f}" if radius is not None else "",
        ]
        return "  ".join(part for part in parts if part)


def summary_table(summary: dict[str, Any]) -> Table:
    """The end of a run in a few lines."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    reward = summary["final_reward"]
    rows = {
        "final reward": "no episode ended in the last 10%" if reward is None else f"{reward:,.0f}",
        "falls in training": f"{summary['falls']:,}",
        "episodes": f"{summary['episodes']:,}",
        "exits from the region": f"{summary['exits']:,}",
        "recovery rate": f"{summary['recovery_rate']:.1%} overall, {summary['recovery_rate_final']:.1%} at the end",
        "steps": f"{summary['steps']:,} in {summary['updates']:,} updates",
        "time": f"{summary['seconds']:,.0f} s, {summary['steps'] / summary['seconds']:,.0f} steps/s",
    }
    for name, text in rows.items():
        table.add_row(name, text)
    return table
