"""What is said to people on stderr. A reader that has gone, or a terminal that was closed, ends no work."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from rich.console import Console


class PatientStream:
    """Writes as long as somebody can be reached, then falls silent."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO | None):
        self.stream = stream

    def write(self, text: str) -> int:
        self._try(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(lambda stream: stream.flush())

    def isatty(self) -> bool:
        with contextlib.suppress(ValueError):  # of a closed file
            return self.stream is not None and self.stream.isatty()
        return False

    def fileno(self) -> int:
        return self.stream.fileno()

    def _try(self, call: Callable[[TextIO], Any]) -> None:
        if self.stream is None:
            return
        try:
            call(self.stream)
        except (OSError, ValueError):  # a pipe without a reader, a terminal that hung up, a closed file
            # What is still buffered must not fail at the exit.
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), self.stream.fileno())
            self.stream = None


def stderr_console() -> Console:
    """A console for people."""
    return Console(file=PatientStream(sys.stderr))


def notice(text: str) -> None:
    """A sentence as it is, unbroken."""
    stderr_console().print(text, highlight=False, markup=False, soft_wrap=True)
