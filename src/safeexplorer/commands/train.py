"""`safeexplorer train`, `resume` and `methods`."""

import argparse
from collections.abc import Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from safeexplorer.commands.options import add_settings, chosen, emit, named_path, tell
from safeexplorer.files.fields import difference, option
from safeexplorer.files.interruption import Stopped
from safeexplorer.learning.methods import CONSTRAINED, METHODS, Method
from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.runs.display import TrainingDisplay, summary_table
from safeexplorer.runs.settings import ON_DEVICE, Settings, robot_settings, stored_settings, usual_method
from safeexplorer.runs.specs import without_effect
from safeexplorer.runs.summary import read_summary
from safeexplorer.runs.trackers import TRACKERS
from safeexplorer.runs.training import Training, has_checkpoint, train

IN_PYTHON = "SafeExplorer(env, ...).learn({steps}, folder={folder}), made as before"  # instead of `resume`
FAR_BELOW = 0.25  # of the robot's budget: the curriculum is compressed enough to cost falls


def add_train(parser: argparse.ArgumentParser) -> None:
    """`train ROBOT`: every setting is an option."""
    parser.add_argument("robot", metavar="ROBOT", help=", ".join(ROBOTS))
    add_settings(
        parser, Settings, default_of, leave_out=["robot", "environment", "episode_length", *ON_DEVICE]
    )
    parser.add_argument("--out", type=named_path, help="run folder (default: runs/ROBOT-METHOD-seedSEED)")
    text = "wipe records in the folder whose checkpoints are gone"
    parser.add_argument("--start-over", action="store_true", help=text)
    add_stretch(parser)


def add_resume(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, metavar="DIR", help="the run folder")
    add_stretch(parser)


def add_stretch(parser: argparse.ArgumentParser) -> None:
    """What shapes no number of the run."""
    text, versions = "also feed a dashboard (an extra to install)", "under other versions or XLA flags"
    parser.add_argument("--track", nargs="+", default=[], choices=list(TRACKERS), help=text)
    parser.add_argument("--exact", action="store_true", help=f"refuse to go on {versions}")


def default_of(f: Field) -> Any:
    """What a setting is if nothing is said, for people."""
    if f.name == "method":
        return f"{usual_method(None)}; with another --schedule than auto {usual_method('linear')}"
    return "the robot's or the method's" if f.default is None else f.default


def default_folder(settings: Settings) -> Path:
    """runs/<robot>-<method>-seed<seed>."""
    return Path("runs") / f"{settings.robot}-{settings.method}-seed{settings.seed}"


def settings_of(args: argparse.Namespace) -> Settings:
    """What was said, and what follows from it."""
    said = chosen(args, Settings)
    return Settings(**{"method": usual_method(said.get("schedule"))} | said).resolved()


def train_command(args: argparse.Namespace) -> int:
    """Start a run; the same command on an unfinished run of the same settings continues it."""
    settings = settings_of(args)
    folder = args.out or default_folder(settings)
    if has_checkpoint(folder):
        changed = difference(stored_settings(folder).resolved().as_dict(), settings.as_dict())
        if changed:
            raise ValueError(
                f"{folder} holds a run with other settings ({'; '.join(changed)}); choose another --out"
            )
    say_what_haste_costs(settings)
    return run(settings, folder, args.track, exact=args.exact, start_over=args.start_over)


def resume_command(args: argparse.Namespace) -> int:
    """Continue a run from its last checkpoint; one that was killed before its first begins again."""
    settings = robot_settings(args.folder, IN_PYTHON)
    if not has_checkpoint(args.folder):
        tell(f"{args.folder} has no checkpoint yet: the run begins again")
    return run(settings, args.folder, args.track, exact=args.exact)


def run(settings: Settings, folder: Path, track: Sequence[str] = (), **how: bool) -> int:
    """Train with a live display, then say how it went and where it lies."""
    say_what_will_not_happen(settings)
    watches = [TRACKERS[name](folder) for name in track]
    try:
        with TrainingDisplay(settings.label, settings.updates * settings.batch_size) as display:

            def watch(training: Training, row: dict[str, Any]) -> None:
                for each in (display, *watches):
                    each(training, row)

            train(settings, folder, watch, **how)
    except Stopped as stopped:
        raise Stopped(f"{stopped}. Continue with: safeexplorer resume {folder}") from None
    tell(summary_table(read_summary(folder)), f"run folder: {folder}")
    return 0


def say_what_will_not_happen(settings: Settings) -> None:
    """Steps that fill no update, and settings that this run never reads."""
    whole = settings.updates * settings.batch_size
    if settings.steps > whole:
        tell(
            f"{settings.steps:,} steps are {settings.updates:,} updates of {settings.batch_size:,}: "
            f"{whole:,} steps are run, {settings.steps - whole:,} left over are not"
        )
    ignored = without_effect(settings)
    if ignored:
        tell(f"no effect on this run of {settings.method}: {', '.join(map(option, ignored))}")


def say_what_haste_costs(settings: Settings) -> None:
    """A short budget compresses the curriculum: the region outgrows what the policy has learned."""
    budget, row = get_robot(settings.robot).budget, settings.method_row()
    if (
        row.intervenes
        and settings.schedule not in ("constant", "auto")
        and settings.steps < FAR_BELOW * budget
    ):
        tell(
            f"{settings.steps:,} steps are {settings.steps / budget:.2g} of the {budget:,} that the curriculum is made "
            f"for: it runs {budget / settings.steps:.3g} times as fast, which costs falls"
        )


def methods_command(args: argparse.Namespace) -> int:
    """List the table of methods."""
    methods = (METHODS | CONSTRAINED).values()
    table = Table(Column("method", no_wrap=True), "what it does", "recovery steps")
    for m in methods:
        table.add_row(m.name, m.summary, describe(m))
    return emit(args, [method.__dict__ for method in methods], table)


def describe(method: Method) -> str:
    """How recovery steps enter the update, in one line."""
    if not method.intervenes:
        return "none"
    value = ("analytic" if method.analytic_value else "learned") + (
        ", two heads" if method.critic_heads == 2 else ""
    )
    parts = [
        f"store {method.stored_action}",
        "in the policy loss" if method.policy_steps == "all" else "masked",
        f"value {value}",
        f"reward {method.recovery_reward.replace('_', ' ')}",
        f"gate {method.gate}",
    ]
    if method.importance_cap is not None:
        parts.append(f"importance weights up to {method.importance_cap:g}")
    return "; ".join(parts)
