"""What is audited: a recording, or a built-in robot that is tried out; and at whose policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from safeexplorer import robots
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.networks import Params
from safeexplorer.audit.auditing import audit, audit_collector
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.recordings import read_recording
from safeexplorer.files.archives import read_npz
from safeexplorer.files.fields import check_fields, demand, setting
from safeexplorer.learning.methods import CONSTRAINED
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.runs.policies import open_policy, policy_from_arrays, policy_sizes
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import check_fit, robot_world

UNSEEN = (
    "a recording cannot tell whether a takeover looked at the proposed action, which would bias the masked gradient: "
    "offer its trigger equal states with different actions and see whether it decides alike (docs/audit.md)"
)
FRESH = "freshly initialised, as at the start of training"


@dataclass(frozen=True)
class Trial:
    """How a robot is tried out. None: as the policy's run has it, or as training would start."""

    recovery: str | None = setting(None, "robot only: the recovery")
    steps: int = setting(8192, "robot only: steps of all robots together", 1, 10**7)
    num_envs: int | None = setting(None, "robot only: robots side by side", 1, 65536)
    radius: float | None = setting(None, "robot only: the radius d of the safe region", above=0)
    progress: float | None = setting(
        None, "robot only: the radius at this point of the curriculum, 0 to 1", 0, 1
    )
    sampled_recovery: bool | None = setting(
        None, "robot only: draw recovery actions from their density, for the importance weights"
    )
    action_noise: float | None = setting(None, "robot only: noise on every action", 0)


class Policy(NamedTuple):
    """Parameters with where they come from; the settings and the progress of their run if they have one."""

    params: Params | None
    source: str
    settings: Settings | None = None
    progress: float = 0.0
    radius: float | None = None  # where the run's evidence, and no schedule, says it


def audit_file(path: Path, policy_path: Path | None = None) -> Audit:
    """A recording, at the policy inside it or the one given."""
    recording = read_recording(path)
    policy = read_policy(policy_path) if policy_path else Policy(recording.params, f"weights in {path}")
    hyper = policy.settings.resolved().hyperparameters() if policy.settings else None
    log_prob, notes = recording.log_prob, recording.notes
    if recording.rollout.distance is None:  # with it, the trigger is checked
        notes = (*notes, UNSEEN)
    how = {"policy": policy.source, "hyper": hyper, "log_prob": log_prob, "notes": notes}
    return audit(recording.rollout, policy.params, in_options=True, **how)


def audit_robot(name: str, trial: Trial, policy_path: Path | None = None, seed: int = 0) -> Audit:
    """A fresh rollout of a built-in robot under the mixed policy."""
    robot = robots.get_robot(name)
    policy = Policy(None, FRESH) if policy_path is None else read_policy(policy_path)
    if trial.radius is None and trial.progress is None:
        trial = replace(trial, radius=policy.radius)
    settings = trial_settings(name, trial, policy)
    params, sizes = policy.params, (robot.observation_size, robot.action_size)
    if params is None:
        params = init_actor_critic(np.random.default_rng(seed), *sizes, settings.hidden)
    if policy_sizes(params) != sizes:
        got, wanted = (" to ".join(map(str, pair)) for pair in (policy_sizes(params), sizes))
        raise ValueError(f"policy {policy_path} maps {got} numbers; {name} needs {wanted}")
    collector = make_collector(settings)
    collector.reset(seed)
    progress = policy.progress if trial.progress is None else trial.progress
    how = {"policy": policy.source, "hyper": settings.hyperparameters(), "in_options": True}
    rng, notes = np.random.default_rng(seed), describe(collector, progress)
    return audit_collector(collector, params, progress, rng, notes=notes, **how)


def trial_settings(robot: str, trial: Trial, policy: Policy) -> Settings:
    """The settings of the policy's run, or the defaults, with what the trial says; checked."""
    base = policy.settings or Settings(robot=robot)
    if base.robot != robot:
        raise ValueError(f"policy {policy.source} is a run of {base.subject}, not of {robot}")
    check_fields(trial)
    steps, count = trial.steps, trial.num_envs or base.num_envs
    demand(trial, "steps", steps % count == 0, f"a positive multiple of num_envs, {count}")
    if trial.radius is not None and trial.progress is not None:
        raise ValueError("radius and progress are both given; allowed: one of them")
    own = {"recovery": trial.recovery, "action_noise": trial.action_noise, "max_radius": trial.radius}
    changes = {name: value for name, value in own.items() if value is not None}
    if trial.radius is not None:
        changes |= {"intervention": "safe_region", "schedule": "constant", "fraction": 1.0}
    sampled = base.method_row().sampled_recovery if trial.sampled_recovery is None else trial.sampled_recovery
    size = {"steps": steps, "num_envs": count, "rollout_steps": steps // count, "minibatches": 1}
    size["eval_every"] = 0
    return replace(base, method="safeexplorer", sampled_recovery=sampled, **size, **changes).resolved()


def make_collector(settings: Settings) -> Collector:
    """Robots, recovery and intervention as in training."""
    world = robot_world(settings)
    check_fit(settings, world)
    who = (world.env, world.recovery, world.intervention)
    return Collector(*who, settings.rollout_steps, sampled=settings.sampled_recovery)


def describe(collector: Collector, progress: float) -> tuple[str, ...]:
    """What was tried out, and what could be."""
    recovery, trigger = collector.mixed.recovery, collector.mixed.intervention
    radius = f"radius {trigger.radius(progress):g}" if isinstance(trigger, SafeRegion) else "jump start"
    notes = (f"{collector.env.robot.name}, recovery {recovery.name}, {radius}",)
    if recovery.has_density and not collector.mixed.sampled:
        notes += (
            "the recovery acts by its mean; --sampled-recovery draws from its density and weighs by it",
        )
    return notes


def read_policy(path: Path) -> Policy:
    """A run's newest parameters, or weights from an `.npz`."""
    if not path.is_dir():
        arrays = {name.removeprefix("policy/"): array for name, array in read_npz(path).items()}
        return Policy(policy_from_arrays(arrays, str(path)), f"weights in {path}")
    run = open_policy(path)
    if run.settings.method in CONSTRAINED:
        raise ValueError(
            f"policy {path} is a run of {run.settings.method}, whose policy reads normalised observations; "
            "its gradients are not compared"
        )
    source, measured = f"{path} at {run.progress:.1%} of its training", run.settings.schedule == "auto"
    return Policy(run.params, source, run.settings, run.progress, run.radius if measured else None)
