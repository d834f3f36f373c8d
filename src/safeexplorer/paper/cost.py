"""How much work is left."""

from collections.abc import Iterable
from typing import Any

from safeexplorer.paper.artefact import Artefact, Protocol
from safeexplorer.paper.grid import Library
from safeexplorer.runs.specs import RunSpec

# Training steps per second of one core, roughly (docs/performance.md); runs that exist here replace them by what they
# took.
SPEEDS = {"half_cheetah": 15_000.0, "ant": 3_900.0, "go1": 1_900.0}


def work_left(
    artefacts: Iterable[Artefact], library: Library, protocol: Protocol, robots: tuple[str, ...] | None
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """A row per artefact: runs done and core-hours left; and what is left of all, shared runs counted once."""
    rows, total = [], {}
    for artefact in artefacts:
        specs = {spec.key: spec for spec in artefact.specs(protocol, robots)}
        left = {key: spec for key, spec in specs.items() if not library.done(key, artefact.needs)}
        total |= left
        about = {name: getattr(artefact, name) for name in ("name", "kind", "title")}
        about |= {"done": len(specs) - len(left), "runs": len(specs)}
        rows.append(about | {"core_hours_left": core_hours(left.values(), library)})
    return rows, {"runs_left": len(total), "core_hours_left": core_hours(total.values(), library)}


def core_hours(specs: Iterable[RunSpec], library: Library) -> float:
    """Of these runs, less what unfinished ones have behind them; to a tenth."""
    speeds = SPEEDS | measured_speeds(library)
    total = 0.0
    for spec in specs:
        run = library.by_key.get(spec.key)
        ahead = spec.settings.steps * (1.0 - run.share_done if run is not None else 1.0)
        total += ahead / speeds[spec.settings.robot]
    return round(total / 3600.0, 1)


def measured_speeds(library: Library) -> dict[str, float]:
    """Steps per second by robot, over all finished runs that kept their time."""
    steps: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for run in library.by_key.values():
        robot, time = run.spec.settings.robot, run.numbers.get("seconds")
        if run.finished and time:
            steps[robot] = steps.get(robot, 0.0) + run.numbers["steps"]
            seconds[robot] = seconds.get(robot, 0.0) + time
    return {robot: steps[robot] / seconds[robot] for robot in steps}
