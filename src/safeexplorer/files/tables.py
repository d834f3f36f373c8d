"""Files that grow with a run, CSV tables above all. A checkpoint holds their length: a resumed run goes on there."""

import csv
import hashlib
import io
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from safeexplorer.files.writing import no_link

TAIL_BYTES = 4096  # longer than any row


class Mark(NamedTuple):
    """How far a file had grown when a checkpoint was saved, and what it held; older checkpoints do not know that."""

    offset: int = 0
    digest: str | None = None


BEGINNING = Mark()


class Growing:
    """A file that is only appended to, cut back to where a checkpoint left it."""

    def __init__(self, path: Path, mark: Mark = BEGINNING):
        self._file = open(path, "a+b", opener=no_link)
        try:
            self._hash = self._compare(path, mark)
        except ValueError:
            self._file.close()
            raise
        self._file.truncate(mark.offset)
        self._file.seek(mark.offset)

    def _compare(self, path: Path, mark: Mark) -> Any:
        """SHA-256 up to the mark, which must be that of the checkpoint."""
        length = self._file.seek(0, os.SEEK_END)
        if length < mark.offset:  # cutting it there would fill it up with zeros
            raise ValueError(f"{path} has {length} bytes; the checkpoint needs its first {mark.offset}")
        self._file.seek(0)
        found = hashlib.sha256(self._file.read(mark.offset))
        if mark.digest not in (None, found.hexdigest()):
            raise ValueError(
                f"{path} was changed: its first {mark.offset} bytes are not those of the checkpoint"
            )
        return found

    def write(self, data: bytes) -> None:
        """Append, visible to readers at once."""
        self._file.write(data)
        self._file.flush()
        self._hash.update(data)

    def digest(self) -> str:
        """SHA-256 of all of it."""
        return self._hash.hexdigest()

    def offset(self) -> int:
        """The length of the file, safely on disk."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


class Table(Growing):
    """A CSV file with fixed columns. Numbers are written so that they read back exactly; None is empty."""

    def __init__(self, path: Path, columns: list[str], mark: Mark = BEGINNING):
        if mark.offset and (other := sorted(set(header(path)) ^ set(columns))):
            raise ValueError(f"{path} was begun by a release with other columns: {', '.join(other)}")
        super().__init__(path, mark)
        self.columns = columns
        if mark.offset == 0:
            self._write_rows([columns])

    def append(self, *rows: dict[str, Any]) -> None:
        """Add rows; every column must be there."""
        self._write_rows([[row[column] for column in self.columns] for row in rows])

    def _write_rows(self, rows: list[list[Any]]) -> None:
        text = io.StringIO()
        cells = [[repr(float(x)) if isinstance(x, float) else x for x in row] for row in rows]
        csv.writer(text, lineterminator="\n").writerows(cells)
        self.write(text.getvalue().encode())


def header(path: Path) -> list[str]:
    """The names of the columns."""
    with open(path, encoding="utf-8") as file:
        return file.readline().strip().split(",")


def read_columns(path: Path) -> dict[str, np.ndarray]:
    """A CSV table by column; nan where empty. The last line of a killed run may be cut: it is left out."""
    with open(path, "rb") as file:
        names = file.readline().decode().strip().split(",")
        text = file.read()
    text = text[: text.rfind(b"\n") + 1]
    try:
        lines = text.decode().splitlines()
        if b",," in text or b",\n" in text:
            rows = [[float(cell or "nan") for cell in line.split(",")] for line in lines]
            table = np.array(rows).reshape(-1, len(names))
        else:
            table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.zeros((0, len(names)))
        return dict(zip(names, table.T, strict=True))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def last_row(path: Path) -> dict[str, float | None] | None:
    """The newest whole row, without reading the rest; None where there is none that can be read."""
    try:
        with open(path, "rb") as file:
            names = file.readline().decode().strip().split(",")
            start = file.tell()
            size = file.seek(0, 2)
            file.seek(max(start, size - TAIL_BYTES))
            values = file.read().split(b"\n")[-2].split(b",")
        return {name: float(value) if value else None for name, value in zip(names, values, strict=True)}
    except (OSError, ValueError, IndexError):
        return None
