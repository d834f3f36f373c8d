"""What a run is: one frozen record of every setting, checked before any work starts."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from safeexplorer.acting.costs import COSTS
from safeexplorer.acting.schedules import SHAPES
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters, Hyperparameters
from safeexplorer.learning.methods import CONSTRAINED, Method, get_method
from safeexplorer.robots import get_robot
from safeexplorer.robots.robot import Robot

INTERVENTIONS = ("safe_region", "jump_start")
SCHEDULES = (*SHAPES, "constant")

# Settings whose default is the method's: the paper's PPO table, and the constrained baselines' of OmniSafe, whose
# epochs are 2048 steps of all robots together.
PPO_DEFAULTS = {"rollout_steps": 2048, "max_gradient_norm": 0.5, "adam_epsilon": 1e-5}
CONSTRAINED_EPOCH = 2048
CONSTRAINED_DEFAULTS = {"max_gradient_norm": 40.0, "adam_epsilon": 1e-8}


def setting(default: Any, help: str, **extra: Any) -> Any:
    """A field with its help text, from which the command line is made."""
    return field(default=default, metadata={"help": help, **extra})


@dataclass(frozen=True)
class Settings:
    """Every number of a training run. The defaults are the paper's; None means the robot's or the method's own."""

    robot: str | None = setting("half_cheetah", "which robot to train; None: an environment of your own")
    method: str = setting("safeexplorer", "a row of the method table (see `safeexplorer methods`)")
    seed: int = setting(1, "seed of everything random in the run")
    steps: int | None = setting(
        None, "environment steps in all; the paper's budget for the robot if not given"
    )
    recovery: str = setting("default", "recovery policy: a shipped name, hold, passive, or a file")
    num_envs: int = setting(4, "robots simulated side by side")
    rollout_steps: int | None = setting(
        None, "steps per robot and update: 2048, or 2048 / num_envs for the constrained methods"
    )
    threads: int = setting(1, "threads for the simulation; the results do not depend on it")
    hidden: tuple[int, ...] = setting((64, 64), "widths of the hidden layers of actor and critic")
    learning_rate: float = setting(3e-4, "step size of Adam at the start")
    anneal: bool = setting(True, "let the step size fall linearly to zero")
    gamma: float = setting(0.99, "discount")
    gae_lambda: float = setting(0.95, "trace of the advantage estimate")
    clip: float = setting(0.2, "clip range of the probability ratio")
    value_coefficient: float = setting(0.5, "weight c_v of the value loss")
    entropy_coefficient: float = setting(0.0, "weight c_e of the entropy bonus")
    lambda_compat: float = setting(1e-3, "weight of the compatibility loss (imitation of recoveries)")
    per_segment: bool = setting(False, "normalise the compatibility loss per recovery segment")
    max_gradient_norm: float | None = setting(
        None, "gradient-norm clip: 0.5 over all networks, or 40 each for the constrained methods"
    )
    adam_epsilon: float | None = setting(None, "epsilon of Adam: 1e-5, or 1e-8 for the constrained methods")
    min_log_std: float | None = setting(
        None, "lowest log standard deviation of the policy: -2 on Ant, else -20, which is practically none"
    )
    epochs: int = setting(10, "passes over each rollout")
    minibatches: int = setting(32, "minibatches per pass")
    intervention: str = setting(
        "safe_region", "who acts when: safe_region or jump_start", choices=INTERVENTIONS
    )
    schedule: str = setting("linear", "shape of the radius curriculum", choices=SCHEDULES)
    initial_radius: float | None = setting(None, "d0, the radius at the start; the robot's own if not given")
    max_radius: float | None = setting(None, "d_max of the curriculum; the robot's own if not given")
    fraction: float = setting(1.0, "with schedule constant: the share of d_max to hold")
    handoff: int = setting(200, "with jump_start: steps the recovery leads at first, shrinking to 0")
    action_noise: float = setting(0.0, "standard deviation of Gaussian noise on every executed action")
    sampled_recovery: bool = setting(False, "draw recovery actions from their density instead of its mean")
    importance_cap: float = setting(10.0, "with truncated_is: the largest importance weight")
    analytic_samples: int = setting(
        1, "recoveries averaged for the analytic value; above 1 re-rolls from the exit"
    )
    cost: str = setting(
        "fall", "with a constrained method: 1 per fall, or 1 per step outside the region", choices=COSTS
    )
    cost_limit: float = setting(0.05, "with a constrained method: allowed cost per episode")
    target_kl: float = setting(0.02, "with a constrained method: how far an update may move the policy")
    multiplier_start: float = setting(1e-3, "with ppo_lagrangian: the price of cost at the start")
    multiplier_rate: float = setting(0.035, "with ppo_lagrangian: step size of the price")
    eval_every: int = setting(0, "updates between evaluations without recovery; 0 for none")
    eval_episodes: int = setting(5, "episodes per evaluation")
    checkpoint_every: int = setting(20, "updates between checkpoints")
    exits_per_update: int = setting(16, "first-exit states kept per update for later replay")
    falls_kept: int = setting(20, "falls whose last two seconds are kept: so many first and so many latest")

    @property
    def batch_size(self) -> int:
        """Steps per update."""
        return self.num_envs * self.rollout_steps

    @property
    def updates(self) -> int:
        """N: whole updates that fit into the steps; what is left over is not run."""
        return self.steps // self.batch_size

    def progress(self, update: int) -> float:
        """(u - 1) / N in [0, 1): where training is when it collects the rollout of update u = 1, ..., N."""
        return (update - 1) / self.updates

    def resolved(self) -> Settings:
        """Checked, with the robot's and the method's own values filled in."""
        own = method_defaults(self) | robot_defaults(self)
        missing = {name: value for name, value in own.items() if getattr(self, name) is None}
        settings = replace(self, **missing, hidden=tuple(self.hidden))
        check(settings)
        return settings

    def method_row(self) -> Method:
        """The method with this run's ablation options applied."""
        row = get_method(self.method)
        if row.importance_cap is not None:
            row = replace(row, importance_cap=self.importance_cap)
        return replace(row, sampled_recovery=row.sampled_recovery or self.sampled_recovery)

    def hyperparameters(self) -> Hyperparameters:
        """The learner's share of the settings."""
        return Hyperparameters(**{f.name: getattr(self, f.name) for f in fields(Hyperparameters)})

    def constrained_hyperparameters(self) -> ConstrainedHyperparameters:
        """The constrained learner's share of the settings."""
        return ConstrainedHyperparameters(
            **{f.name: getattr(self, f.name) for f in fields(ConstrainedHyperparameters)}
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"hidden": list(self.hidden)}


