"""What the page shows, as plain values: runs in groups of equal settings, their statistics, curves and tables."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import ROBOT_LABELS, Protocol
from safeexplorer.paper.curves import on_grid, smooth
from safeexplorer.paper.figures import SAMPLED
from safeexplorer.paper.grid import SEED, SUCCESS_SHARE, Library, gather
from safeexplorer.paper.palette import COLOURS, MORE_COLOURS
from safeexplorer.paper.sheet import caption_lines, has_paper, lay_out
from safeexplorer.paper.statistics import bootstrap, mean_and_deviation, probability_of_improvement
from safeexplorer.paper.tables import MAIN, SOFT_VARIANTS
from safeexplorer.runs.results import FAILED, Result
from safeexplorer.runs.summary import tidy

METHOD_LABELS = {arm.method: arm.label for arm in (*SAMPLED, *SOFT_VARIANTS.arms, *MAIN)} | {
    "dagger": "DAgger"
}
BAR_METHODS = {arm.method for arm in MAIN}
FILMS = ("film.mp4", "film.gif")
FILM_BYTES, ALL_FILM_BYTES = 3_000_000, 12_000_000
TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


def content(results: Sequence[Result], title: str) -> dict[str, Any]:
    """Everything on the page."""
    groups = group_runs(results)
    bars = {robot: success_bar(groups, robot) for robot in ROBOT_LABELS}
    robots = [robot for robot in ROBOT_LABELS if any(g["robot"] == robot for g in groups)]
    return {
        "title": title,
        "robots": [{"id": robot, "label": ROBOT_LABELS[robot], "bar": bars[robot]} for robot in robots],
        "groups": [describe_group(group, bars[group["robot"]]) for group in groups],
        "comparisons": [text for robot in robots if (text := compare(groups, robot))],
        "runs": [describe_run(run) for run in results],
        "films": films(results),
        "tables": tables(results),
    }


# -- groups ------------------------------------------------------------------------------------------------


def group_runs(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Runs that differ in their seed alone, in the order of the method table; each group has a name and a colour."""
    found: dict[tuple, dict[str, Any]] = {}
    for run in results:
        identity = run.spec.identity
        key = tuple(sorted((k, str(v)) for k, v in identity.items() if k != "seed"))
        settings = run.spec.settings
        group = found.setdefault(key, {"robot": settings.robot, "method": settings.method, "runs": []})
        group["runs"].append(run)
    for group in found.values():
        group["extra"] = group["runs"][0].spec.label.split(" ", 4)[4:]  # after robot, method, "seed", number
    order = list(COLOURS), list(ROBOT_LABELS)
    groups = sorted(
        found.values(),
        key=lambda g: (order[1].index(g["robot"]), order[0].index(g["method"]), bool(g["extra"])),
    )
    name_groups(groups)
    return groups


def name_groups(groups: list[dict[str, Any]]) -> None:
    """The method's name and colour, and the settings that tell a group from the plain method."""
    used: dict[str, int] = {}
    for group in groups:
        label = METHOD_LABELS.get(group["method"], group["method"])
        group["label"] = f"{label} ({group['extra'][0]})" if group["extra"] else label
        group["colour"] = COLOURS[group["method"]]
        if group["extra"]:
            place = used[group["robot"]] = used.get(group["robot"], -1) + 1
            group["colour"] = MORE_COLOURS[place % len(MORE_COLOURS)]


def finished(group: dict[str, Any]) -> list[Result]:
    return [run for run in group["runs"] if run.finished]


def success_bar(groups: list[dict[str, Any]], robot: str) -> dict[str, Any] | None:
    """80% of the best mean final reward on this robot, and whose it is."""
    best: tuple[float, str] | None = None
    for group in groups:
        rewards = values(finished(group), "final_reward")
        if group["robot"] == robot and group["method"] in BAR_METHODS and rewards:
            best = max(filter(None, [best, (float(np.mean(rewards)), group["label"])]))
    return {"value": tidy(SUCCESS_SHARE * best[0]), "of": best[1]} if best else None


def values(runs: Iterable[Result], name: str) -> list[float]:
    return [run.numbers[name] for run in runs if run.numbers.get(name) is not None]


def describe_group(group: dict[str, Any], bar: dict[str, Any] | None) -> dict[str, Any]:
    """Statistics and averaged curves of one group."""
    runs = finished(group)
    success = [run.falls_to(bar["value"]) for run in runs] if bar else []
    return {
        "robot": group["robot"],
        "method": group["method"],
        "label": group["label"],
        "colour": group["colour"],
        "ours": group["method"] == "safeexplorer" and not group["extra"],
        "finished": len(runs),
        "runs": len(group["runs"]),
        "reward": spread(values(runs, "final_reward")),
        "falls": spread(values(runs, "falls")),
        "success": spread([x for x in success if x is not None]),
        "reached": sum(x is not None for x in success),
        "curves": {
            "return": curve(runs, "return_trailing"),
            "falls": curve(runs, "falls"),
            "recovery": curve(runs, "recovery_rate"),
            "radius": curve(runs, "radius"),
            "gap": gap_curve(runs),
        },
    }


