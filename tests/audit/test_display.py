"""An audit as people see it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_agents import agent

from safeexplorer.audit.suggestions import RULES
from safeexplorer.cli import main

DOCS = Path(__file__).parents[2] / "docs"


def test_a_printed_audit_is_its_tables_in_80_columns_and_speaks_python(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = agent().audit(64)
    shown = str(found)
    assert shown == repr(found) and "under recovery" in shown and "angle to masked" in shown
    tables = [line for line in shown.splitlines() if line.startswith(("│", "┃", "┌", "┏"))]
    assert max(map(len, tables)) <= 80
    assert found.suggestions and "--" not in " ".join(s.setting for s in found.suggestions)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_advises_in_options_and_in_keywords(rule):
    assert "--" not in rule.keyword and "=" not in rule.option
    assert rule.keyword == rule.option or "--" in rule.option


def shape(text: str) -> list[str]:
    """Words without numbers, lines of frames and padding; whole numbers and fractions look alike."""
    plain = re.sub(r"-?[\d][\d.,]*", "#", re.sub(r"[^\x00-\x7f]+", " ", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.split()]


def test_the_example_in_the_docs_is_what_the_command_prints(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    page = (DOCS / "audit.md").read_text()
    command, example = re.search(r"^\$ safeexplorer (audit .*)\n((?:.*\n)*?)```$", page, re.M).groups()
    main(command.split())
    assert shape(capsys.readouterr().out) == shape(example)
