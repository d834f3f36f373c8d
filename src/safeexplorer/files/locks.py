"""One writer per run folder."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from safeexplorer.files.writing import no_link

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None


class RunInUse(OSError):
    """Another process holds the run directory."""


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold `folder` for this process alone: an operating-system lock, gone with the process."""
    if fcntl is None:
        raise OSError(
            "runs are kept on Linux and macOS, whose locks end with the process; on Windows use WSL"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+", encoding="utf-8", opener=no_link) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise RunInUse(f"{folder} is in use by process {file.read().strip() or 'unknown'}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_held(folder: Path) -> bool:
    """Does a process hold `folder` now?"""
    try:
        with open(folder / "lock", encoding="utf-8", opener=no_link) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is none, or it cannot be opened: whoever tries to hold the folder is told
        return False
    return False
