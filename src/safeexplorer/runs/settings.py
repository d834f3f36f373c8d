"""What a run is: one frozen record of every setting, checked before any work starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from safeexplorer.acting.costs import COSTS
from safeexplorer.acting.networks import ACTIVATIONS
from safeexplorer.acting.plan import Plan
from safeexplorer.acting.schedules import SCHEDULES
from safeexplorer.files.fields import check_fields, demand, plain, setting, share_of
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters, Hyperparameters
from safeexplorer.learning.methods import CONSTRAINED, PARTS, SAFEEXPLORER_AUTO, Method, get_method
from safeexplorer.robots import get_robot
from safeexplorer.robots.robot import Robot
from safeexplorer.runs.facts import read_facts

INTERVENTIONS = ("safe_region", "jump_start")

# Settings whose default is the method's: the paper's PPO table; the constrained baselines' of OmniSafe, whose epochs
# are 2048 steps of all robots together; and those of the hand-over, whose updates are as short.
PPO_DEFAULTS = {"rollout_steps": 2048, "minibatches": 32, "max_gradient_norm": 0.5, "adam_epsilon": 1e-5}
PAPER_DEFAULTS = {"schedule": "linear", "lambda_compat": 1e-3}
AUTO_DEFAULTS = {"schedule": "auto", "lambda_compat": 1e-2}
SHORT_UPDATE, SHORTEST_ROLLOUT = 2048, 24  # steps of all robots together; of one
MINIBATCH, MOST_MINIBATCHES = 256, 32  # steps, where nobody says how many there are to be
LARGEST_BATCH = 2**24  # steps per update
ON_DEVICE = ("desired_kl", "start_states", "critic_observations")  # settings of environments in JAX alone
CONSTRAINED_DEFAULTS = {"minibatches": 32, "max_gradient_norm": 40.0, "adam_epsilon": 1e-8}


@dataclass(frozen=True)
class Settings:
    """Every number of a training run. The defaults are the paper's; None means the robot's or the method's own."""

    # default, help, lowest, highest
    robot: str | None = setting("half_cheetah", "which robot to train; None: an environment of your own")
    environment: str | None = setting(None, "with robot None: what reports call the environment")
    method: str = setting("safeexplorer", "a row of the method table (see `safeexplorer methods`)")
    seed: int = setting(1, "seed of everything random in the run", 0)
    steps: int | None = setting(
        None, "environment steps in all; the paper's budget for the robot if not given", 1
    )
    recovery: str = setting("default", "recovery policy: a shipped name, hold, passive, or a file")
    num_envs: int = setting(4, "robots simulated side by side", 1, 65536)
    rollout_steps: int | None = setting(
        None,
        "steps per robot and update: 2048, or 2048 / num_envs for safeexplorer_auto and the constrained methods",
        1,
        10**6,
    )
    threads: int = setting(1, "threads for the simulation; the results do not depend on it", 1, 256)
    hidden: tuple[int, ...] = setting((64, 64), "widths of the hidden layers of actor and critic")
    activation: str = setting("tanh", "what follows a hidden layer of actor and critic", choices=ACTIVATIONS)
    learning_rate: float = setting(3e-4, "step size of Adam at the start", above=0, at_most=1)
    anneal: bool = setting(True, "let the step size fall linearly to zero")
    desired_kl: float | None = setting(
        None, "in a JAX environment: let the step size follow this KL divergence per minibatch", above=0
    )
    episode_length: int | None = setting(
        None, "steps per episode of a JAX environment: 1000; None for every other", 1, 10**6
    )
    start_states: int = setting(
        0, "in a JAX environment: episodes begin in one of so many states; 0 resets it every time", 0, 10**6
    )
    critic_observations: int = setting(
        0, "in a JAX environment: how many numbers the critic sees, if not the policy's", 0
    )
    gamma: float = setting(0.99, "discount", 0, 1)
    gae_lambda: float = setting(0.95, "trace of the advantage estimate", 0, 1)
    clip: float = setting(0.2, "clip range of the probability ratio", above=0)
    value_coefficient: float = setting(0.5, "weight c_v of the value loss", 0)
    entropy_coefficient: float = setting(0.0, "weight c_e of the entropy bonus", 0)
    lambda_compat: float | None = setting(
        None,
        "weight of the compatibility loss (imitation of recoveries): 1e-3, or 1e-2 with safeexplorer_auto",
        0,
    )
    per_segment: bool = setting(False, "normalise the compatibility loss per recovery segment")
    max_gradient_norm: float | None = setting(
        None, "gradient-norm clip: 0.5 over all networks, or 40 each for the constrained methods", above=0
    )
    adam_epsilon: float | None = setting(
        None, "epsilon of Adam: 1e-5, or 1e-8 for the constrained methods", above=0, at_most=1
    )
    min_log_std: float | None = setting(
        None,
        "lowest log standard deviation of the policy: -2 on Ant, else -20, which is practically none",
        at_most=0,
    )
    epochs: int = setting(10, "passes over each rollout", 1, 10**4)
    minibatches: int | None = setting(
        None, "minibatches per pass: 32, or of 256 steps with safeexplorer_auto", 1
    )
    intervention: str = setting(
        "safe_region", "who acts when: safe_region or jump_start", choices=INTERVENTIONS
    )
    schedule: str | None = setting(
        None,
        "shape of the radius curriculum, or auto, by evidence: linear, or auto with safeexplorer_auto",
        choices=SCHEDULES,
    )
    initial_radius: float | None = setting(
        None, "d0, the radius at the start; the robot's own if not given", 0
    )
    max_radius: float | None = setting(None, "d_max of the curriculum; the robot's own if not given", above=0)
    fraction: float = setting(1.0, "with schedule constant: the share of d_max to hold", above=0)
    begin_as_recovery: bool | None = setting(
        None, "let the recovery act alone until the policy is its copy; the method's own if not given"
    )
    imitation_share: float = setting(
        0.3, "with begin_as_recovery: the largest share of training it may take", 0, 1
    )
    safe_share: float = setting(
        0.99, "share of exits that must be proven to end well before the region grows; less in haste", 0, 1
    )
    haste: float = setting(
        5.0,
        "in a short training: by how much, at most, decisions come sooner on less evidence; 1: never",
        1,
        100,
    )
    hold_spread: bool | None = setting(
        None, "hold the policy's spread in a band that follows the exits; the method's own if not given"
    )
    initial_spread: float = setting(
        0.1, "standard deviation when the policy takes over, as a share of half the action range", above=0
    )
    spread_fade: float = setting(
        2.0, "with hold_spread: how far the floor under log sigma falls in training", 0
    )
    limit_updates: bool | None = setting(
        None,
        "slow the policy's steps where an update moves it by more than target_kl; the method's own if not given",
    )
    wait_for_outcomes: bool | None = setting(
        None, "imitate what a rollout's end cut only when its outcome is known; the method's own if not given"
    )
    normalise_observations: bool | None = setting(
        None, "observations in units of their running spread; the method's own if not given"
    )
    scale_rewards: bool | None = setting(
        None, "learn from rewards in units of the returns' running spread; the method's own if not given"
    )
    handoff: int = setting(200, "with jump_start: steps the recovery leads at first, shrinking to 0", 0)
    action_noise: float = setting(0.0, "standard deviation of Gaussian noise on every executed action", 0)
    sampled_recovery: bool = setting(False, "draw recovery actions from their density instead of its mean")
    importance_cap: float = setting(10.0, "with truncated_is: the largest importance weight", above=0)
    analytic_samples: int = setting(
        1, "recoveries averaged for the analytic value; above 1 re-rolls from the exit", 1, 10**4
    )
    cost: str = setting(
        "fall", "with a constrained method: 1 per fall, or 1 per step outside the region", choices=COSTS
    )
    cost_limit: float = setting(0.05, "with a constrained method: allowed cost per episode", 0)
    target_kl: float = setting(
        0.02, "with limit_updates or a constrained method: how far an update may move the policy", above=0
    )
    multiplier_start: float = setting(1e-3, "with ppo_lagrangian: the price of cost at the start", 0)
    multiplier_rate: float = setting(0.035, "with ppo_lagrangian: step size of the price", above=0)
    eval_every: int = setting(0, "updates between evaluations without recovery; 0 for none", 0)
    eval_episodes: int = setting(5, "episodes per evaluation", 1, 10**4)
    checkpoint_every: int = setting(20, "updates between checkpoints", 1)
    exits_per_update: int = setting(16, "first-exit states kept per update for later replay", 0, 10**6)
    falls_kept: int = setting(
        20, "falls whose last two seconds are kept: so many first and so many latest", 0, 10**6
    )

    @property
    def subject(self) -> str:
        """What is trained: a robot of the package, or an environment of the caller's own."""
        return self.robot or self.environment or "own environment"

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.subject} {self.method} seed {self.seed}"

    @property
    def batch_size(self) -> int:
        """Steps per update."""
        return self.num_envs * self.rollout_steps

    @property
    def updates(self) -> int:
        """N: whole updates that fit into the steps; what is left over is not run."""
        demand(self, "steps", self.steps is not None, "how many environment steps to train for")
        return self.steps // self.batch_size

    def progress(self, update: int) -> float:
        """(u - 1) / N in [0, 1): where training is when it collects the rollout of update u = 1, ..., N."""
        return (update - 1) / self.updates

    def resolved(self) -> Settings:
        """Checked, with the robot's and the method's own values filled in."""
        check_fields(self)
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
        given = {name: getattr(self, name) for name in PARTS if getattr(self, name) is not None}
        return replace(row, sampled_recovery=row.sampled_recovery or self.sampled_recovery, **given)

    def handover_plan(self) -> Plan | None:
        """What the hand-over from the recovery needs; None where nothing is handed over."""
        row = self.method_row()
        by_evidence = row.intervenes and self.schedule == "auto" and self.intervention == "safe_region"
        if not (row.begin_as_recovery or row.hold_spread or by_evidence):
            return None
        return Plan(
            updates=1 if self.steps is None else self.updates,
            batch=self.batch_size,
            begin_as_recovery=row.begin_as_recovery,
            by_evidence=by_evidence,
            hold_spread=row.hold_spread,
            largest_radius=math.inf if self.max_radius is None else self.max_radius,
            imitation_share=self.imitation_share,
            safe_share=self.safe_share,
            initial_spread=self.initial_spread,
            haste=self.haste,
            spread_fade=self.spread_fade,
        )

    def hyperparameters(self) -> Hyperparameters:
        """The learner's share of the settings."""
        return share_of(self, Hyperparameters)

    def constrained_hyperparameters(self) -> ConstrainedHyperparameters:
        """The constrained learner's share of the settings."""
        return share_of(self, ConstrainedHyperparameters)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return plain(self)


