"""Files that are written whole: a reader, or a killed process, sees the old content or the new, never half of it."""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

UNFINISHED = ".part"  # how names of files end that are being written


def no_link(path: str, flags: int) -> int:
    """For `open`: a symbolic link is not followed, so that nobody is led to write elsewhere."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "is a symbolic link, which is not followed", path) from None


@contextmanager
def replacing(path: Path, on_disk: bool = True) -> Iterator[BinaryIO]:
    """A file under a temporary name that takes the place of `path` once it is written and, unless it is one of many
    that may be lost with the power, on disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with open(temporary, "wb", opener=no_link) as file:
            yield file
            if on_disk:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if on_disk:
        fsync(path.parent)


def sweep(folder: Path) -> None:
    """Remove what processes that died while writing have left; for the one that holds the folder."""
    for left in folder.glob(f".*.[0-9]*{UNFINISHED}"):
        left.unlink()


def write_text(path: Path, text: str) -> None:
    """The whole content of a file."""
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: Path, values: Any) -> None:
    """Plain values, one per line."""
    write_text(path, json.dumps(values, indent=1))


def fsync(path: Path) -> None:
    """Force a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
