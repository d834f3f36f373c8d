"""What moves PPO's numbers on a robot: one change at a time, on a short budget.

    python oracles/paper/causes.py --steps 1200000 --seeds 1 2 3

The paper leaves each of these open, or is silent about it. Every run is a process of its own; results:
results/evidence/causes.json, in which a run replaces the one of the same robot, change, seed and steps.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from safeexplorer.files.provenance import provenance

OPTIONS = {
    "as it is": [],
    "learning rate stays": ["--no-anneal"],
    "value loss without the factor 0.5": ["--value-coefficient", "1.0"],
    "observations normalised": ["--normalise-observations"],
    "observations normalised, rewards scaled": ["--normalise-observations", "--scale-rewards"],
    "2048 steps an update": ["--rollout-steps", "512"],
}


def begin_with(log_std: float) -> None:
    """The spread at the start."""
    from safeexplorer.runs import policies

    original = policies.init_actor_critic

    def changed(*args: object, **kwargs: object) -> dict:
        params = original(*args, **kwargs)
        return params | {"log_std": np.full_like(params["log_std"], log_std)}

    policies.init_actor_critic = changed


def begin_uniform() -> None:
    """Weights and biases within 1/sqrt(fan in), as layers of torch begin, instead of orthogonal ones."""
    from safeexplorer.learning import networks

    networks.init_mlp = lambda rng, sizes, *_: networks.init_uniform(rng, sizes)


def learn_from(change: Callable) -> None:
    """The learner sees another rollout than was collected."""
    from safeexplorer.learning.learners import WeightedLearner

    original = WeightedLearner.update
    WeightedLearner.update = lambda self, rollout, *rest: original(self, change(rollout), *rest)


def time_limit_is_an_end() -> None:
    """Nothing is expected after the time limit."""
    learn_from(
        lambda r: r._replace(terminated=r.terminated | r.truncated, truncated=np.zeros_like(r.truncated))
    )


def stored_within_bounds() -> None:
    """What is executed is stored, not what was drawn."""
    learn_from(lambda r: r._replace(action=np.clip(r.action, -1.0, 1.0)))


def start_without_noise() -> None:
    """Every episode begins in the nominal pose."""
    from safeexplorer.robots import half_cheetah

    half_cheetah.RESET_NOISE = 0.0


PATCHES = {
    "log sigma begins at -1": lambda: begin_with(-1.0),
    "networks begin uniform": begin_uniform,
    "the time limit is an end": time_limit_is_an_end,
    "stored within bounds": stored_within_bounds,
    "no reset noise": start_without_noise,
}
CHANGES = [*OPTIONS, *PATCHES]
KEPT = ("steps", "falls", "final_reward")
ONE = "--one"  # followed by a change and the words of `safeexplorer train`


def run_one(change: str, words: list[str]) -> int:
    """In a process of its own."""
    from safeexplorer.cli import main

    if change in PATCHES:
        PATCHES[change]()
    return main([*words, *OPTIONS.get(change, [])])


def table(records: list[dict]) -> str:
    lines = ["| change | reward | falls |", "|---|---|---|"]
    for change in CHANGES:
        runs = [r for r in records if r["change"] == change]
        if runs:
            rewards, falls = ([r[name] for r in runs] for name in ("final_reward", "falls"))
            cells = [f"{np.mean(x):,.0f} ({', '.join(f'{n:,.0f}' for n in x)})" for x in (rewards, falls)]
            lines.append(f"| {change} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="half_cheetah")
    parser.add_argument("--changes", nargs="*", default=CHANGES, choices=CHANGES)
    parser.add_argument("--seeds", nargs="*", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1_200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("runs/causes"))
    parser.add_argument("--out", type=Path, default=Path("results/evidence/causes.json"))
    args = parser.parse_args()
    wanted = [(change, seed) for seed in args.seeds for change in args.changes]
    folders = {one: args.folder / f"{args.robot}-{CHANGES.index(one[0])}-{one[1]}" for one in wanted}
    running: list[subprocess.Popen] = []
    for (change, seed), folder in folders.items():
        if (folder / "summary.json").is_file():
            continue
        while len(running := [p for p in running if p.poll() is None]) >= args.workers:
            time.sleep(0.5)
        train = ["train", args.robot, "--method", "ppo", "--steps", str(args.steps), "--seed", str(seed)]
        running.append(
            subprocess.Popen([sys.executable, __file__, ONE, change, *train, "--out", str(folder)])
        )
    for process in running:
        process.wait()
    known = json.loads(args.out.read_text())["runs"] if args.out.exists() else []
    by_run = {(r["robot"], r["change"], r["seed"]): r for r in known}
    for (change, seed), folder in folders.items():
        if (folder / "summary.json").is_file():
            summary = json.loads((folder / "summary.json").read_text())
            facts = {"robot": args.robot, "change": change, "seed": seed} | {k: summary[k] for k in KEPT}
            facts |= {k: provenance()[k] for k in ("commit", "jax")}
            by_run[args.robot, change, seed] = facts
    records = sorted(by_run.values(), key=lambda r: (r["robot"], CHANGES.index(r["change"]), r["seed"]))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"runs": records}, indent=1) + "\n")
    print(table([r for r in records if r["robot"] == args.robot]))


if __name__ == "__main__":
    sys.exit(run_one(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == [ONE] else main())
