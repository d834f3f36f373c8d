"""`safeexplorer audit`."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from safeexplorer import robots
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.networks import Params
from safeexplorer.audit.auditing import audit, audit_collector
from safeexplorer.audit.display import show
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED, read_arrays, read_recording
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import CONSTRAINED
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.recovery import load_recovery
from safeexplorer.runs.policies import load_policy, policy_from_arrays, policy_sizes
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention

LIVE = ("recovery", "steps", "num_envs", "radius", "progress", "sampled_recovery", "action_noise")
DEFAULT_STEPS = 8192
FRESH = "freshly initialised, as at the start of training"
EPILOG = f"""\
A recording is an .npz (numpy.savez) of arrays over T steps of E robots; without the E axis for one robot.
  required
{chr(10).join(f"    {name:<21} {text}" for name, text in REQUIRED.items())}
  optional
{chr(10).join(f"    {name:<21} {text}" for name, text in OPTIONAL.items())}
    policy/...            the policy's weights: actor/<i>/weight, actor/<i>/bias, log_std, critic/<i>/...
  other names for the intervention
    is_intervention       a flag, with action_intervention: the action of who took over
    intervene_flag        a flag, with intervene_action likewise
    intervene_action      without a flag: rows of NaN where nobody took over

  safeexplorer audit half_cheetah                              the shipped recovery, as training would start
  safeexplorer audit half_cheetah --recovery hold --radius 0.5
  safeexplorer audit half_cheetah --policy runs/mine           a trained policy, at its point of the curriculum
  safeexplorer audit rollouts.npz --policy runs/mine --json
