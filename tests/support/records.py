"""The tables of a run as a test reads them: row by row, with Python's own reader."""

from __future__ import annotations

import csv
from pathlib import Path


def read_table(path: Path) -> list[dict[str, float | None]]:
    """Numbers, None where empty."""
    with open(path, newline="") as file:
        return [{k: float(v) if v else None for k, v in row.items()} for row in csv.DictReader(file)]
