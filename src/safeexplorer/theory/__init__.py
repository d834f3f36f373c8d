"""The paper's theory as executable checks on exact small processes (`safeexplorer verify`)."""

from safeexplorer.theory.check import Check
from safeexplorer.theory.first_exit import first_exit_checks
from safeexplorer.theory.gap import gap_checks
from safeexplorer.theory.gradient import gradient_checks
from safeexplorer.theory.recovery_value import value_checks
from safeexplorer.theory.training import training_checks
from safeexplorer.theory.update import update_checks

__all__ = ["Check", "all_checks"]


def all_checks() -> list[Check]:
    """Every check, in the order of the paper."""
    exact = [*gradient_checks(), *gap_checks(), *first_exit_checks(), *value_checks()]
    return [*exact, *update_checks(), *training_checks()]
