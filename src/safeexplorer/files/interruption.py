"""Being asked to stop, without losing the work."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Stopped(Exception):
    """The run was asked to stop; its checkpoint is on disk."""


class stop_requests:
    """While active, SIGTERM and SIGINT set an event instead of killing; a second SIGINT kills."""

    def __enter__(self) -> threading.Event:
        self.event = threading.Event()
        self.previous = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.previous[number] = signal.signal(number, self._ask)
        return self.event

    def _ask(self, number: int, frame: Any) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)
