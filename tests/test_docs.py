"""The pages name only files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page):
    named = re.findall(
        r"\b(?:src|tests|examples|oracles|docs|plugins)/[\w./-]*\w\.(?:py|md|json|xml)\b", page.read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []
