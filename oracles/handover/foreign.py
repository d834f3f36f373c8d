"""PPO and safeexplorer_auto on environments that nobody here wrote, and on three written after the rules, with the same
numbers on all of them.

    make foreign              # or: python oracles/handover/foreign.py --only hopper --seeds 1

Every run is a process of its own; stopped, the same command goes on. Results: results/handover/foreign.json, in which
a run replaces the one of the same environment, method and seed.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from environments import FOREIGN, Foreign
from unseen import UNSEEN

from safeexplorer import SafeExplorer, SafeRegion, compare
from safeexplorer.files.provenance import installed_version, provenance
from safeexplorer.runs.results import Result, load_results

ENVIRONMENTS = FOREIGN | UNSEEN
METHODS = ("ppo", "safeexplorer_auto")
# 2,048 steps an update, as is usual for PPO in short trainings; everything else is the class's own.
SETTINGS = {"num_envs": 4, "rollout_steps": 512}
EPISODES, START = 20, 1000  # of a policy alone, at the end, and the seed of the first


def make(name: str, method: str, seed: int) -> SafeExplorer:
    """A new process imports this function."""
    it = ENVIRONMENTS[name]
    region = SafeRegion(distance=it.distance, radius="auto")
    return SafeExplorer(
        [it.make] * SETTINGS["num_envs"],
        it.recovery,
        region,
        method=method,
        seed=seed,
        fell=it.fell,
        environment=name,
        **SETTINGS,
    )


def alone(name: str, run: Result) -> dict[str, float]:
    """The policy without its recovery and without noise, in new episodes."""
    it = ENVIRONMENTS[name]
    agent = SafeExplorer.load(run.folder)
    agent.fell = it.fell
    judged = agent.evaluate([it.make] * EPISODES, seed=START)
    return {"alone_return": judged.total_return, "alone_falls": judged.falls}


def falls_of_recovery(name: str) -> float:
    """The share of the same episodes in which the recovery alone falls."""
    it = ENVIRONMENTS[name]
    return float(np.mean([recovery_falls(it, it.make(), START + number) for number in range(EPISODES)]))


def recovery_falls(it: Foreign, env: gymnasium.Env, seed: int) -> bool:
    """Does an episode under the recovery end in a fall?"""
    observation, _ = env.reset(seed=seed)
    while True:
        action = it.recovery(np.asarray(observation, np.float32)[None])[0]
        observation, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            return bool(info[it.fell] if it.fell else terminated)


def record(name: str, run: Result) -> dict[str, Any]:
    settings, numbers = run.spec.settings, run.numbers
    kept = ("steps", "falls", "final_reward", "exits", "recovery_rate", "recovery_rate_final", "seconds")
    return (
        {"environment": name, "method": settings.method, "seed": settings.seed}
        | {key: numbers[key] for key in kept}
        | alone(name, run)
        | {"commit": run.provenance["commit"]}
    )


def merged(known: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record per environment, method and seed, in that order; the new one where there are two."""
    by_run = {(r["environment"], r["method"], r["seed"]): r for r in [*known, *new]}
    order = list(ENVIRONMENTS)
    return [by_run[key] for key in sorted(by_run, key=lambda key: (order.index(key[0]), *key[1:]))]


def table(records: list[dict[str, Any]]) -> str:
    """A row per environment, PPO / safeexplorer_auto: falls per seed, then mean returns."""
    lines = [
        "| environment | steps | recovery; D | falls per seed | times fewer | return in training | alone |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, it in ENVIRONMENTS.items():
        runs = {m: [r for r in records if (r["environment"], r["method"]) == (name, m)] for m in METHODS}
        if not all(runs.values()):
            continue
        falls = {m: [r["falls"] for r in runs[m]] for m in METHODS}
        usual, ours = (np.mean(falls[m]) for m in METHODS)
        fewer = f"{usual / ours:,.0f}" if ours else "none"
        cells = [" ".join(f"{n:,}" for n in falls[m]) for m in METHODS]
        returns = [
            " / ".join(f"{np.mean([r[key] for r in runs[m]]):,.0f}" for m in METHODS)
            for key in ("final_reward", "alone_return")
        ]
        row = [it.env, f"{it.steps:,}", it.given, " / ".join(cells), fewer, *returns]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(ENVIRONMENTS), choices=list(ENVIRONMENTS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument(
        "--seeds", type=int, default=3, help="of each method; 0: only read the runs that are there"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("runs/foreign"))
    parser.add_argument("--out", type=Path, default=Path("results/handover/foreign.json"))
    args = parser.parse_args()
    for name in args.only if args.seeds else ():
        seeds, steps = range(1, args.seeds + 1), ENVIRONMENTS[name].steps
        compare(partial(make, name), args.methods, seeds, steps, args.folder / name, args.workers)
    found = {name: sorted((args.folder / name).glob("*/run.json")) for name in ENVIRONMENTS}
    runs = [
        (name, run) for name in ENVIRONMENTS for run in load_results([file.parent for file in found[name]])
    ]
    known = json.loads(args.out.read_text())["runs"] if args.out.exists() else []
    records = merged(known, [record(name, run) for name, run in runs if run.finished])
    versions = provenance() | {package: installed_version(package) for package in ("box2d", "scipy")}
    recoveries = {name: falls_of_recovery(name) for name in ENVIRONMENTS}
    facts = {"settings": SETTINGS, "episodes_alone": EPISODES, "versions": versions}
    facts |= {"falls_of_recovery_alone": recoveries, "runs": records}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(facts, indent=1) + "\n")
    print(table(records))


if __name__ == "__main__":
    main()
