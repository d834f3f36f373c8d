"""`safeexplorer evaluate RUN`: the policy of a run without its recovery."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from safeexplorer import robots
from safeexplorer.acting.evaluation import evaluate
from safeexplorer.files.tables import read_columns
from safeexplorer.runs.policies import load_policy
from safeexplorer.runs.settings import stored_settings
from safeexplorer.runs.summary import tidy
from safeexplorer.runs.world import make_intervention


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
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=evaluate_command)


def evaluate_command(args: argparse.Namespace) -> int:
    """Print both evaluations."""
    if args.episodes < 1:
        raise ValueError(f"--episodes is {args.episodes}; allowed: a whole number of at least 1")
    if args.seed < 0:
        raise ValueError(f"--seed is {args.seed}; allowed: a whole number of at least 0")
    result = evaluate_run(args.folder, args.episodes, args.seed)
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
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
    Console().print(table)
    return 0


def evaluate_run(folder: Path, episodes: int, seed: int) -> dict[str, Any]:
    """The newest policy in `folder`, with its noise and without, ready for JSON."""
    settings = stored_settings(folder)
    params, update = load_policy(folder, settings)
    progress = settings.progress(update)
    env, intervention = robots.make(settings.robot, episodes), make_intervention(settings)
    rows = {
        name: evaluate(params, env, intervention, progress, seed, deterministic)
        for name, deterministic in (("noisy", False), ("deterministic", True))
    }
    env.close()
    return {
        "robot": settings.robot,
        "method": settings.method,
        "seed": settings.seed,
        "steps": update * settings.batch_size,
        "episodes": episodes,
        "mixed_return": tidy(read_columns(folder / "metrics.csv")["return_trailing"][update - 1], 17),
        **{name: {k: float(x) for k, x in row._asdict().items()} for name, row in rows.items()},
    }
