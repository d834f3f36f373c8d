"""`safeexplorer recovery train | select | grade | replay | list`."""

import argparse
import math
from dataclasses import Field
from pathlib import Path

from rich.table import Column, Table

from safeexplorer.commands.options import (
    SEED,
    STEPS,
    THREADS,
    add,
    add_json,
    add_run,
    add_settings,
    add_subcommands,
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

COMMANDS = {
    "train": "pre-train a recovery with soft actor-critic, or go on with it",
    "select": "grade the snapshots of a pre-training run and keep the best",
    "grade": "survival and re-entry from randomised resets",
    "replay": "the recovery from every first exit that a training run logged",
    "list": "the recoveries that have a name",
}
QUICK_RESETS = 200
IN_PYTHON = "SafeExplorer.load({folder}, env=..., recovery=..., region=...).audit()"  # instead of a replay
RESETS = between(int, 1, 10**7)


def add_recovery(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, __name__, COMMANDS)


def add_train(parser: argparse.ArgumentParser) -> None:
    add(parser, "robot", ", ".join(ROBOTS), metavar="ROBOT")
    add_settings(parser, RecoverySettings, default_of, leave_out=["robot"])
    add(parser, "--out", "run folder (default: runs/recovery-ROBOT-FLAVOUR-seedSEED)", named_path)
    add(parser, "--threads", "threads for the simulation", THREADS, 1)
    add(parser, "--checkpoint-every", "environment steps", STEPS, 500_000)
    add(parser, "--max-seconds", "stop and save after so long", between(float, 0, math.inf))
    parser.set_defaults(max_seconds=math.inf)


def default_of(f: Field) -> str:
    """What a setting is if nothing is said, and where a robot's recipe has it otherwise."""
    own = {r.name: r.recipe[f.name] for r in ROBOTS.values() if f.name in r.recipe}
    return f"{f.default}" + "".join(f"; {robot}: {value}" for robot, value in own.items())


def add_select(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "folder of a pre-training run")
    add(parser, "--out", "recovery file to write (.npz)", named_path, required=True)
    add(parser, "--snapshot", "take this snapshot (steps) instead of the best", between(int, 0, 10**12))
    add(parser, "--trial-resets", "resets per snapshot", RESETS, 500)
    parser.add_argument("--commit", help="commit of the training code, where the run could not know it")
    add_grading(parser)


def add_grade(parser: argparse.ArgumentParser) -> None:
    add(parser, "robot", ", ".join(ROBOTS), metavar="ROBOT")
    parser.add_argument("--recovery", nargs="+", metavar="NAME", help="names or files (default: all known)")
    add_json(parser)
    add(parser, "--plot", "draw re-entry against the radius into this file", named_path)
    add(parser, "--out", "write the JSON to this file too", named_path)
    add(parser, "--seed", "seed of the resets", SEED, 0)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RESETS} resets: a first impression")
    add_grading(parser)


def add_replay(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "run folder with logged exits")
    add(parser, "--recovery", "names or files (default: the run's own)", nargs="+", metavar="NAME")
    add_json(parser)
    add(parser, "--threads", "threads for the simulation", THREADS, 1)


def add_grading(parser: argparse.ArgumentParser) -> None:
    add(parser, "--resets", "randomised resets", RESETS, 2000)
    add(parser, "--threads", "threads for the simulation", THREADS, 1)


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
    how = {"threads": args.threads, "commit": args.commit, "say": tell}
    resets = (args.trial_resets, args.resets)
    result = select(args.folder, args.out, steps=args.snapshot, resets=resets, **how)
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
