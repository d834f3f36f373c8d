"""How much work is left."""

from __future__ import annotations

from collections.abc import Iterable

from safeexplorer.paper.grid import Library
from safeexplorer.runs.specs import RunSpec

# Training steps per second of one core: the simulation's 22,400, 4,280 and 2,000 (docs/robots.md) and 20 us a step for
# acting and learning. Runs that exist here replace them by what they took.
SPEEDS = {"half_cheetah": 15_000.0, "ant": 3_900.0, "go1": 1_900.0}


def core_hours(specs: Iterable[RunSpec], library: Library) -> float:
    """Of these runs, less what unfinished ones have behind them."""
    speeds = SPEEDS | measured_speeds(library)
    total = 0.0
    for spec in specs:
        run = library.by_key.get(spec.key)
        ahead = spec.settings.steps * (1.0 - run.share_done if run is not None else 1.0)
        total += ahead / speeds[spec.settings.robot]
    return total / 3600.0


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
