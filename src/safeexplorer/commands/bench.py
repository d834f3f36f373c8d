"""`safeexplorer bench sim | train`: speed on this machine, beside its yardstick."""

import argparse
from typing import Any

from rich.table import Table

from safeexplorer.commands.options import add, add_json, add_subcommands, between, emit, named_path
from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.robots.benchmark import ROBOT_COUNT, bench_simulation
from safeexplorer.runs import benchmark
from safeexplorer.runs.settings import Settings

COMMANDS = {
    "sim": "environment steps per second beside the raw mj_step loop",
    "train": "training steps per second, and where the time goes",
}
METHODS_TIMED = ("safeexplorer", "ppo")


def add_bench(parser: argparse.ArgumentParser) -> None:
    add_subcommands(parser, __name__, COMMANDS, "WHAT")


def add_sim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--robot", nargs="+", default=list(ROBOTS), metavar="ROBOT", help=", ".join(ROBOTS))
    add(parser, "--seconds", "per robot", between(float, 0.01, 86400), 5.0)
    add_json(parser)


def add_train(parser: argparse.ArgumentParser) -> None:
    robots, methods = ", ".join(ROBOTS), ", ".join(METHODS_TIMED)
    parser.add_argument("--robot", nargs="+", metavar="ROBOT", help=f"which to time (default: {robots})")
    parser.add_argument("--method", nargs="+", metavar="METHOD", help=f"which to time (default: {methods})")
    add(parser, "--updates", "length of each run in updates", between(int, 1, 10**6), 30)
    parser.add_argument("--recovery", help="recovery policy (default: the robot's shipped one)")
    text = (
        "instead of new runs, time the next updates of this one, on a copy: a policy that has learned leaves the "
        "region and falls less often than a new one"
    )
    add(parser, "--run", text, named_path, dest="run_folder", metavar="RUN")
    add_json(parser)


def sim_command(args: argparse.Namespace) -> int:
    """Each robot's simulation beside the raw loop."""
    rows = [bench_simulation(name, args.seconds) for name in [get_robot(name).name for name in args.robot]]
    title = f"Environment steps per second, {ROBOT_COUNT} robots on one core"
    table = Table("robot", "safeexplorer", "raw mj_step loop", "ratio", title=title)
    for row in rows:
        ours, raw = row["steps_per_second"], row["raw_steps_per_second"]
        table.add_row(row["robot"], f"{ours:,.0f}", f"{raw:,.0f}", f"{row['ratio']:.2f}")
    return emit(args, rows, table)


def train_command(args: argparse.Namespace) -> int:
    """Every robot with every method: a whole short run each, its curriculum included; or the run that is given."""
    if args.updates <= benchmark.WARM_UP:
        raise ValueError(
            f"--updates is {args.updates}; allowed: more than the {benchmark.WARM_UP} that warm up"
        )
    if args.run_folder and (args.robot or args.method or args.recovery):
        raise ValueError("--run has its own robot, method and recovery; allowed beside it: --updates, --json")
    new = [
        Settings(robot=get_robot(name).name, method=method, recovery=args.recovery or "default").resolved()
        for name in args.robot or ROBOTS
        for method in args.method or METHODS_TIMED
    ]
    rows = [benchmark.bench(run, args.updates) for run in ([args.run_folder] if args.run_folder else new)]
    return emit(args, rows, training_table(rows))


def training_table(rows: list[dict[str, Any]]) -> Table:
    """Speeds and where the time goes, in 80 columns."""
    title = "Training on one core, environment steps per second"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 0, 0, 1))
    for column in ("robot", "method"):
        table.add_column(column, no_wrap=True)
    for column in ("from", "steps/s", "raw", "ratio", "sim/act/\nlearn/rest", "SB3\nPPO", "MiB"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        peer = row["sb3_steps_per_second"]
        parts = (row[part] for part in ("simulate", "act", "learn", "rest"))
        table.add_row(
            row["robot"],
            row["method"],
            f"{row['first_step'] / 1e6:.3g}M",
            f"{row['steps_per_second']:,.0f}",
            f"{row['raw_steps_per_second']:,.0f}",
            f"{row['ratio']:.2f}",
            "/".join(f"{100 * part:.0f}" for part in parts) + "%",
            "-" if peer is None else f"{row['steps_per_second'] / peer:.1f}x",
            f"{row['peak_memory_mib']:,.0f}",
        )
    return table
