"""How far something long has come: a live bar, or a line printed now and then where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

PRINT_SECONDS = 15.0


class BarAboveFacts(Progress):
    """Two lines, so that both are whole in 80 columns."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        for task in self.tasks:
            yield Text(task.fields["facts"], overflow="ellipsis", no_wrap=True)


class ProgressDisplay:
    """A bar over `total` steps and a few facts. A context manager."""

    def __init__(self, label: str, total: int, first_facts: str, console: Console | None = None):
        self.label, self.total, self.first_facts = label, total, first_facts
        self.console = console = console or Console(stderr=True)
        self.printed = 0.0
        self.progress = BarAboveFacts(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self.progress.start()
        self.task = self.progress.add_task(self.label, total=self.total, facts=self.first_facts)
        return self

    def __exit__(self, *_: Any) -> None:
        self.progress.stop()

    def show(self, steps: int, facts: str, last: bool = False) -> None:
        """So many steps are done; the last line is always printed."""
        self.progress.update(self.task, completed=steps, facts=facts)
        now = time.perf_counter()
        if not self.console.is_terminal and (last or now - self.printed > PRINT_SECONDS):
            self.printed = now
            line = f"{self.label}  {steps:>10,} steps  {facts}"
            self.console.print(line, highlight=False, soft_wrap=True)
