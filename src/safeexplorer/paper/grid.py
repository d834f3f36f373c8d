"""An artefact met by the runs that exist: which are there, which run, which failed, and the cells they make."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from safeexplorer.paper.artefact import MAIN_RESULTS, ROBOT_LABELS, Arm, Artefact, Number, Protocol
from safeexplorer.paper.measures import MEASURES
from safeexplorer.paper.statistics import Interval, interval
from safeexplorer.runs.results import FAILED, Result
from safeexplorer.runs.specs import RunSpec
from safeexplorer.runs.summary import mean_and_deviation

SUCCESS_SHARE = 0.8


class Library:
    """Results by run, and by everything but the number of steps."""

    def __init__(self, results: Iterable[Result]):
        self.by_key = {result.spec.key: result for result in results}
        self.by_kin: dict[str, list[Result]] = {}
        for result in self.by_key.values():
            self.by_kin.setdefault(kin(result.spec, "steps"), []).append(result)

    def done(self, key: str, needs: str | None) -> bool:
        """Is there a finished run, with what the artefact reads?"""
        run = self.by_key.get(key)
        return run is not None and run.finished and has(run, needs)

    def shorter(self, spec: RunSpec) -> list[Result]:
        """The same run with fewer steps, finished."""
        relatives = self.by_kin.get(kin(spec, "steps"), [])
        return [r for r in relatives if r.finished and r.spec.settings.steps < spec.settings.steps]


def kin(spec: RunSpec, apart: str) -> str:
    """The same for runs that differ in one setting alone."""
    identity = {k: v for k, v in spec.identity.items() if k != apart}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Group:
    """The runs of one arm on one robot."""

    arm: Arm
    robot: str
    specs: list[RunSpec]
    runs: list[Result | None]  # one per spec
    needs: str | None

    @property
    def finished(self) -> list[Result]:
        return [r for r in self.runs if r is not None and r.finished and has(r, self.needs)]

    @property
    def steps(self) -> int | None:
        """Of the runs shown, where it is not what the artefact asks for."""
        shown = {r.spec.settings.steps for r in self.finished}
        wanted = self.specs[0].settings.steps if self.specs else None
        return next(iter(shown)) if shown and shown != {wanted} else None


def has(result: Result, needs: str | None) -> bool:
    """Does a finished run hold what the artefact reads?"""
    return {
        None: True,
        "gap": any(x is not None for x in result.evaluations.get("gap", ())),
        "replay": result.replay is not None,
        "importance": any(x is not None for x in result.curve.get("importance_ess_share", ())),
    }[needs]


@dataclass(frozen=True)
class Cell:
    """One measure of one group."""

    values: tuple[float, ...]  # of the finished runs that have it
    finished: int
    wanted: int
    steps: int | None
    paper: Number | None
    counted: bool  # a count or a share

    @cached_property
    def summary(self) -> Number | None:
        """Mean and standard deviation."""
        return mean_and_deviation(self.values) if self.values else None

    @cached_property
    def interval(self) -> Interval | None:
        """Interquartile mean with its 95% interval; counts and shares do not fall below 0."""
        if not self.values:
            return None
        point, low, high = interval(self.values)
        return Interval(point, max(low, 0.0) if self.counted and low is not None else low, high)


@dataclass(frozen=True)
class Grid:
    """Every group of an artefact."""

    artefact: Artefact
    groups: dict[tuple[str, str], Group]  # by (arm, robot)
    bars: dict[str, tuple[float, str]]  # robot -> the return that counts as success, and whose reward set it

    def cell(self, arm: str, robot: str, measure: str) -> Cell:
        group = self.groups[arm, robot]
        values = [self.value(run, measure) for run in group.finished]
        return Cell(
            tuple(v for v in values if v is not None),
            len(group.finished),
            len(group.specs),
            group.steps,
            self.artefact.paper.get((arm, robot, measure)),
            MEASURES[measure].better < 0,
        )

    def value(self, run: Result, measure: str) -> float | None:
        if measure == "falls_to_success":
            bar = self.bars.get(run.spec.settings.subject)
            return run.falls_to(bar[0]) if bar else None
        return MEASURES[measure].value(run)

    @property
    def robots(self) -> list[str]:
        return list(dict.fromkeys(robot for _, robot in self.groups))

    def notes(self) -> list[str]:
        """What a reader must know beside the numbers: what is missing, failed, shorter or mixed."""
        notes = [f"paper: {fact}" for fact in self.artefact.facts]
        for group in self.groups.values():
            where = f"{group.arm.label}, {ROBOT_LABELS[group.robot]}"
            for spec, run in zip(group.specs, group.runs, strict=True):
                if run is not None and run.status == FAILED:
                    notes.append(f"failed: {where}, seed {spec.settings.seed}: {run.error}")
                elif run is not None and not run.finished:
                    notes.append(f"unfinished: {where}, seed {spec.settings.seed}: {so_far(run)}")
                elif run is not None and not has(run, group.needs):
                    notes.append(f"no {group.needs} in: {where}, seed {spec.settings.seed}")
            if group.steps:
                wanted = group.specs[0].settings.steps
                notes.append(
                    f"{where}: runs of {millions(group.steps)} steps, the artefact asks for {millions(wanted)}"
                )
            if len({(r.recovery or {}).get("sha256") for r in group.finished}) > 1:
                notes.append(f"{where}: the runs used different recovery policies")
        if "falls_to_success" in self.artefact.measures:
            notes += [
                f"success on {ROBOT_LABELS[robot]}: {bar:,.0f}, 80% of the final reward of {who}"
                for robot, (bar, who) in self.bars.items()
            ]
        return notes


def so_far(run: Result) -> str:
    """Where an unfinished run stands."""
    wanted = run.spec.settings.steps
    if not run.curve:
        return f"0 of {millions(wanted)} steps"
    done, falls, trailing = (run.curve[name][-1] for name in ("steps", "falls", "return_trailing"))
    reward = "no episode yet" if trailing is None else f"return {trailing:,.0f} (last 100 episodes)"
    return f"{millions(round(done, -4))} of {millions(wanted)} steps, {reward}, {falls:,.0f} falls"


def millions(steps: int) -> str:
    return f"{steps / 1e6:g}M" if steps >= 100_000 else f"{steps:,}"


def gather(
    artefact: Artefact, library: Library, protocol: Protocol, robots: Iterable[str] | None = None
) -> Grid:
    """Look up every run. Where no run of the paper's length exists, the longest shorter ones stand in, marked."""
    chosen = [robot for robot in artefact.robots if robots is None or robot in robots]
    groups = {}
    for robot in chosen:
        for arm in artefact.arms:
            specs = artefact.arm_specs(arm, robot, protocol)
            runs = [library.by_key.get(spec.key) for spec in specs]
            if not any(runs) and arm.budget == 1.0 and protocol.steps is None and not protocol.smoke:
                runs = stand_ins(specs, library)
            groups[arm.label, robot] = Group(arm, robot, specs, runs, artefact.needs)
    needs_bars = "falls_to_success" in artefact.measures
    bars = success_bars(gather(MAIN_RESULTS, library, protocol, chosen)) if needs_bars else {}
    return Grid(artefact, groups, bars)


def stand_ins(specs: list[RunSpec], library: Library) -> list[Result | None]:
    """Shorter runs of the same settings, all of one length: the longest there is."""
    found = [library.shorter(spec) for spec in specs]
    steps = max((r.spec.settings.steps for runs in found for r in runs), default=None)
    return [next((r for r in runs if r.spec.settings.steps == steps), None) for runs in found]


def success_bars(grid: Grid) -> dict[str, tuple[float, str]]:
    """80% of the best mean final reward among the methods of main-results, each by its first group, per robot."""
    methods = {arm.method for arm in MAIN_RESULTS.arms}
    first: dict[tuple[str, str], Group] = {}
    for group in grid.groups.values():
        if group.arm.method in methods and group.finished:
            first.setdefault((group.robot, group.arm.method), group)
    bars: dict[str, tuple[float, str]] = {}
    for (robot, _), group in first.items():
        summary = grid.cell(group.arm.label, robot, "final_reward").summary
        if summary and SUCCESS_SHARE * summary[0] > bars.get(robot, (-np.inf, ""))[0]:
            bars[robot] = (SUCCESS_SHARE * summary[0], group.arm.label)
    return bars
