"""`safeexplorer bench`: the simulation alone, or whole training runs."""

from __future__ import annotations

import argparse

from safeexplorer.commands.bench_sim import add_bench_sim
from safeexplorer.commands.bench_train import add_bench_train


def add_bench(parser: argparse.ArgumentParser) -> None:
    """`bench sim` and `bench train`."""
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    add_bench_sim(commands.add_parser("sim", help="environment steps per second beside the raw mj_step loop"))
    add_bench_train(commands.add_parser("train", help="training steps per second, and where the time goes"))
