"""Being asked to stop, without losing the work."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ENDING = (signal.SIGTERM, signal.SIGHUP)


class Stopped(Exception):
    """The run was asked to stop; its checkpoint is on disk."""


class stop_requests:
    """While active, SIGTERM, SIGINT and SIGHUP set an event instead of killing; a second one kills."""

    def __enter__(self) -> threading.Event:
        self.event = threading.Event()
        self.previous = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *ENDING):
                if signal.getsignal(number) == signal.SIG_IGN:  # started with nohup
                    continue
                self.previous[number] = signal.signal(number, self._ask)
        return self.event

    def _ask(self, number: int, frame: Any) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)


@contextmanager
def interrupting(*numbers: signal.Signals) -> Iterator[None]:
    """These signals raise KeyboardInterrupt, whatever they do otherwise, unless they are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    previous = {number: signal.signal(number, signal.default_int_handler) for number in heard}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
