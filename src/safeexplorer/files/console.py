"""What is said to people on stderr. A reader that has gone, or a terminal that was closed, ends no work."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO
from unicodedata import category

from rich.console import Console
from rich.segment import Segment


class PatientStream:
    """Writes as long as somebody can be reached, then falls silent."""

    def __init__(self, stream: TextIO | None):
        self.stream, self.encoding = stream, getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        known = text.encode(self.encoding, "replace").decode(self.encoding)
        self._try(lambda stream: stream.write(known))
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
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "w", encoding="utf-8") as nowhere:
                os.dup2(nowhere.fileno(), self.stream.fileno())
            self.stream = None


class PlainConsole(Console):
    """Texts as they are: brackets are no markup, and what would steer the terminal is made visible."""

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def visible(text: str) -> str:
    """Control characters, terminal escapes among them, written as \\x1b and the like."""
    if text.isprintable():
        return text
    steers = (
        c if c in "\n\t" or category(c)[0] != "C" else c.encode("unicode_escape").decode() for c in text
    )
    return "".join(steers)


def lead_closed_streams_nowhere() -> None:
    """Standard streams that were closed: else the next file to be opened would get what libraries print there."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def stderr_console() -> Console:
    """A console for people."""
    return PlainConsole(file=PatientStream(sys.stderr))


def notice(text: str) -> None:
    """A sentence as it is, unbroken."""
    stderr_console().print(text, soft_wrap=True)
