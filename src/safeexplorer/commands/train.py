"""`safeexplorer train`, `resume` and `methods`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from safeexplorer.commands.options import add_settings, chosen, option
from safeexplorer.files.fields import difference
from safeexplorer.files.interruption import Stopped
from safeexplorer.learning.methods import CONSTRAINED, METHODS, Method
from safeexplorer.robots import ROBOTS
from safeexplorer.runs.display import TrainingDisplay, summary_table
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.specs import without_effect
from safeexplorer.runs.trackers import TRACKERS
from safeexplorer.runs.training import Training, has_checkpoint, train


def add_train(parser: argparse.ArgumentParser) -> None:
    """`train ROBOT`: every setting is an option."""
    parser.add_argument("robot", choices=list(ROBOTS), metavar="ROBOT", help=", ".join(ROBOTS))
    add_settings(parser, Settings, default_of, leave_out="robot")
    parser.add_argument("--out", type=Path, help="run folder (default: runs/ROBOT-METHOD-seedSEED)")
    add_track(parser)
    parser.set_defaults(run=train_command)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """`resume DIR`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the run folder")
    add_track(parser)
    parser.set_defaults(run=resume_command)


def add_track(parser: argparse.ArgumentParser) -> None:
    """`--track`, which shapes no number of the run."""
    parser.add_argument(
        "--track",
        nargs="+",
        default=[],
        choices=list(TRACKERS),
        help="also feed a dashboard (an extra to install)",
    )


def add_methods(parser: argparse.ArgumentParser) -> None:
    """`methods`."""
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=methods_command)


def default_of(f: Field) -> Any:
    """What a setting is if nothing is said, for people."""
    return "the robot's or the method's" if f.default is None else f.default


def default_folder(settings: Settings) -> Path:
    """runs/<robot>-<method>-seed<seed>."""
    return Path("runs") / f"{settings.robot}-{settings.method}-seed{settings.seed}"


def train_command(args: argparse.Namespace) -> int:
    """Start a run; the same command on an unfinished run of the same settings continues it."""
    settings = Settings(**chosen(args, Settings)).resolved()
    folder = args.out or default_folder(settings)
    if has_checkpoint(folder):
        changed = difference(stored_settings(folder).as_dict(), settings.as_dict())
        if changed:
            raise ValueError(
                f"{folder} holds a run with other settings ({'; '.join(changed)}); choose another --out"
            )
    return run(settings, folder, args.track)


def resume_command(args: argparse.Namespace) -> int:
    """Continue a run from its last checkpoint."""
    settings = stored_settings(args.folder)
    if not has_checkpoint(args.folder):
        raise ValueError(f"{args.folder} has no checkpoint yet; start it again with `safeexplorer train`")
    return run(settings, args.folder, args.track)


def run(settings: Settings, folder: Path, track: Sequence[str] = ()) -> int:
    """Train with a live display, then say how it went and where it lies."""
    console = Console(stderr=True)
    label = f"{settings.robot} {settings.method} seed {settings.seed}"
    left_over = settings.steps - settings.updates * settings.batch_size
    if left_over:
        whole = settings.updates * settings.batch_size
        console.print(
            f"{settings.steps:,} steps are {settings.updates:,} updates of {settings.batch_size:,}: "
            f"{whole:,} steps are run, {left_over:,} left over are not",
            highlight=False,
            soft_wrap=True,
        )
    ignored = without_effect(settings)
    if ignored:
        console.print(
            f"no effect on this run of {settings.method}: {', '.join(map(option, ignored))}",
            highlight=False,
            soft_wrap=True,
        )
    watches = [TRACKERS[name](folder) for name in track]
    try:
        with TrainingDisplay(label, settings.updates * settings.batch_size, console) as display:

            def watch(training: Training, row: dict[str, Any]) -> None:
                for each in (display, *watches):
                    each(training, row)

            train(settings, folder, watch)
    except Stopped as stopped:
        console.print(f"{stopped}. Continue with: safeexplorer resume {folder}", highlight=False)
        return 130
    console.print(summary_table(json.loads((folder / "summary.json").read_text())))
    console.print(f"run folder: {folder}", highlight=False)
    return 0


def methods_command(args: argparse.Namespace) -> int:
    """List the table of methods."""
    methods = (METHODS | CONSTRAINED).values()
    if args.json:
        print(json.dumps([method.__dict__ for method in methods], indent=1))
        return 0
    table = Table("method", "what it does", "recovery steps")
    for m in methods:
        table.add_row(m.name, m.summary, describe(m))
    Console().print(table)
    return 0


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
