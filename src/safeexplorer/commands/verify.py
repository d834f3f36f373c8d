"""`safeexplorer verify`: run every check and print what it measured."""

import argparse

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from safeexplorer.commands.options import emit
from safeexplorer.theory import all_checks
from safeexplorer.theory.check import Check


def table_of(checks: list[Check]) -> Table:
    """One row per check: where the paper says it, what was measured, further numbers, and the verdict."""
    table = Table("claim, and what is measured", "value", "must be", "holds", box=SIMPLE_HEAD)
    for check in checks:
        text = Text(check.claim, "bold").append(f": {check.statement}", "not bold")
        if check.numbers:
            further = ", ".join(f"{name} {x:.3g}" for name, x in check.numbers.items())
            text.append(f" ({further})", "not bold dim")
        verdict = Text("yes") if check.passed else Text("NO", "bold red")
        table.add_row(text, f"{check.measured:.2g}", f"{check.relation} {check.bound:.2g}", verdict)
    return table


def verify_command(args: argparse.Namespace) -> int:
    """Print all checks, as a table or as JSON; 1 if one fails."""
    checks = all_checks()
    failed = [check for check in checks if not check.passed]
    verdict = f"{len(checks) - len(failed)} of {len(checks)} checks hold"
    emit(args, [check.as_dict() for check in checks], table_of(checks), verdict)
    return 1 if failed else 0
