"""safeexplorer_auto with each of its parts off in turn, on a short budget, beside PPO and the paper's SafeExplorer.

    make ablation             # or: python oracles/handover/ablation.py --robots ant --seeds 1
    python oracles/handover/ablation.py --short    # trainings so short that they are in haste, with and without it

Every run is a process of its own; stopped, the same command goes on. Results: results/handover/ablation.json and
short.json, in which a run replaces the one of the same robot, row and seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.campaigns.campaign import Campaign, make_jobs
from safeexplorer.campaigns.local import LocalEngine
from safeexplorer.campaigns.overview import Overview
from safeexplorer.learning.methods import PARTS
from safeexplorer.runs.results import Result, load_results
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import RunSpec, run_spec

BUDGETS = {"half_cheetah": 1_000_000, "ant": 1_000_000}
SHORT = {"half_cheetah": 200_000, "ant": 500_000}
AUTO = {"method": "safeexplorer_auto"}
ROWS: dict[str, dict[str, Any]] = {
    "all parts": AUTO,
    "the clock's radius": AUTO | {"schedule": "linear"},
    **{f"no {part}": AUTO | {part: False} for part in PARTS},
    "safeexplorer": {"method": "safeexplorer"},
    "ppo": {"method": "ppo"},
}
SHORT_ROWS = {"all parts": AUTO, "no haste": AUTO | {"haste": 1.0}, "ppo": ROWS["ppo"]}
EVALUATIONS = 5  # of the policy alone, in a training
KEPT = ("steps", "falls", "final_reward", "exits", "recovery_rate", "alone_return_late", "alone_falls_late")


def spec_of(robot: str, steps: int, seed: int, row: dict[str, Any]) -> RunSpec:
    settings = Settings(robot=robot, steps=steps, seed=seed, **row).resolved()
    every = {"eval_every": settings.updates // EVALUATIONS, "eval_episodes": 5}
    return run_spec(Settings(**settings.as_dict() | every))


def record(robot: str, row: str, seed: int, run: Result) -> dict[str, Any]:
    return (
        {"robot": robot, "row": row, "seed": seed}
        | {name: run.numbers[name] for name in KEPT}
        | {"commit": run.provenance["commit"], "jax": run.provenance["jax"]}
    )


def merged(known: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record per robot, row and seed, in that order; the new one where there are two."""
    by_run = {(r["robot"], r["row"], r["seed"]): r for r in [*known, *new]}
    robots, rows = list(BUDGETS), list(ROWS | SHORT_ROWS)
    order = sorted(by_run, key=lambda key: (robots.index(key[0]), rows.index(key[1]), key[2]))
    return [by_run[key] for key in order]


def table(records: list[dict[str, Any]]) -> str:
    """A row per row, both robots: falls per seed, mean return in the last tenth, mean return of the policy alone."""
    lines = ["| | " + " | ".join(f"{robot}: falls | return | alone" for robot in BUDGETS) + " |"]
    lines += ["|---|" + "---|---|---|" * len(BUDGETS)]
    known = {r["row"] for r in records}
    for row in (name for name in ROWS | SHORT_ROWS if name in known):
        cells = [row]
        for robot in BUDGETS:
            runs = [r for r in records if (r["robot"], r["row"]) == (robot, row)]
            cells.append(", ".join(f"{r['falls']:,}" for r in runs))
            for name in ("final_reward", "alone_return_late"):
                values = [r[name] for r in runs if r[name] is not None]
                cells.append(f"{np.mean(values):,.0f}" if values else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robots", nargs="*", default=list(BUDGETS), choices=list(BUDGETS))
    parser.add_argument("--short", action="store_true", help=f"{SHORT} steps instead of {BUDGETS}")
    parser.add_argument("--rows", nargs="*", choices=list(ROWS | SHORT_ROWS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument(
        "--workers", type=int, default=2, help="runs at a time; 0: only read those that are there"
    )
    parser.add_argument("--folder", type=Path, default=Path("runs/ablation"))
    args = parser.parse_args()
    budgets, rows = (SHORT, SHORT_ROWS) if args.short else (BUDGETS, ROWS)
    out = Path("results/handover/short.json" if args.short else "results/handover/ablation.json")
    wanted = {
        spec_of(robot, budgets[robot], seed, rows[row]): (robot, row, seed)
        for robot in args.robots
        for seed in args.seeds
        for row in args.rows or rows
    }
    jobs = make_jobs(wanted, args.folder)
    if args.workers:
        with Overview() as overview:
            Campaign(jobs, LocalEngine(args.workers), overview).run()
    runs = load_results([job.folder for job in jobs if (job.folder / "run.json").is_file()])
    names = {spec.key: name for spec, name in wanted.items()}
    new = [record(*names[run.spec.key], run) for run in runs if run.finished]
    known = json.loads(out.read_text())["runs"] if out.exists() else []
    records = merged(known, new)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"budgets": budgets, "runs": records}, indent=1) + "\n")
    print(table(records))


if __name__ == "__main__":
    main()
