"""Settings are checked by their declarations."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import pytest

from safeexplorer.files.fields import check_fields, setting
from safeexplorer.pretraining.settings import RecoverySettings
from safeexplorer.runs.settings import Settings


@dataclass(frozen=True)
class Example:
    count: int = setting(3, "a count", 1)
    rate: float = setting(0.5, "a rate", above=0, at_most=1)
    share: float = setting(0.5, "a share", 0, 1)
    kind: str = setting("a", "a kind", choices=("a", "b"))
    flag: bool = setting(False, "a flag")
    hidden: tuple[int, ...] = setting((8,), "widths")
    limit: float | None = setting(None, "a limit", at_most=0)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("count", 0, "a whole number of at least 1"),
        ("count", 1.0, "a whole number of at least 1"),
        ("count", True, "a whole number of at least 1"),
        ("rate", 0.0, "a number above 0 and of at most 1"),
        ("rate", "0.1", "a number above 0 and of at most 1"),
        ("share", math.nan, "a number from 0 to 1"),
        ("kind", "c", "a, b"),
        ("flag", "yes", "True or False"),
        ("hidden", (8, 0), "1 to 16 widths from 1 to 8192"),
        ("hidden", (), "1 to 16 widths from 1 to 8192"),
        ("limit", 1, "a number of at most 0"),
        ("limit", -math.inf, "a number of at most 0"),
        ("count", None, "a whole number of at least 1"),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_line(name, value, allowed):
    with pytest.raises(ValueError) as error:
        check_fields(Example(**{name: value}))
    assert str(error.value) == f"{name} is {value!r}; allowed: {allowed}"


def test_what_is_allowed_passes():
    check_fields(Example(count=1, rate=1, share=0, kind="b", flag=True, hidden=(1, 2), limit=-3))


@pytest.mark.parametrize("record", [Settings, RecoverySettings])
def test_every_setting_has_help_and_an_allowed_default(record):
    assert all(f.metadata["help"] for f in fields(record))
    check_fields(record())
