"""Training as a person watches it, and its end in a few lines."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.table import Table

from safeexplorer.files.progress import ProgressDisplay
from safeexplorer.runs.training import Training


class TrainingDisplay(ProgressDisplay):
    """Steps, speed, time left, return, falls, recovery rate and radius, as a `watch` function."""

    def __init__(self, label: str, total_steps: int, console: Console | None = None):
        super().__init__(label, total_steps, "compiling the update", console)
        self.began: tuple[float, int] | None = None

    def __call__(self, run: Training, row: dict[str, Any]) -> None:
        """Show one update."""
        now = time.perf_counter()
        if self.began is None:  # the first update compiles; it would spoil the speed
            self.began = now, row["steps"]
        facts = self.facts(row, self.speed(now, row["steps"]))
        self.show(row["steps"], facts, last=row["steps"] + run.settings.batch_size > self.total)

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
