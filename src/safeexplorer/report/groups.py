"""Runs of any settings as a grid: those that differ in their seed alone are one group, named by what sets it apart."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import ROBOT_LABELS, Arm, Artefact
from safeexplorer.paper.grid import Grid, Group, kin, millions, success_bars
from safeexplorer.paper.palette import COLOURS
from safeexplorer.runs.results import Result
from safeexplorer.runs.specs import file_name

METHOD_LABELS = {"dagger": "DAgger", "truncated_is": "Truncated IS"}
for _arm in (arm for artefact in ARTEFACTS.values() for arm in artefact.arms if len(arm.changes) == 1):
    METHOD_LABELS.setdefault(_arm.method, _arm.label)
SMALL = 10.0  # rewards below it are told with three digits
WORDS = {"max_radius": "d_max", "initial_radius": "d0", "lambda_compat": "lambda", "action_noise": "noise"}


def group_runs(results: Sequence[Result]) -> Grid:
    """A group per robot and settings, in the order of the method table: plain before changed, long before short."""
    found: dict[str, list[Result]] = {}
    for run in results:
        found.setdefault(kin(run.spec, "seed"), []).append(run)
    groups = {}
    for runs in sorted(found.values(), key=place):
        settings = runs[0].spec.settings
        arm = Arm(label(runs[0], results), {"method": settings.method} | runs[0].spec.changes)
        specs = [run.spec for run in runs]
        groups[arm.label, settings.subject] = Group(arm, settings.subject, specs, runs, None)
    arms = {group.arm.label: group.arm for group in groups.values()}
    robots = tuple(dict.fromkeys(robot for _, robot in groups))
    artefact = Artefact("runs", "page", "", "", tuple(arms.values()), robots)
    return Grid(artefact, groups, success_bars(Grid(artefact, groups, {})))


def own_grids(results: Sequence[Result]) -> list[Grid]:
    """A table and curves for each environment that is no robot of the package."""
    found: dict[str, list[Result]] = {}
    for run in results:
        if run.spec.settings.robot is None:
            found.setdefault(run.spec.settings.subject, []).append(run)
    return [own_grid(name, runs) for name, runs in found.items()]


def own_grid(name: str, runs: Sequence[Result]) -> Grid:
    grid = group_runs(runs)
    caption = "Mean task return of the last 10% of training, and falls in all of it."
    head = (f"own-{file_name(name)}", "figure", name, caption)
    rewards = [abs(run.numbers.get("final_reward") or 0.0) for run in runs]
    measures = ("final_reward" if max(rewards) >= SMALL else "small_reward", "falls")
    return replace(grid, artefact=Artefact(*head, grid.artefact.arms, (name,), measures, drawing="curves"))


def place(runs: list[Result]) -> tuple:
    settings, other = runs[0].spec.settings, set(runs[0].spec.changes) - {"steps"}
    robot, method = index(ROBOT_LABELS, settings.subject), index(COLOURS, settings.method)
    return robot, method, bool(other), -settings.steps, runs[0].name


def index(names: Iterable[str], name: str) -> tuple[int, str]:
    """Where a name stands; unknown ones behind, by the alphabet."""
    known = list(names)
    return (known.index(name) if name in known else len(known), name)


def label(run: Result, results: Sequence[Result]) -> str:
    """The method and its changes in words.

    A budget that all runs on the robot have is not worth a word; on an environment of one's own, whose settings nobody
    has fixed, nor is anything else that all have.
    """
    settings = run.spec.settings
    peers = [r.spec.settings for r in results if r.spec.settings.subject == settings.subject]
    common = {k for k in settings.as_dict() if len({getattr(peer, k) for peer in peers}) == 1}
    idle = common if settings.robot is None else common & {"steps"}
    words = [phrase(k, v) for k, v in run.spec.changes.items() if k not in idle]
    return ", ".join([METHOD_LABELS.get(settings.method, settings.method), *words])


def phrase(name: str, value: Any) -> str:
    """lambda 0.01, sampled recovery, no anneal, 1M steps."""
    word = WORDS.get(name, name.replace("_", " "))
    if name == "steps":
        return f"{millions(value)} steps"
    if isinstance(value, bool):
        return word if value else f"no {word}"
    return f"{word} {value}"
