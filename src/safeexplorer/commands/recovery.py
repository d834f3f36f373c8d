"""`safeexplorer recovery train | select | grade | replay | list`."""

import argparse
import math
from dataclasses import Field
from pathlib import Path

from rich.table import Column, Table

from safeexplorer.commands.options import (
    SEED,
    THREADS,
    add_json,
    add_settings,
    between,
    chosen,
    emit,
    named_path,
    tell,
)
from safeexplorer.files.writing import write_json
from safeexplorer.pretraining.display import PretrainingDisplay, grade_table, plot_grades
from safeexplorer.pretraining.grading import Share, grade
from safeexplorer.pretraining.selection import select
from safeexplorer.pretraining.settings import RecoverySettings, recovery_settings
from safeexplorer.pretraining.training import train_recovery
from safeexplorer.recovery.library import known_recoveries, load_recovery, provenance, shipped
from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.runs.replay import replay, replay_run
from safeexplorer.runs.settings import robot_settings

QUICK_RESETS = 200
IN_PYTHON = "SafeExplorer.load({folder}, env=..., recovery=..., region=...).audit()"  # instead of a replay
RESETS = between(int, 1, 10**7)


def add_recovery(parser: argparse.ArgumentParser) -> None:
    """The subcommands; each parser carries its function as `run`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_train(
        commands.add_parser("train", help="pre-train a recovery with soft actor-critic, or go on with it")
    )
    add_select(
        commands.add_parser("select", help="grade the snapshots of a pre-training run and keep the best")
    )
    add_grade(commands.add_parser("grade", help="survival and re-entry from randomised resets"))
    add_replay(
        commands.add_parser("replay", help="the recovery from every first exit that a training run logged")
    )
    listing = commands.add_parser("list", help="the recoveries that have a name")
    add_json(listing)
    listing.set_defaults(run=list_command)


def add_train(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add_settings(parser, RecoverySettings, default_of, leave_out=["robot"])
    parser.add_argument(
        "--out", type=named_path, help="run folder (default: runs/recovery-ROBOT-FLAVOUR-seedSEED)"
    )
    parser.add_argument("--threads", type=THREADS, default=1, help="threads for the simulation (default: 1)")
    parser.add_argument(
        "--checkpoint-every",
        type=between(int, 1, 10**12),
        default=500_000,
        help="environment steps (default: 500000)",
    )
    parser.add_argument(
        "--max-seconds",
        type=between(float, 0, math.inf),
        default=float("inf"),
        help="stop and save after so long",
    )
    parser.set_defaults(run=train_command)


def default_of(f: Field) -> str:
    """What a setting is if nothing is said, and where a robot's recipe has it otherwise."""
    own = {r.name: r.recipe[f.name] for r in ROBOTS.values() if f.name in r.recipe}
    return f"{f.default}" + "".join(f"; {robot}: {value}" for robot, value in own.items())


def add_select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, metavar="RUN", help="folder of a pre-training run")
    parser.add_argument("--out", type=named_path, required=True, help="recovery file to write (.npz)")
    parser.add_argument(
        "--snapshot", type=between(int, 0, 10**12), help="take this snapshot (steps) instead of the best"
    )
    parser.add_argument("--trial-resets", type=RESETS, default=500, help="resets per snapshot (default: 500)")
    parser.add_argument("--commit", help="commit of the training code, where the run could not know it")
    add_grading(parser)
    parser.set_defaults(run=select_command)


def add_grade(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--recovery", nargs="+", metavar="NAME", help="names or files (default: all known)")
    add_json(parser)
    parser.add_argument("--plot", type=named_path, help="draw re-entry against the radius into this file")
    parser.add_argument("--out", type=named_path, help="write the JSON to this file too")
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the resets (default: 0)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RESETS} resets: a first impression")
    add_grading(parser)
    parser.set_defaults(run=grade_command)


def add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, metavar="RUN", help="run folder with logged exits")
    parser.add_argument(
        "--recovery", nargs="+", metavar="NAME", help="names or files (default: the run's own)"
    )
    add_json(parser)
    parser.add_argument("--threads", type=THREADS, default=1, help="threads for the simulation (default: 1)")
    parser.set_defaults(run=replay_command)


