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
from rich.table import Table

from safeexplorer import envs
from safeexplorer.audit.auditing import audit, audit_collector
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.measures import REEXIT_STEPS
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED, read_arrays, read_recording
from safeexplorer.interventions import SafeRegion
from safeexplorer.learner import Hyperparameters
from safeexplorer.methods import CONSTRAINED
from safeexplorer.networks import Params, init_actor_critic
from safeexplorer.policies import load_policy, policy_from_arrays, sizes_of
from safeexplorer.recovery import load_recovery
from safeexplorer.rollout import Collector
from safeexplorer.settings import Settings
from safeexplorer.training import make_intervention, stored_settings

LIVE = ("recovery", "steps", "num_envs", "radius", "progress", "sampled_recovery", "action_noise")
DEFAULT_STEPS = 8192
FRESH = "freshly initialised, as at the start of training"
MEANING = {
    "unmasked": "recovery actions scored as the policy's own",
    "relabelled": "the policy's unused proposals scored instead",
    "analytic": "masked, with the closed-form value at exits",
}
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
        help=f"a robot to try out ({', '.join(envs.ROBOTS)}) or a recording, .npz",
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
    result = audit_robot(args) if args.target in envs.ROBOTS else audit_file(args)
    if args.json:
        print(json.dumps(result.as_dict(), indent=1, allow_nan=False))
    else:
        show(result, Console())
    return 0


# -- where the rollout comes from --------------------------------------------------------------------------


def audit_file(args: argparse.Namespace) -> Audit:
    """A recording, at the policy inside it or the one given."""
    path = Path(args.target)
    if not path.exists():
        raise ValueError(f"{args.target!r} is no robot and no file; robots: {', '.join(envs.ROBOTS)}")
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
        distance=recording.distance,
        log_prob=recording.log_prob,
        notes=recording.notes,
    )


def audit_robot(args: argparse.Namespace) -> Audit:
    """A fresh rollout of a built-in robot under the mixed policy."""
    robot = envs.get_robot(args.target)
    policy = Policy(None, FRESH) if args.policy is None else read_policy(args.policy)
    settings = live_settings(args, policy)
    params, sizes = policy.params, (robot.observation_size, robot.action_size)
    if params is None:
        params = init_actor_critic(np.random.default_rng(args.seed), *sizes, settings.hidden)
    if sizes_of(params) != sizes:
        got, wanted = (" to ".join(map(str, pair)) for pair in (sizes_of(params), sizes))
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
    env = envs.make(settings.robot, settings.num_envs, action_noise=settings.action_noise)
    recovery = load_recovery(settings.recovery, env.robot)
    sampled = settings.sampled_recovery
    if sampled and not recovery.has_density:
        raise ValueError(f"--sampled-recovery draws from a density; recovery {recovery.name!r} has none")
    return Collector(env, recovery, make_intervention(settings), settings.rollout_steps, sampled=sampled)


def describe(collector: Collector, progress: float) -> tuple[str, ...]:
    """What was tried out, and what could be."""
    recovery, trigger = collector.recovery, collector.intervention
    radius = f"radius {trigger.radius(progress):g}" if isinstance(trigger, SafeRegion) else "jump start"
    notes = (f"{collector.env.robot.name}, recovery {recovery.name}, {radius}",)
    if recovery.has_density and not collector.sampled:
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
    params, progress = load_policy(path, settings)
    return Policy(params, f"{path} at {progress:.1%} of its training", settings, progress)


def hyperparameters(policy: Policy) -> Hyperparameters:
    """Those of the run, or the defaults."""
    return Hyperparameters() if policy.settings is None else policy.settings.resolved().hyperparameters()


# -- how it is said ----------------------------------------------------------------------------------------