"""


class Policy(NamedTuple):
    """Parameters with where they come from; the settings and the progress of their run if they have one."""

    params: Params | None
    source: str
    settings: Settings | None = None
    progress: float = 0.0


def add_audit(parser: argparse.ArgumentParser) -> None:
    """`audit ROBOT` or `audit FILE`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "target",
        metavar="ROBOT|FILE",
        help=f"a robot to try out ({', '.join(robots.ROBOTS)}) or a recording, .npz",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="RUN|FILE",
        help="whose gradients: a run folder, or an .npz of weights (default: the recording's own; a robot "
        "starts with fresh ones, as training does)",
    )
    parser.add_argument(
        "--recovery", help="robot only: the recovery (default: the run's, or the robot's own)"
    )
    parser.add_argument("--steps", type=int, help="robot only: steps of all robots together (default: 8192)")
    parser.add_argument(
        "--num-envs", type=int, help="robot only: robots side by side (default: the run's, or 4)"
    )
    region = parser.add_mutually_exclusive_group()
    region.add_argument("--radius", type=float, help="robot only: the radius d of the safe region")
    region.add_argument(
        "--progress",
        type=float,
        help="robot only: the radius at this point of the curriculum, 0 to 1 (default: 0, or where the run is)",
    )
    parser.add_argument(
        "--sampled-recovery",
        action="store_true",
        default=None,
        help="robot only: draw recovery actions from their density, for the importance weights",
    )
    parser.add_argument(
        "--action-noise", type=float, help="robot only: noise on every action (default: the run's, or 0)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(run=audit_command)


def audit_command(args: argparse.Namespace) -> int:
    """Measure, then say what it suggests."""
    result = audit_robot(args) if args.target in robots.ROBOTS else audit_file(args)
    if args.json:
        print(json.dumps(result.as_dict(), indent=1, allow_nan=False))
    else:
        show(result, Console())
    return 0


def audit_file(args: argparse.Namespace) -> Audit:
    """A recording, at the policy inside it or the one given."""
    path = Path(args.target)
    if not path.exists():
        raise ValueError(f"{args.target!r} is no robot and no file; robots: {', '.join(robots.ROBOTS)}")
    for name in LIVE:
        if getattr(args, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is for a robot; {path} was recorded already")
    recording = read_recording(path)
    policy = (
        Policy(recording.params, f"weights in {path}") if args.policy is None else read_policy(args.policy)
    )
    return audit(
        recording.rollout,
        policy.params,
        policy=policy.source,
        hyper=hyperparameters(policy),
        log_prob=recording.log_prob,
        notes=recording.notes,
    )


def audit_robot(args: argparse.Namespace) -> Audit:
    """A fresh rollout of a built-in robot under the mixed policy."""
    robot = robots.get_robot(args.target)
    policy = Policy(None, FRESH) if args.policy is None else read_policy(args.policy)
    settings = live_settings(args, policy)
    params, sizes = policy.params, (robot.observation_size, robot.action_size)
    if params is None:
        params = init_actor_critic(np.random.default_rng(args.seed), *sizes, settings.hidden)
    if policy_sizes(params) != sizes:
        got, wanted = (" to ".join(map(str, pair)) for pair in (policy_sizes(params), sizes))
        raise ValueError(f"--policy {args.policy} maps {got} numbers; {robot.name} needs {wanted}")
    collector = make_collector(settings)
    collector.reset(args.seed)
    progress = policy.progress if args.progress is None else args.progress
    return audit_collector(
        collector,
        params,
        progress,
        np.random.default_rng(args.seed),
        policy=policy.source,
        hyper=settings.hyperparameters(),
        notes=describe(collector, progress),
    )


def live_settings(args: argparse.Namespace, policy: Policy) -> Settings:
    """The settings of the policy's run, or the defaults, with what the command line gave; checked."""
    base = policy.settings or Settings(robot=args.target)
    if base.robot != args.target:
        raise ValueError(f"--policy {args.policy} is a run of {base.robot}, not of {args.target}")
    steps = DEFAULT_STEPS if args.steps is None else args.steps
    count = base.num_envs if args.num_envs is None else args.num_envs
    if count < 1:
        raise ValueError(f"--num-envs is {count}; allowed: a whole number of at least 1")
    if steps < count or steps % count:
        raise ValueError(f"--steps is {steps}; allowed: a positive multiple of --num-envs, {count}")
    if args.radius is not None and not 0 < args.radius < math.inf:
        raise ValueError(f"--radius is {args.radius}; allowed: a number above 0")
    if args.progress is not None and not 0 <= args.progress <= 1:
        raise ValueError(f"--progress is {args.progress}; allowed: a number from 0 to 1")
    names = ("recovery", "sampled_recovery", "action_noise")
    changes = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.radius is not None:
        changes |= {"intervention": "safe_region", "schedule": "constant", "fraction": 1.0}
        changes |= {"max_radius": args.radius}
    changes |= {"sampled_recovery": changes.get("sampled_recovery", base.method_row().sampled_recovery)}
    size = {"steps": steps, "num_envs": count, "rollout_steps": steps // count, "minibatches": 1}
    return replace(base, method="safeexplorer", **size, **changes).resolved()


def make_collector(settings: Settings) -> Collector:
    """Robots, recovery and intervention as in training."""
    env = robots.make(settings.robot, settings.num_envs, action_noise=settings.action_noise)
    recovery = load_recovery(settings.recovery, env.robot)
    sampled = settings.sampled_recovery
    if sampled and not recovery.has_density:
        raise ValueError(f"--sampled-recovery draws from a density; recovery {recovery.name!r} has none")
    return Collector(env, recovery, make_intervention(settings), settings.rollout_steps, sampled=sampled)


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
        arrays = {name.removeprefix("policy/"): array for name, array in read_arrays(path).items()}
        return Policy(policy_from_arrays(arrays, str(path)), f"weights in {path}")
    settings = stored_settings(path)
    if settings.method in CONSTRAINED:
        raise ValueError(
            f"--policy {path} is a run of {settings.method}, whose policy reads normalised observations; "
            "its gradients are not compared"
        )
    params, update = load_policy(path, settings)
    progress = settings.progress(update)
    return Policy(params, f"{path} at {progress:.1%} of its training", settings, progress)


def hyperparameters(policy: Policy) -> Hyperparameters:
    """Those of the run, or the defaults."""
    return Hyperparameters() if policy.settings is None else policy.settings.resolved().hyperparameters()
