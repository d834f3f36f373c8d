"""Signals that end a process at once, and would leave a robot with its last command."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

DEADLY = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class DeadlySignals:
    """While caught, SIGTERM, SIGHUP and SIGQUIT first call `before` and then end the process as they would have.

    A handler of somebody else's is left alone; only the main thread can catch signals.
    """

    def __init__(self, before: Callable[[], None]):
        self.before, self.caught = before, set()

    def catch(self) -> None:
        """From now on."""
        if threading.current_thread() is threading.main_thread():
            for number in DEADLY:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, self._die)
                    self.caught.add(number)

    def let_go(self) -> None:
        """No longer."""
        if threading.current_thread() is threading.main_thread():
            for number in self.caught:
                if signal.getsignal(number) == self._die:
                    signal.signal(number, signal.SIG_DFL)
            self.caught.clear()

    def _die(self, number: int, frame: Any) -> None:
        with contextlib.suppress(Exception):
            self.before()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
