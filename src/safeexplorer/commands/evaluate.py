"""`safeexplorer evaluate RUN`: the policy of a run without its recovery, and with it."""

import argparse

from rich.table import Table

from safeexplorer.commands.options import SEED, add, add_json, add_run, between, emit
from safeexplorer.runs.policies import evaluate_run
from safeexplorer.runs.settings import robot_settings

IN_PYTHON = "SafeExplorer.load({folder}).evaluate(env)"


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Let the policy of a run's newest checkpoint act alone, as it will when deployed: the task return J, falls per "
        "episode, and beta, the share of steps on which training would have called the recovery; beside J_mix, the "
        "same policy from the same starts with its recovery, and the mean return of the last 100 training episodes."
    )
    add_run(parser)
    add(parser, "--episodes", "with noise and without each", between(int, 1, 10**5), 20)
    add(parser, "--seed", "of the starts and of the noise", SEED, 0)
    add_json(parser)


def evaluate_command(args: argparse.Namespace) -> int:
    """Print both evaluations."""
    robot_settings(args.folder, IN_PYTHON)
    result = evaluate_run(args.folder, args.episodes, args.seed)
    names = {"noisy": "alone", "deterministic": "alone, no noise", "mixed": "with the recovery"}
    table = Table("policy", "return", "falls/episode", "beta", "steps/episode")
    for name, label in names.items():
        if name in result:
            numbers = zip(result[name].values(), ("{:,.0f}", "{:,.0f}", "{:.2f}", "{:.4f}"), strict=True)
            total, length, falls, beta = (form.format(value) for value, form in numbers)
            table.add_row(label, total, falls, beta, length)
    if result["trailing_return"] is not None:
        table.add_row("last 100 in training", f"{result['trailing_return']:,.0f}", "", "", "")
    table.title = (
        f"{result['robot']}, {result['method']}, seed {result['seed']}, {result['steps']:,} steps; "
        f"{args.episodes} episodes"
    )
    return emit(args, result, table)
