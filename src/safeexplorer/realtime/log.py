"""The log of a robot: JSON lines, append-only, written by a thread of its own so that no tick waits for a disk."""

import contextlib
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any


class EventLog:
    """`put` never blocks; what was put is on disk a moment later, and all of it after `close`."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._file = open(self.path, "a", encoding="utf-8")
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="robot-log", daemon=True)
        self._thread.start()

    def put(self, event: dict[str, Any]) -> None:
        """Have an event written."""
        self._queue.put(event)

    def check(self) -> None:
        """Raise if events could not be written."""
        if self._error is not None:
            raise OSError(f"{self.path} could not be written: {self._error}") from self._error

    def close(self) -> None:
        """Write what is left."""
        if self._file.closed:
            return
        self._queue.put(None)
        self._thread.join()
        with contextlib.suppress(OSError if self._error else ()):
            self._file.close()
        self.check()

    def _write(self) -> None:
        last = False
        while not last:
            events = [self._queue.get()]
            while not self._queue.empty():
                events.append(self._queue.get())
            last = None in events
            if self._error is None:
                try:
                    self._file.writelines(line(event) for event in events if event is not None)
                    self._file.flush()
                    os.fsync(self._file.fileno())
                except Exception as error:
                    self._error = error


def line(event: dict[str, Any]) -> str:
    """An event as a line of JSON; one that cannot be written is named with the reason."""
    try:
        return json.dumps(event, default=str) + "\n"
    except Exception as error:
        name = event.get("event") if isinstance(event, dict) else None
        known = name if isinstance(name, str) else None
        return json.dumps({"event": known, "unwritable": type(error).__name__}) + "\n"
