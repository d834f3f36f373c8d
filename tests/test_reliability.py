"""Every promise of docs/reliability.md names tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "reliability.md"
ROWS = [
    line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if " | `" in line
]


@pytest.mark.parametrize(("promise", "behind"), ROWS)
def test_the_tests_behind_a_promise_exist(promise, behind):
    for words in behind.split("; "):
        file, phrases = re.fullmatch(r"`([\w/]+\.py)`: (.+)", words).groups()
        names = re.findall(r"def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"))
        for phrase in phrases.split(", "):
            assert any(phrase.replace(" ", "_") in name for name in names), f"{file}: {phrase}"


def test_there_are_promises_of_every_kind():
    assert len(ROWS) > 30 and {"Survives", "Is noticed", "Is refused", "Is not promised"} <= set(
        re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
