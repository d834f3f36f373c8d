"""`safeexplorer feasibility`: do the constrained methods end within the limit they were given?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from safeexplorer.learning.methods import CONSTRAINED
from safeexplorer.runs.recording import read_table

FINAL_SHARE = 0.05  # of training, at its end
# Converged episodic cost of the paper (mean, deviation over seeds), against a limit of 0.05.
PAPER = {
    ("half_cheetah", "cpo"): (0.007, 0.011),
    ("ant", "cpo"): (0.103, 0.029),
    ("go1", "cpo"): (0.956, 0.025),
    ("half_cheetah", "ppo_lagrangian"): (0.001, 0.001),
    ("ant", "ppo_lagrangian"): (0.326, 0.177),
    ("go1", "ppo_lagrangian"): (0.377, 0.126),
}


def add_feasibility(parser: argparse.ArgumentParser) -> None:
    """`feasibility RUN...`."""
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="run folders of constrained methods"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=feasibility_command)


def feasibility_command(args: argparse.Namespace) -> int:
    rows = feasibility(args.runs)
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        Console().print(as_table(rows))
    return 0


def feasibility(runs: list[Path]) -> list[dict[str, Any]]:
    """One row per robot, method, cost and limit: the converged cost over the runs (seeds) that share them."""
    groups: dict[tuple, list[float | None]] = {}
    for folder in runs:
        settings = run_settings(folder)
        key = tuple(settings[name] for name in ("robot", "method", "cost", "cost_limit"))
        groups.setdefault(key, []).append(converged_cost(folder))
    return [summarise(*key, costs) for key, costs in sorted(groups.items())]


def run_settings(folder: Path) -> dict[str, Any]:
    """The settings of a constrained run."""
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no run: there is no run.json in it")
    settings = json.loads(path.read_text())["settings"]
    if settings["method"] not in CONSTRAINED:
        known = ", ".join(CONSTRAINED)
        raise ValueError(f"{folder} holds a run of {settings['method']}; a budget of cost have: {known}")
    return settings


def converged_cost(folder: Path) -> float | None:
    """Mean cost of the episodes that ended in the last 5% of training; None if none did."""
    updates = json.loads((folder / "run.json").read_text())["updates"]
    rows = read_table(folder / "metrics.csv")
    begin = (1.0 - FINAL_SHARE) * updates
    last = [row for row in rows if row["update"] > begin]
    before = max((row["episodes"] for row in rows if row["update"] <= begin), default=0)
    ended = last[-1]["episodes"] - before if last else 0
    return sum(row["cost_ended"] for row in last) / ended if ended else None


def summarise(robot: str, method: str, cost: str, limit: float, costs: list[float | None]) -> dict[str, Any]:
    """Mean and sample deviation over seeds, beside the limit and the paper's numbers."""
    known = [c for c in costs if c is not None]
    mean = float(np.mean(known)) if known else None
    paper = PAPER.get((robot, method)) if (cost, limit) == ("fall", 0.05) else None
    return {
        "robot": robot,
        "method": method,
        "cost_kind": cost,
        "limit": limit,
        "seeds": len(costs),
        "unfinished": len(costs) - len(known),
        "cost": mean,
        "deviation": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "feasible": None if mean is None else mean <= limit,
        "paper": None if paper is None else list(paper),
    }


def as_table(rows: list[dict[str, Any]]) -> Table:
    """Cost against limit, ours and the paper's."""
    table = Table(title="Converged cost per episode (last 5% of training)")
    for column in ("robot", "method", "cost", "limit", "seeds", "converged", "within", "paper"):
        table.add_column(column, justify="left" if column in ("robot", "method", "cost") else "right")
    for row in rows:
        table.add_row(
            row["robot"],
            row["method"],
            row["cost_kind"],
            f"{row['limit']:g}",
            str(row["seeds"]),
            spread(row["cost"], row["deviation"]),
            {None: "-", True: "yes", False: "no"}[row["feasible"]],
            spread(*(row["paper"] or (None, None))),
        )
    return table


def spread(mean: float | None, deviation: float | None) -> str:
    """mean +- deviation."""
    if mean is None:
        return "-"
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} +- {deviation:.3f}"
