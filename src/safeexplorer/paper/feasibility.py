"""Do the constrained methods end within the limit they were given? Of any of their runs, at any cost and limit."""

from collections.abc import Iterable
from typing import Any

from safeexplorer.learning.methods import CONSTRAINED
from safeexplorer.paper.artefact import ARTEFACTS
from safeexplorer.paper.measures import MEASURES
from safeexplorer.runs.results import Result
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.summary import mean_and_deviation

FEASIBILITY = ARTEFACTS["cmdp-feasibility"]
PAPER = {
    (robot, arm.method): FEASIBILITY.paper[arm.label, robot, "final_cost"]
    for arm in FEASIBILITY.arms
    for robot in FEASIBILITY.robots
}
PAPER_LIMIT = (Settings.cost, Settings.cost_limit)


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
