"""`safeexplorer quickstart`: PPO and SafeExplorer side by side on HalfCheetah, in about two minutes on two cores."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from safeexplorer.files.tables import last_row

ROBOT = "half_cheetah"
METHODS = ("ppo", "safeexplorer")


def add_quickstart(parser: argparse.ArgumentParser) -> None:
    """`quickstart`."""
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="environment steps of each run (default: 1e6)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of both runs (default: 1)")
    parser.add_argument("--out", type=Path, default=Path("runs/quickstart"), help="where the run folders go")
    parser.set_defaults(run=quickstart_command)


def quickstart_command(args: argparse.Namespace) -> int:
    """Train both at once, each in a process of its own; show them as they go, then compare."""
    console = Console(stderr=True)
    folders = {method: args.out / f"{ROBOT}-{method}-seed{args.seed}" for method in METHODS}
    runs = {method: start(method, folder, args) for method, folder in folders.items()}
    try:
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            while any(run.poll() is None for run in runs.values()):
                live.update(overview(folders, args.steps))
                time.sleep(0.25)
    finally:
        for run in runs.values():
            run.terminate()  # a finished one does not mind; an unfinished one saves and can be resumed
            run.wait()
    failed = [method for method, run in runs.items() if run.returncode]
    for method in failed:
        console.print(
            f"{method} did not finish: {runs[method].stderr.read().decode().strip()}", highlight=False
        )
    if not failed:
        compare(folders, console)
    return 1 if failed else 0


def start(method: str, folder: Path, args: argparse.Namespace) -> subprocess.Popen:
    """`safeexplorer train` in a process of its own."""
    words = ["train", ROBOT, "--method", method, "--seed", args.seed, "--steps", args.steps, "--out", folder]
    command = [sys.executable, "-m", "safeexplorer", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def overview(folders: dict[str, Path], steps: int) -> Table:
    """One line per run, from the metrics it has written so far."""
    table = Table("method", "steps", "return", "falls", "recovery rate", title="HalfCheetah, side by side")
    for method, folder in folders.items():
        row = last_row(folder / "metrics.csv")
        if row is None:
            table.add_row(method, "compiling", "", "", "")
            continue
        trailing = "" if row["return_trailing"] is None else f"{row['return_trailing']:,.0f}"
        share = f"{row['steps'] / steps:.0%}"
        table.add_row(method, share, trailing, f"{row['falls']:,.0f}", f"{row['recovery_rate']:.0%}")
    return table


def compare(folders: dict[str, Path], console: Console) -> None:
    """Falls and returns of both, and where to look next."""
    summaries = {m: json.loads((folder / "summary.json").read_text()) for m, folder in folders.items()}
    table = Table("method", "falls in training", "final reward", "steps/s")
    for method, s in summaries.items():
        reward = "-" if s["final_reward"] is None else f"{s['final_reward']:,.0f}"
        speed = f"{s['steps'] / s['seconds']:,.0f}"
        table.add_row(method, f"{s['falls']:,}", reward, speed)
    console.print(table)
    falls = [summaries[m]["falls"] for m in METHODS]
    if falls[1]:
        console.print(f"PPO fell {falls[0] / falls[1]:,.0f} times as often as SafeExplorer.", highlight=False)
    else:
        console.print(f"PPO fell {falls[0]:,} times, SafeExplorer not once.", highlight=False)
    console.print(
        "Every number above is in metrics.csv and episodes.csv of the run folders:", highlight=False
    )
    for folder in folders.values():
        console.print(f"  {folder}", highlight=False, soft_wrap=True)
