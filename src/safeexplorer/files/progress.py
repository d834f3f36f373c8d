"""How far something long has come: a live bar, or a line printed now and then where there is no terminal."""

import time
from collections.abc import Iterable
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from safeexplorer.files.console import stderr_console

PRINT_SECONDS = 15.0


class BarAboveFacts(Progress):
    """Two lines, so that both are whole in 80 columns."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.fields["facts"], overflow="ellipsis", no_wrap=True)


class ProgressDisplay:
    """A bar over `total` steps, the speed and a few facts. A context manager, and a function to `watch` rows with."""

    waiting = ""  # what happens before the first row
    counted = "steps"  # the column of a row that the speed is measured by

    def __init__(self, label: str, total: int, console: Console | None = None):
        self.label, self.total, self.console = label, total, console or stderr_console()
        self.printed, self.began = 0.0, None
        self.progress = BarAboveFacts(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def facts(self, row: dict[str, Any]) -> list[str]:
        """What of a row to show."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.progress.start()
        self.task = self.progress.add_task(self.label, total=self.total, facts=self.waiting)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.console.is_terminal:  # else older releases of rich print an empty line
            self.progress.stop()

    def __call__(self, run: Any, row: dict[str, Any]) -> None:
        """Show one row; the last one is always printed."""
        now, count = time.perf_counter(), row[self.counted]
        if self.began is None or not count:  # what comes before the first row would spoil the speed
            self.began = now, count
        speed = (count - self.began[1]) / (now - self.began[0]) if now > self.began[0] else 0.0
        facts = "  ".join([f"{speed:,.0f} {self.counted}/s"] * (speed > 0) + self.facts(row))
        self.progress.update(self.task, completed=row["steps"], facts=facts)
        last = row["steps"] >= self.total
        if not self.console.is_terminal and (last or now - self.printed > PRINT_SECONDS):
            self.printed = now
            line = f"{self.label}  {row['steps']:>10,} steps  {facts}"
            self.console.print(line, soft_wrap=True)
