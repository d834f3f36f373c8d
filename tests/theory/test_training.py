"""Verify exercises the code that trains: it holds, and a sample of mutations is caught (all: `make mutants`)."""

import mutants
import pytest

from safeexplorer.theory.training import training_checks

SAMPLE = ("the recovery is never executed", "r_term zeroed", "no stop-gradient", "safe region strict",
          "gate of SafeExplorer always on", "curriculum off by one")  # fmt: skip


def test_the_code_that_trains_agrees_with_arithmetic_by_hand():
    assert [check.statement for check in training_checks() if not check.passed] == []


def test_every_mutation_is_one_substitution_that_can_be_made():
    for what, file, text, instead in mutants.MUTANTS:
        code = (mutants.SOURCE / "safeexplorer" / file).read_text(encoding="utf-8")
        assert code.count(text) == 1 and text != instead, what


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", SAMPLE)
def test_a_mutation_is_caught(what):
    assert mutants.fails(next(mutant for mutant in mutants.MUTANTS if mutant[0] == what))
