"""What the page shows, as plain values: the same grid, cells and curves that tables and figures are made of."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.learning.methods import SAFEEXPLORER, SAFEEXPLORER_AUTO
from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import PAPER_SEEDS, ROBOT_LABELS, Protocol
from safeexplorer.paper.grid import Cell, Grid, Group, Library, gather, millions
from safeexplorer.paper.palette import arm_colours
from safeexplorer.paper.series import envelope, on_grid, smooth
from safeexplorer.paper.sheet import caption_lines, lay_out
from safeexplorer.paper.statistics import improvement
from safeexplorer.report.groups import METHOD_LABELS, group_runs
from safeexplorer.runs.film import shows
from safeexplorer.runs.results import FAILED, Result
from safeexplorer.runs.summary import tidy

OURS = (SAFEEXPLORER.name, SAFEEXPLORER_AUTO.name)
CURVES = {"return": "return_trailing", "falls": "falls", "recovery": "recovery_rate", "radius": "radius"}
FILM_BYTES, ALL_FILM_BYTES = 3_000_000, 12_000_000
TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


def content(results: Sequence[Result], title: str) -> dict[str, Any]:
    """Everything on the page."""
    grid = group_runs(results)
    return {
        "title": title,
        "robots": [describe_robot(grid, robot) for robot in grid.robots],
        "groups": [describe_group(grid, group) for group in grid.groups.values()],
        "comparisons": [text for robot in grid.robots if (text := compare(grid, robot))],
        "runs": [describe_run(run) for run in results],
        "films": films(grid),
        "tables": tables(results),
    }


def describe_robot(grid: Grid, robot: str) -> dict[str, Any]:
    """Its name, how long its runs are, and the return that counts as success."""
    value, whose = grid.bars.get(robot, (None, None))
    return {
        "id": robot,
        "label": ROBOT_LABELS[robot],
        "bar": {"value": value, "of": whose} if whose else None,
        "steps": " and ".join(millions(steps) for steps in sorted(budgets(grid, robot))),
    }


def budgets(grid: Grid, robot: str) -> set[int]:
    """Steps of the runs on a robot."""
    return {
        spec.settings.steps for group in grid.groups.values() for spec in group.specs if group.robot == robot
    }


def describe_group(grid: Grid, group: Group) -> dict[str, Any]:
    """Statistics and averaged curves of one group."""
    label, robot, runs = group.arm.label, group.robot, group.finished
    cells = {
        name: grid.cell(label, robot, measure)
        for name, measure in (("reward", "final_reward"), ("falls", "falls"), ("success", "falls_to_success"))
    }
    curves = {name: curve(*on_grid(runs, column)) for name, column in CURVES.items()}
    steps, gaps = on_grid(runs, "gap", "evaluations")
    return {
        "robot": robot,
        "method": group.arm.method,
        "label": label,
        "colour": arm_colours(grid.artefact.arms)[label],
        "ours": group.arm.method in OURS and group.arm.plain,
        "dashed": group.arm.plain and group is not usual(grid, group),
        "finished": len(runs),
        "runs": len(group.runs),
        **{name: spread(cell) for name, cell in cells.items()},
        "reached": len(cells["success"].values),
        "curves": curves | {"gap": curve(steps, smooth(gaps))},
    }


def usual(grid: Grid, group: Group) -> Group:
    """Of the groups of a plain method on a robot: that with the robot's budget, else the longest."""
    same = [
        other for other in grid.groups.values()
        if other.arm.plain and (other.robot, other.arm.method) == (group.robot, group.arm.method)
    ]  # fmt: skip
    return next((other for other in same if "steps" not in other.arm.changes), same[0])


def spread(cell: Cell) -> dict[str, Any] | None:
    """Every value, mean, deviation, interquartile mean and its interval, where there is one."""
    if not cell.values:
        return None
    numbers = dict(zip(("mean", "deviation"), cell.summary, strict=True))
    numbers |= dict(zip(("iqm", "low", "high"), cell.interval, strict=True))
    return {name: tidy(value) for name, value in numbers.items()} | {"values": [tidy(x) for x in cell.values]}


