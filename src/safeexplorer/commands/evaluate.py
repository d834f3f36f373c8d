"""`safeexplorer evaluate RUN`: the policy of a run without its recovery."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from safeexplorer.commands.options import add_json, emit
from safeexplorer.runs.policies import evaluate_run


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    """`evaluate RUN`."""
    parser.description = (
        "Let the policy of a run's newest checkpoint act alone, as it will when deployed: the task return J, falls per "
        "episode, and beta, the share of steps on which training would have called the recovery; beside J_mix, the "
        "mean return of the last 100 training episodes, recovery included."
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--episodes", type=int, default=20, help="with noise and without each (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of the starts and of the noise (default: 0)")
    add_json(parser)
    parser.set_defaults(run=evaluate_command)


def evaluate_command(args: argparse.Namespace) -> int:
    """Print both evaluations."""
    if args.episodes < 1:
        raise ValueError(f"--episodes is {args.episodes}; allowed: a whole number of at least 1")
    if args.seed < 0:
        raise ValueError(f"--seed is {args.seed}; allowed: a whole number of at least 0")
    result = evaluate_run(args.folder, args.episodes, args.seed)
    mixed = result["mixed_return"]
    table = Table("alone", "J", "J_mix - J", "falls/episode", "beta", "steps/episode")
    for label in ("noisy", "deterministic"):
        row = result[label]
        gap = "-" if mixed is None else f"{mixed - row['total_return']:,.0f}"
        table.add_row(
            label,
            f"{row['total_return']:,.0f}",
            gap,
            f"{row['falls']:.2f}",
            f"{row['beta']:.4f}",
            f"{row['length']:,.0f}",
        )
    table.title = (
        f"{result['robot']}, {result['method']}, seed {result['seed']}, {result['steps']:,} steps; "
        f"{args.episodes} episodes"
    )
    return emit(args, result, table)