def add_robot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", metavar="ROBOT", help=", ".join(ROBOTS))


def add_grading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--resets", type=RESETS, default=2000, help="randomised resets (default: 2000)")
    parser.add_argument("--threads", type=THREADS, default=1, help="threads for the simulation (default: 1)")


def train_command(args: argparse.Namespace) -> int:
    """Pre-train; the same command on an unfinished run continues it."""
    settings = recovery_settings(**chosen(args, RecoverySettings))
    name = f"recovery-{settings.robot}-{settings.flavour}-seed{settings.seed}"
    folder = args.out or Path("runs") / name
    limits = {name: getattr(args, name) for name in ("threads", "checkpoint_every", "max_seconds")}
    with PretrainingDisplay(name, settings.steps) as watch:
        trainer = train_recovery(settings, folder, watch=watch, **limits)
    tell(f"{trainer.falls:,} falls in {trainer.steps:,} steps; snapshots in {folder}")
    return 0


def select_command(args: argparse.Namespace) -> int:
    """Grade every snapshot, print how they did, write the chosen one with its full grade."""
    result = select(
        args.folder,
        args.out,
        steps=args.snapshot,
        resets=(args.trial_resets, args.resets),
        threads=args.threads,
        commit=args.commit,
        say=tell,
    )
    tell(grade_table([result["grade"]]), f"{args.out}: snapshot at {result['environment_steps']:,} steps")
    return 0


def grade_command(args: argparse.Namespace) -> int:
    """Grade recoveries side by side, from the same resets."""
    robot = get_robot(args.robot)
    resets = QUICK_RESETS if args.quick else args.resets
    names = args.recovery or known_recoveries(robot.name, robot.posture)
    recoveries = [load_recovery(name, robot) for name in names]
    grades = []
    for recovery in recoveries:
        tell(f"grading {recovery.name} from {resets:,} resets")
        grades.append(grade(robot, recovery, resets, args.seed, args.threads))
    if args.out:
        write_json(args.out, grades)
    if args.plot:
        plot_grades(grades, args.plot)
    return emit(args, grades, grade_table(grades))


def replay_command(args: argparse.Namespace) -> int:
    """The operational grade of recoveries on one run's exits; that of the run's own is kept with the run."""
    robot = get_robot(robot_settings(args.folder, IN_PYTHON).robot)
    if args.recovery:
        results = [replay(args.folder, load_recovery(name, robot), args.threads) for name in args.recovery]
    else:
        results = [replay_run(args.folder, args.threads)]
    table = Table("recovery", "exits", "survived", "re-entered", "median steps", title=str(args.folder))
    for result in results:
        shares = [str(Share(**result[key])) for key in ("survived", "reentered")]
        steps = "-" if result["median_steps"] is None else f"{result['median_steps']:g}"
        table.add_row(result["recovery"], f"{result['exits']:,}", *shares, steps)
    return emit(args, results, table)


def list_command(args: argparse.Namespace) -> int:
    """Every robot's recoveries; the first is its default."""
    facts = {name: provenance(name) for name in shipped()}
    names = (Column(name, no_wrap=True) for name in ("robot", "recovery"))
    table = Table(*names, "steps of training", "falls", "survived resets", Column("sha256", no_wrap=True))
    known = {robot.name: known_recoveries(robot.name, robot.posture) for robot in ROBOTS.values()}
    for robot, name in ((robot, name) for robot, names in known.items() for name in names):
        row = ["scripted", "-", "-", "-"]
        if name in facts:
            fact, survived = facts[name], Share(**facts[name]["grade"]["survived"])
            row = [f"{fact['environment_steps']:,}", f"{fact['falls']:,}", str(survived)]
            row.append(shipped()[name]["sha256"][:8])
        table.add_row(robot, name, *row)
    return emit(args, {robot: {n: facts.get(n) for n in names} for robot, names in known.items()}, table)
