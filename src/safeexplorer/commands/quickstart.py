"""`safeexplorer quickstart`: PPO and SafeExplorer side by side on HalfCheetah, in about two minutes on two cores."""

import argparse
from pathlib import Path

from rich.table import Table

from safeexplorer.campaigns import Job, make_jobs, run_jobs
from safeexplorer.commands.options import SEED, STEPS, add, named_path, tell
from safeexplorer.runs.settings import Settings, usual_method
from safeexplorer.runs.specs import run_spec
from safeexplorer.runs.summary import read_summary

METHODS = ("ppo", usual_method(None))


def add_quickstart(parser: argparse.ArgumentParser) -> None:
    add(parser, "--steps", "environment steps of each run (default: 1e6)", STEPS)
    add(parser, "--seed", "seed of both runs", SEED, 1)
    add(parser, "--out", "where the run folders go", named_path)
    parser.set_defaults(steps=1_000_000, out=Path("runs/quickstart"))


def quickstart_command(args: argparse.Namespace) -> int:
    """Train both at once, each in a process of its own; show them as they go, then compare."""
    runs = [Settings(robot="half_cheetah", method=m, seed=args.seed, steps=args.steps) for m in METHODS]
    jobs = make_jobs(map(run_spec, runs), args.out)
    failed = run_jobs(jobs, "local", workers=len(jobs))
    tell(*(f"{job.spec.label} failed: {job.error}" for job in failed))
    if not failed:
        compare(jobs)
    return 1 if failed else 0


def compare(jobs: list[Job]) -> None:
    """Falls and returns of both, and where to look next."""
    table = Table("method", "falls in training", "final reward", "steps/s")
    falls = {}
    for job in jobs:
        s = read_summary(job.folder)
        reward = "-" if s["final_reward"] is None else f"{s['final_reward']:,.0f}"
        table.add_row(s["method"], f"{s['falls']:,}", reward, f"{s['steps'] / s['seconds']:,.0f}")
        falls[s["method"]] = s["falls"]
    ours, ppo = falls[METHODS[1]], falls["ppo"]
    files = "Every number above is in metrics.csv and episodes.csv of the run folders:"
    folders = [f"  {job.folder}" for job in jobs]
    page = f"Both as one page: safeexplorer report {jobs[0].folder.parent} --out report.html"
    tell(table, f"PPO fell {ppo:,} times, SafeExplorer {often(ours)}.", files, *folders, page)


def often(count: int) -> str:
    return {0: "not once", 1: "once"}.get(count, f"{count:,} times")