def method_defaults(settings: Settings) -> dict[str, Any]:
    """What a setting left at None is for this method."""
    if settings.method not in CONSTRAINED:
        return PPO_DEFAULTS
    robots = settings.num_envs if settings.num_envs in range(1, CONSTRAINED_EPOCH) else 1
    return CONSTRAINED_DEFAULTS | {"rollout_steps": CONSTRAINED_EPOCH // robots}


def robot_defaults(settings: Settings) -> dict[str, Any]:
    """What a setting left at None is for this robot; budget and radii of the caller's own nobody knows."""
    if settings.robot is None:
        return {"min_log_std": Robot.min_log_std}
    robot = get_robot(settings.robot)
    return {
        "steps": robot.budget,
        "initial_radius": robot.initial_radius,
        "max_radius": robot.max_radius,
        "min_log_std": robot.min_log_std,
    }


def from_dict(values: dict[str, Any]) -> Settings:
    """Settings from JSON values; an unknown key is refused by name."""
    known = {f.name for f in fields(Settings)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return replace(Settings(), **values | ({"hidden": tuple(values["hidden"])} if "hidden" in values else {}))


POSITIVE_INTEGERS = [
    "num_envs",
    "rollout_steps",
    "threads",
    "epochs",
    "minibatches",
    "analytic_samples",
    "eval_episodes",
    "checkpoint_every",
    "steps",
]
NON_NEGATIVE_INTEGERS = ["seed", "eval_every", "exits_per_update", "falls_kept", "handoff"]
POSITIVE_NUMBERS = [
    "learning_rate",
    "clip",
    "max_gradient_norm",
    "adam_epsilon",
    "importance_cap",
    "fraction",
    "max_radius",
    "target_kl",
    "multiplier_rate",
]
NON_NEGATIVE_NUMBERS = [
    "value_coefficient",
    "entropy_coefficient",
    "lambda_compat",
    "initial_radius",
    "action_noise",
    "cost_limit",
    "multiplier_start",
]
SHARES = ["gamma", "gae_lambda"]
RADII = ["initial_radius", "max_radius"]


def check(settings: Settings) -> None:
    """Refuse what cannot work: one line that names the field, what was got and what is allowed."""

    def demand(name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise ValueError(f"{name} is {getattr(settings, name)!r}; allowed: {allowed}")

    def number(name: str) -> bool:
        value = getattr(settings, name)
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

    def integer(name: str) -> bool:
        return isinstance(getattr(settings, name), int) and not isinstance(getattr(settings, name), bool)

    def given(names: list[str]) -> list[str]:
        """Radii of the settings are not read where the caller brings a region."""
        own = settings.robot is None
        return [name for name in names if not (own and name in RADII and getattr(settings, name) is None)]

    get_method(settings.method)
    for name in POSITIVE_INTEGERS:
        demand(name, integer(name) and getattr(settings, name) >= 1, "a whole number of at least 1")
    for name in NON_NEGATIVE_INTEGERS:
        demand(name, integer(name) and getattr(settings, name) >= 0, "a whole number of at least 0")
    for name in given(POSITIVE_NUMBERS):
        demand(name, number(name) and getattr(settings, name) > 0, "a number above 0")
    for name in given(NON_NEGATIVE_NUMBERS):
        demand(name, number(name) and getattr(settings, name) >= 0, "a number of at least 0")
    demand("min_log_std", number("min_log_std") and settings.min_log_std <= 0, "a number of at most 0")
    for name in SHARES:
        demand(name, number(name) and 0 <= getattr(settings, name) <= 1, "a number from 0 to 1")
    demand("intervention", settings.intervention in INTERVENTIONS, ", ".join(INTERVENTIONS))
    demand("cost", settings.cost in COSTS, ", ".join(COSTS))
    demand("schedule", settings.schedule in SCHEDULES, ", ".join(SCHEDULES))
    widths = settings.hidden
    demand(
        "hidden",
        len(widths) > 0 and all(isinstance(w, int) and w > 0 for w in widths),
        "widths of at least 1",
    )
    size = settings.batch_size
    demand("minibatches", size % settings.minibatches == 0, f"a divisor of num_envs * rollout_steps = {size}")
    demand("steps", settings.steps >= size, f"at least one update, num_envs * rollout_steps = {size}")
    if settings.analytic_samples > 1:
        demand(
            "analytic_samples", get_method(settings.method).analytic_value, f"1 with method {settings.method}"
        )


def difference(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Field by field, what changed."""
    keys = [*old, *(key for key in new if key not in old)]
    return [f"{key}: {old.get(key)!r} -> {new.get(key)!r}" for key in keys if old.get(key) != new.get(key)]