def usual_method(schedule: str | None) -> str:
    """What trains if nobody names a method; with a clock of the caller's own it is the paper's."""
    return SAFEEXPLORER_AUTO.name if schedule in (None, "auto") else Settings.method


def method_defaults(settings: Settings) -> dict[str, Any]:
    """What a setting left at None is for this method."""
    row = get_method(settings.method)
    parts = {name: getattr(row, name) for name in PARTS}
    parts |= AUTO_DEFAULTS if row == SAFEEXPLORER_AUTO else PAPER_DEFAULTS
    robots = settings.num_envs if settings.num_envs in range(1, LARGEST_BATCH) else 1  # else it is refused
    if settings.method in CONSTRAINED:
        return CONSTRAINED_DEFAULTS | parts | {"rollout_steps": max(SHORT_UPDATE // robots, 1)}
    if row == SAFEEXPLORER_AUTO:
        steps = settings.rollout_steps or max(SHORT_UPDATE // robots, SHORTEST_ROLLOUT)
        parts |= {"rollout_steps": steps, "minibatches": minibatches_of(robots * steps)}
    return PPO_DEFAULTS | parts


def minibatches_of(size: Any) -> int:
    """How many of about 256 steps make up an update of `size` steps; 1 where that is no number of steps."""
    if not isinstance(size, int):
        return 1
    most = min(max(size // MINIBATCH, 1), MOST_MINIBATCHES)
    return max(count for count in range(1, most + 1) if size % count == 0)


def robot_defaults(settings: Settings) -> dict[str, Any]:
    """What a setting left at None is for this robot; budget and radii of the caller's own nobody knows."""
    if settings.robot is None:
        return {"min_log_std": Robot.min_log_std}
    robot = get_robot(settings.robot)
    same = ("initial_radius", "max_radius", "min_log_std")
    return {"steps": robot.budget} | {name: getattr(robot, name) for name in same}


def from_dict(values: dict[str, Any]) -> Settings:
    """Settings from JSON values; an unknown key is refused by name."""
    known = {f.name for f in fields(Settings)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return replace(Settings(), **{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def stored_settings(folder: Path) -> Settings:
    """The settings of the run in `folder`."""
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no run: there is no run.json in it")
    try:
        return from_dict(read_facts(folder)["settings"]).resolved()
    except ValueError as error:
        raise ValueError(error if str(path) in str(error) else f"{path}: settings: {error}") from error


def robot_settings(folder: Path, instead: str) -> Settings:
    """The settings of a run on a robot of the package; another's environment only Python can make: `instead`."""
    settings = stored_settings(folder)
    if settings.robot is None:
        call = instead.format(folder=repr(str(folder)), steps=settings.steps)
        raise ValueError(
            f"{folder} was trained on {settings.subject}, which only Python can make; there: {call}"
        )
    return settings


def check(settings: Settings) -> None:
    """Refuse what cannot work, before any work starts."""
    get_method(settings.method)
    check_fields(settings)
    size, divisible = settings.batch_size, settings.batch_size % settings.minibatches == 0
    demand(
        settings, "rollout_steps", size <= LARGEST_BATCH, f"num_envs * rollout_steps up to {LARGEST_BATCH:,}"
    )
    demand(settings, "minibatches", divisible, f"a divisor of num_envs * rollout_steps = {size}")
    enough = settings.steps is None or settings.steps >= size
    demand(settings, "steps", enough, f"at least one update, num_envs * rollout_steps = {size}")
    for name in ON_DEVICE if settings.episode_length is None else ():
        own = getattr(Settings, name)
        demand(settings, name, getattr(settings, name) == own, f"{own} but in a JAX environment")
    tanh = settings.activation == "tanh" or settings.method not in CONSTRAINED
    demand(settings, "activation", tanh, f"tanh with method {settings.method}")
    for name in PARTS:
        why_not = reason_against(name, settings)
        demand(settings, name, not getattr(settings, name) or why_not is None, f"False {why_not}")
    alone = settings.analytic_samples == 1 or get_method(settings.method).analytic_value
    demand(settings, "analytic_samples", alone, f"1 with method {settings.method}")


def reason_against(part: str, settings: Settings) -> str | None:
    """Why a part of the hand-over cannot be switched on; None where it can."""
    row = get_method(settings.method)
    if row.name in CONSTRAINED:
        return f"with method {row.name}, which has means of its own"
    if part in ("begin_as_recovery", "hold_spread") and not row.intervenes:
        return f"with method {row.name}, which has no recovery"
    if part == "wait_for_outcomes" and row.gate != "hard":
        return f"with method {row.name}, whose gate asks for no outcome"
    if part in ("normalise_observations", "scale_rewards") and settings.analytic_samples > 1:
        return "with analytic_samples above 1"
    return None