def spread(numbers: list[float]) -> dict[str, float | None] | None:
    """Mean, deviation, interquartile mean and its interval."""
    if not numbers:
        return None
    mean, deviation = mean_and_deviation(numbers)
    point, low, high = bootstrap([numbers], np.random.default_rng(SEED))
    return {
        "mean": tidy(mean),
        "deviation": tidy(deviation),
        "iqm": tidy(point),
        "low": tidy(low),
        "high": tidy(high),
    }


def curve(runs: list[Result], column: str) -> dict[str, list] | None:
    """Steps, mean, smallest and largest over the runs."""
    steps, rows = on_grid(runs, column)
    return as_curve(steps, rows)


def gap_curve(runs: list[Result]) -> dict[str, list] | None:
    steps, rows = on_grid(runs, "gap", "evaluations")
    return as_curve(steps, smooth(rows)) if len(rows) else None


def as_curve(steps: np.ndarray, rows: np.ndarray) -> dict[str, list] | None:
    known = ~np.isnan(rows).all(axis=0) if len(rows) else np.zeros(len(steps), bool)
    if not known.any():
        return None
    steps, rows = steps[known], rows[:, known]
    lines = {"x": steps, "y": np.nanmean(rows, 0), "low": np.nanmin(rows, 0), "high": np.nanmax(rows, 0)}
    return {name: [tidy(x, 5) for x in line.tolist()] for name, line in lines.items()}


def compare(groups: list[dict[str, Any]], robot: str) -> dict[str, Any] | None:
    """SafeExplorer beside PPO in numbers: the first groups of both on this robot."""
    first = {}
    for group in groups:
        if group["robot"] == robot and finished(group):
            first.setdefault(group["method"], finished(group))
    if not {"ppo", "safeexplorer"} <= first.keys():
        return None
    ours, theirs = first["safeexplorer"], first["ppo"]
    falls = [float(np.mean(values(runs, "falls"))) for runs in (ours, theirs)]
    rewards = [values(runs, "final_reward") for runs in (ours, theirs)]
    found = {"robot": ROBOT_LABELS[robot], "falls": falls, "seeds": [len(ours), len(theirs)]}
    if all(rewards):
        chance = probability_of_improvement([rewards[0]], [rewards[1]], np.random.default_rng(SEED))
        found |= {"rewards": [float(np.mean(r)) for r in rewards], "chance": chance.point}
    return found


# -- runs --------------------------------------------------------------------------------------------------


def describe_run(run: Result) -> dict[str, Any]:
    """One line of the list of runs, and what unfolds under it."""
    s = run.spec.settings
    return {
        "name": run.name,
        "robot": ROBOT_LABELS[s.robot],
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
        "provenance": run.provenance | {"recovery": run.recovery, "key": run.spec.key},
    }


def films(results: Sequence[Result]) -> list[dict[str, str]]:
    """The films that lie in the run folders, small ones, until the page would grow too large."""
    found, total = [], 0
    for run in results:
        for path in (run.folder / name for name in FILMS) if run.folder else ():
            size = path.stat().st_size if path.is_file() else 0
            if size and size <= FILM_BYTES and total + size <= ALL_FILM_BYTES:
                total += size
                found.append({"label": run.spec.label, "source": data_address(path)})
    return found


def data_address(path: Path) -> str:
    return f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


# -- tables ------------------------------------------------------------------------------------------------


def tables(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Every table of the paper for which there is at least one run, ours above theirs."""
    library, found = Library(results), []
    seeds = max((run.spec.settings.seed for run in results), default=1)
    for artefact in ARTEFACTS.values():
        sheet = lay_out(gather(artefact, library, Protocol(seeds=min(seeds, 5))))
        if artefact.kind != "table" or not any(cell.values for _, cells in sheet.rows for cell in cells):
            continue
        rows = [
            {
                "label": label,
                "ours": sheet.ours(i),
                "theirs": sheet.theirs(i) if has_paper(sheet, i) else None,
                "best": [(i, j) in sheet.best for j in range(len(sheet.columns))],
            }
            for i, (label, _) in enumerate(sheet.rows)
        ]
        found.append(
            {"name": artefact.name, "title": artefact.title, "caption": " ".join(caption_lines(sheet)),
             "headings": sheet.headings, "rows": rows, "notes": sheet.grid.notes()}
        )  # fmt: skip
    return found
