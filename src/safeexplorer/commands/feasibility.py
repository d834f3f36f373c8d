"""`safeexplorer feasibility`: do the constrained methods end within the limit they were given?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from safeexplorer.commands.options import add_json, emit
from safeexplorer.learning.methods import CONSTRAINED
from safeexplorer.paper.measures import MEASURES
from safeexplorer.paper.sheet import number_text
from safeexplorer.paper.statistics import mean_and_deviation
from safeexplorer.paper.tables import FEASIBILITY
from safeexplorer.runs.results import Result, load_results

PAPER = {
    (robot, arm.method): FEASIBILITY.paper[arm.label, robot, "final_cost"]
    for arm in FEASIBILITY.arms
    for robot in FEASIBILITY.robots
}
PAPER_LIMIT = ("fall", 0.05)


def add_feasibility(parser: argparse.ArgumentParser) -> None:
    """`feasibility RUN...`."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="run folders or result files of constrained methods"
    )
    add_json(parser)
    parser.set_defaults(run=feasibility_command)


def feasibility_command(args: argparse.Namespace) -> int:
    rows = feasibility(load_results(args.runs))
    return emit(args, rows, as_table(rows))


def feasibility(runs: Iterable[Result]) -> list[dict[str, Any]]:
    """One row per robot, method, cost and limit: the cost at the end over the runs (seeds) that share them."""
    groups: dict[tuple, list[Result]] = {}
    for run in runs:
        s = run.spec.settings
        if s.method not in CONSTRAINED:
            known = ", ".join(CONSTRAINED)
            raise ValueError(f"{run.name} is a run of {s.method}; a budget of cost have: {known}")
        groups.setdefault((s.robot, s.method, s.cost, s.cost_limit), []).append(run)
    return [summarise(*key, found) for key, found in sorted(groups.items())]


def summarise(robot: str, method: str, cost: str, limit: float, runs: list[Result]) -> dict[str, Any]:
    """Mean and sample deviation over seeds, beside the limit and the paper's numbers."""
    known = [x for run in runs if (x := MEASURES["final_cost"].value(run)) is not None]
    mean, deviation = mean_and_deviation(known) if known else (None, None)
    return {
        "robot": robot,
        "method": method,
        "cost_kind": cost,
        "limit": limit,
        "seeds": len(runs),
        "unfinished": len(runs) - len(known),
        "cost": mean,
        "deviation": deviation,
        "feasible": None if mean is None else mean <= limit,
        "paper": PAPER.get((robot, method)) if (cost, limit) == PAPER_LIMIT else None,
    }


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