def curve(steps: np.ndarray, rows: np.ndarray) -> dict[str, list] | None:
    """Steps, mean, smallest and largest over the runs."""
    found = envelope(steps, rows)
    if found is None:
        return None
    lines = zip(("x", "y", "low", "high"), found, strict=True)
    return {name: [tidy(x, 5) for x in line.tolist()] for name, line in lines}


def compare(grid: Grid, robot: str) -> dict[str, Any] | None:
    """SafeExplorer beside PPO in numbers that were counted: the first groups of both on this robot."""
    first: dict[str, Group] = {}
    for group in grid.groups.values():
        if group.robot == robot and group.finished:
            first.setdefault(group.arm.method, group)
    ours = next((method for method in OURS if method in first), None)
    if ours is None or "ppo" not in first:
        return None
    pair = [first[ours], first["ppo"]]
    sides = [
        {
            "label": METHOD_LABELS.get(group.arm.method, group.arm.label)
            if group.arm.plain
            else group.arm.label,
            "falls": spread(grid.cell(group.arm.label, robot, "falls")),
            "reward": spread(grid.cell(group.arm.label, robot, "final_reward")),
            "steps": sum(run.numbers["steps"] for run in group.finished),
        }
        for group in pair
    ]
    rewards = [side["reward"]["values"] if side["reward"] else [] for side in sides]
    pairs = len(rewards[0]) * len(rewards[1])
    won = improvement(*rewards) * pairs if min(map(len, rewards)) > 1 else None  # one run shows no chance
    return {"robot": ROBOT_LABELS[robot], "ours": sides[0], "theirs": sides[1], "pairs": pairs, "won": won}


def later_versions(run: Result) -> dict[str, Any]:
    """Of a run that went on under other versions than it began with."""
    return {f"from update {s['update'] + 1} on": s["provenance"] for s in run.stretches[1:]}


def describe_run(run: Result) -> dict[str, Any]:
    """One line of the list of runs, and what unfolds under it."""
    s = run.spec.settings
    return {
        "name": run.name,
        "robot": ROBOT_LABELS[s.subject],
        "method": METHOD_LABELS.get(s.method, s.method),
        "seed": s.seed,
        "steps": s.steps,
        "status": run.status,
        "done": tidy(run.share_done),
        "error": run.error if run.status == FAILED else None,
        "reward": run.numbers.get("final_reward"),
        "falls": run.numbers.get("falls"),
        "seconds": run.numbers.get("seconds"),
        "settings": s.as_dict(),
        "provenance": run.provenance | {"recovery": run.recovery, "key": run.spec.key} | later_versions(run),
    }


def films(grid: Grid) -> list[dict[str, str]]:
    """The films that lie in the run folders, small ones, until the page would grow too large."""
    found, total = [], 0
    for group, run in [(every, run) for every in grid.groups.values() for run in every.runs]:
        for path in sorted(run.folder.iterdir()) if run.folder else ():
            size = path.stat().st_size if (what := shows(path)) else 0
            if size and size <= FILM_BYTES and total + size <= ALL_FILM_BYTES:
                total += size
                label = f"{ROBOT_LABELS[group.robot]}, {group.arm.label}, seed {run.spec.settings.seed}"
                found.append({"label": f"{label}: {what}", "source": data_address(path)})
    return found


def data_address(path: Path) -> str:
    return f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def tables(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Every table of the paper for which there is a run, ours above theirs; `whole` if one has the paper's budget."""
    library, found = Library(results), []
    seeds = max((run.spec.settings.seed for run in results), default=1)
    for artefact in (artefact for artefact in ARTEFACTS.values() if artefact.kind == "table"):
        sheet = lay_out(gather(artefact, library, Protocol(seeds=min(seeds, PAPER_SEEDS))))
        filled = [cell for row in sheet.rows for cell in row.cells if cell.values]
        if not filled:
            continue
        best = [[(i, j) in sheet.best for j in range(len(sheet.columns))] for i in range(len(sheet.rows))]
        rows = [
            {"label": row.label, "ours": row.ours, "theirs": row.theirs, "best": marks}
            for row, marks in zip(sheet.rows, best, strict=True)
        ]
        found.append(
            {"name": artefact.name, "title": artefact.title, "caption": " ".join(caption_lines(sheet)),
             "headings": sheet.headings, "rows": rows, "notes": sheet.notes,
             "whole": any(cell.steps is None for cell in filled)}
        )  # fmt: skip
    return found
