"""`safeexplorer verify` prints every check and fails if one does."""

import json

import numpy as np
import pytest

from safeexplorer.cli import build_parser
from safeexplorer.commands import verify
from safeexplorer.theory.check import Check


@pytest.mark.parametrize(("measured", "code"), [(0.5, 0), (1.5, 1), (np.nan, 1)])
def test_verify_command(monkeypatch, capsys, measured, code):
    check = Check("Theorem 0", "|E[x] - 1|", np.float64(measured), "<=", 1.0, {"variance": 2.0})
    monkeypatch.setattr(verify, "all_checks", lambda: [check])
    args = build_parser("verify").parse_args(["verify"])
    assert args.run(args) == code
    printed = capsys.readouterr().out
    assert "|E[x] - 1|" in printed
    assert "variance 2" in printed
    assert f"{1 - code} of 1 checks hold" in printed
    args = build_parser("verify").parse_args(["verify", "--json"])
    assert args.run(args) == code
    assert json.loads(capsys.readouterr().out) == [check.as_dict()]