def show(result: Audit, console: Console) -> None:
    """Tables for people."""
    for note in result.notes:
        console.print(note, highlight=False, soft_wrap=True)
    console.print(facts_table(result))
    if result.gradients is not None:
        console.print(gradient_table(result))
    for what, why in result.missing.items():
        console.print(f"{what}: not measured; {why}", highlight=False, soft_wrap=True)
    if not result.suggestions:
        console.print("Nothing stands out: keep the settings.", highlight=False)
        return
    table = Table("what was found", "setting", "because", title="Suggestions", show_lines=True)
    for suggestion in result.suggestions:
        table.add_row(suggestion.rule, suggestion.setting, suggestion.reason)
    console.print(table)


def facts_table(result: Audit) -> Table:
    """Who acted, how it ended, whether it repeats."""
    s, g, f = result.shares, result.segments, result.falls
    table = Table("measure", "value", title="Audit", show_header=False)
    table.add_row("steps", f"{s.steps:,} of {s.robots} robots")
    table.add_row("under recovery", f"{s.recovery_steps:,}, {s.recovery_rate:.1%}")
    table.add_row("episodes", f"{s.episodes:,} ended, {s.episodes_with_recovery:,} with recovery")
    table.add_row("recovery share per episode", spelled(s.episode_quantiles, "{:.1%}"))
    table.add_row("segments", f"{g.count:,}")
    table.add_row("steps per segment", spelled(g.length_quantiles, "{:g}"))
    table.add_row("came back", number(g.reentered, g.success, "of those and the fallen"))
    table.add_row("fell, time limit, still open", f"{g.fell:,}, {g.timed_out:,}, {g.open:,}")
    table.add_row(
        f"left again within {REEXIT_STEPS} steps", number(g.reexits, g.reexit_share, "of those back")
    )
    table.add_row("falls", f"{f.policy:,} under the policy, {f.recovery:,} under recovery")
    if result.region is not None:
        inside, outside = result.region.largest_policy, result.region.smallest_recovery
        table.add_row("largest D under the policy", "-" if inside is None else f"{inside:.4g}")
        table.add_row("smallest D under recovery", "-" if outside is None else f"{outside:.4g}")
    d = result.determinism
    table.add_row("determinism", f"{d.verdict} (check: {d.check}, {d.compared} compared)")
    if result.fit is not None:
        spread = [("policy", result.fit.policy), ("recovery", result.fit.recovery)]
        text = ", ".join(f"{who} {x:.3g}" for who, x in spread if x is not None)
        table.add_row("actions from the policy's mean", f"{text} (in sigma, rms)")
    if result.fit is not None and result.fit.log_prob_error is not None:
        table.add_row("log_prob, largest difference", f"{result.fit.log_prob_error:.3g}")
    if result.importance is not None:
        ratio = result.importance.log10_variance_ratio
        table.add_row("importance weights: ESS", f"{result.importance.ess_share:.3%} of recovery steps")
        table.add_row("importance weights: mean", f"10^{result.importance.log10_mean:.1f}")
        table.add_row("variance, log10 of ratio to masked", "-" if ratio is None else f"{ratio:.2f}")
    return table


def gradient_table(result: Audit) -> Table:
    """Each rule's policy gradient beside the masked one."""
    g = result.gradients
    table = Table("rule", "angle to masked", "norm / masked", "what it does", title="Policy gradient")
    table.caption = (
        f"at the parameters: {result.policy}; masked: {g.policy_steps:,} steps, norm {g.masked_norm:.3g}"
    )
    for name, row in g.compared.items():
        angle = "-" if row.angle is None else f"{row.angle:.1f} deg"
        ratio = "-" if row.norm_ratio is None else f"{row.norm_ratio:.3g}"
        table.add_row(name, angle, ratio, MEANING[name])
    halves = "-" if g.halves_angle is None else f"{g.halves_angle:.1f} deg"
    table.add_row("noise", halves, "", "masked, first half of the time against the second")
    return table


def spelled(quantiles: dict[str, float] | None, form: str) -> str:
    if quantiles is None:
        return "-"
    return ", ".join(f"{name} {form.format(quantiles[name])}" for name in ("min", "median", "q90", "max"))


def number(count: int, share: float | None, of_what: str) -> str:
    return f"{count:,}" if share is None else f"{count:,}, {share:.1%} {of_what}"
