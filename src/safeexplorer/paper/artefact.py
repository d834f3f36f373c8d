"""What a table or a figure of the paper is: the runs it needs, what it shows of them, and the paper's own numbers."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import RunSpec, run_spec

ALL = ("half_cheetah", "ant", "go1")


class Labels(dict[str, str]):
    """An environment of somebody's own is called what they call it."""

    def __missing__(self, name: str) -> str:
        return name


ROBOT_LABELS = Labels({name: robot.label for name, robot in ROBOTS.items()})
SMOKE = {"num_envs": 2, "rollout_steps": 512, "epochs": 1, "minibatches": 4}
SMOKE_UPDATES = 3
PAPER_SEEDS = 5
EVALUATIONS = 25  # of a run whose objective gap no table shows
Number = tuple[float, float | None]  # mean and deviation, as the paper prints them


@dataclass(frozen=True)
class Arm:
    """One line of a table, one curve of a figure: a label and what it changes in the settings."""

    label: str
    changes: Mapping[str, Any]
    budget: float = 1.0  # in units of the robot's own budget
    often: bool = False  # evaluated as often as the paper does, for the objective gap

    @property
    def method(self) -> str:
        return self.changes["method"]

    @property
    def plain(self) -> bool:
        """The method as it is, whatever its budget."""
        return set(self.changes) <= {"method", "steps"}


@dataclass(frozen=True)
class Claim:
    """A measure of one arm beside that of others, or beside a number, as the paper has it."""

    measure: str
    arm: str
    relation: str  # <, > or =
    others: tuple[str | float, ...]
    robots: tuple[str, ...] = ()  # all of the artefact's if not said


@dataclass(frozen=True)
class Protocol:
    """How the runs of an artefact are made: the paper's way, or a smaller one."""

    seeds: int = PAPER_SEEDS
    steps: int | None = None  # instead of the robot's budget
    recovery: str = "default"
    smoke: bool = False

    def settings(self, arm: Arm, robot: str, seed: int) -> Settings:
        """The settings of one run."""
        changes = {k: v[robot] if isinstance(v, Mapping) else v for k, v in arm.changes.items()}
        base = Settings(robot=robot, seed=seed, recovery=self.recovery)
        base = replace(base, **(SMOKE if self.smoke else {}), **changes)
        whole = SMOKE_UPDATES * base.batch_size if self.smoke else self.steps or get_robot(robot).budget
        whole = replace(base, steps=round(arm.budget * whole))
        return replace(whole, **self.evaluations(whole, arm.often))

    def evaluations(self, settings: Settings, often: bool) -> dict[str, int]:
        """Every run is evaluated: the runs of the objective gap as often as the paper does, the others now and then."""
        if self.smoke:
            return {"eval_every": 1, "eval_episodes": 1}
        return {"eval_every": 4 if often else max(settings.resolved().updates // EVALUATIONS, 1)}


@dataclass(frozen=True)
class Artefact:
    """One table or figure of the paper."""

    name: str
    kind: str  # table or figure
    title: str
    caption: str  # what the paper says about how it was made
    arms: tuple[Arm, ...]
    robots: tuple[str, ...] = ALL
    measures: tuple[str, ...] = ("final_reward", "falls")
    rows: str = "arms"  # of a table: arms or robots
    seeds: int = PAPER_SEEDS
    needs: str | None = None  # beyond a finished run: gap, replay or importance
    paper: Mapping[tuple[str, str, str], Number] = field(default_factory=dict)  # (arm, robot, measure)
    facts: tuple[str, ...] = ()  # numbers that the paper gives in words
    claims: tuple[Claim, ...] = ()
    drawing: str = ""  # of a figure: how it is drawn

    def specs(self, protocol: Protocol, robots: tuple[str, ...] | None = None) -> list[RunSpec]:
        """The runs, each once."""
        found = {}
        for arm in self.arms:
            for robot in robots or self.robots:
                for spec in self.arm_specs(arm, robot, protocol):
                    found.setdefault(spec.key, spec)
        return list(found.values())

    def arm_specs(self, arm: Arm, robot: str, protocol: Protocol) -> list[RunSpec]:
        """One run per seed; none for a robot that the artefact leaves out."""
        if robot not in self.robots:
            return []
        count = min(protocol.seeds, self.seeds)
        return [run_spec(protocol.settings(arm, robot, seed)) for seed in range(1, count + 1)]


def read_arm(label: str, budget: float = 1.0, often: bool = False, **changes: Any) -> Arm:
    return Arm(label, changes, budget, often)


def read_artefact(entry: dict[str, Any], arms: Mapping[str, Arm]) -> Artefact:
    """An entry of `artefacts.toml`; of the paper's numbers, a row has for each robot each measure."""
    entry = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    entry["arms"] = tuple(arms[arm] if isinstance(arm, str) else read_arm(**arm) for arm in entry["arms"])
    entry["claims"] = tuple(Claim(*c[:3], *map(tuple, c[3:])) for c in entry.get("claims", ()))
    rows, artefact = entry.pop("paper", {}), Artefact(**entry)
    cells = [(robot, measure) for robot in artefact.robots for measure in artefact.measures]
    numbers = {(label, *cell): x for label, row in rows.items() for cell, x in zip(cells, row, strict=True)}
    paper = {cell: (x[0], x[1] if len(x) > 1 else None) for cell, x in numbers.items() if x}
    return replace(artefact, paper=paper)


def read_artefacts(text: str) -> dict[str, Artefact]:
    """By name."""
    data = tomllib.loads(text)
    arms = {label: read_arm(label, **changes) for label, changes in data["arms"].items()}
    return {entry["name"]: read_artefact(entry, arms) for entry in data["artefact"]}


ARTEFACTS = read_artefacts(Path(__file__).with_name("artefacts.toml").read_text(encoding="utf-8"))
MAIN_RESULTS, SOFT_VARIANTS = ARTEFACTS["main-results"], ARTEFACTS["soft-variants"]
# Campaigns over several artefacts. The component ablation is 9 methods x 3 robots x 5 seeds = 135 runs.
GROUPS = {"ablation": ("soft-variants", "ablation-pareto", "recovery-rate"), "all": tuple(ARTEFACTS)}


def get_artefacts(names: list[str]) -> list[Artefact]:
    """Artefacts by name; a group stands for its members."""
    for name in names:
        if name not in ARTEFACTS and name not in GROUPS:
            raise ValueError(f"no table or figure {name!r}; known: {', '.join([*ARTEFACTS, *GROUPS])}")
    wanted = [member for name in names for member in GROUPS.get(name, (name,))]
    return [ARTEFACTS[name] for name in dict.fromkeys(wanted)]
