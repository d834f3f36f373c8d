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


def test_a_transition_is_followed_in_at_most_fifteen_hops_each_a_function_that_exists():
    hops = re.findall(
        r"^\| \d+ \| `([\w/]+\.py): (\w+)`", (ROOT / "docs" / "architecture.md").read_text(), re.M
    )
    assert 10 <= len(hops) <= 15 and len(set(hops)) == len(hops)
    for file, name in hops:
        source = (ROOT / "src" / "safeexplorer" / file).read_text()
        assert re.search(rf"^\s*(?:def|class) {name}\(", source, re.M), f"{file}: {name}"
