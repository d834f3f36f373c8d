"""`safeexplorer feasibility`: do the constrained methods end within the limit they were given?"""

import argparse
from typing import Any

from rich.table import Table

from safeexplorer.commands.options import add, add_json, emit, named_path
from safeexplorer.paper.feasibility import feasibility
from safeexplorer.paper.measures import MEASURES
from safeexplorer.paper.sheet import number_text
from safeexplorer.runs.results import load_results


def add_feasibility(parser: argparse.ArgumentParser) -> None:
    text = "run folders or result files of constrained methods"
    add(parser, "runs", text, named_path, nargs="+", metavar="RUN")
    add_json(parser)


def feasibility_command(args: argparse.Namespace) -> int:
    rows = feasibility(load_results(args.runs))
    return emit(args, rows, as_table(rows))


def as_table(rows: list[dict[str, Any]]) -> Table:
    """Cost against limit, ours and the paper's."""
    table = Table(title="Cost per episode over the last 5% of training")
    for column in ("robot", "method", "cost", "limit", "seeds", "at the end", "within", "paper"):
        table.add_column(column, justify="left" if column in ("robot", "method", "cost") else "right")
    form = MEASURES["final_cost"].form
    for row in rows:
        ours = None if row["cost"] is None else (row["cost"], row["deviation"])
        within = {None: "-", True: "yes", False: "no"}[row["feasible"]]
        head = (row["robot"], row["method"], row["cost_kind"], f"{row['limit']:g}", str(row["seeds"]))
        table.add_row(*head, number_text(ours, form), within, number_text(row["paper"], form))
    return table
