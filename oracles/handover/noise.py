"""Do a trained policy's falls come from its noise? The newest policy of a run beside its recovery, with other noise.

    python oracles/handover/noise.py runs/NAME --out results/evidence/ant-falls-and-noise.json

The region stands as the run left it. `outside`: the share of steps on which the recovery acted. Equal episodes begin in
equal states.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer import robots
from safeexplorer.acting.evaluation import evaluate
from safeexplorer.runs.policies import TrainedPolicy, open_policy

NOISE = (0.0, 1.0, 2.0)  # times the policy's own standard deviation
AT_A_TIME = 250


def falls_with(policy: TrainedPolicy, noise: float, episodes: int) -> dict[str, Any]:
    """So many episodes with so much noise."""
    params = {**policy.params}
    if noise > 0.0:
        params["log_std"] = np.asarray(params["log_std"]) + np.float32(np.log(noise))
    env = robots.make(policy.settings.robot, AT_A_TIME)
    shown = [
        evaluate(params, env, policy.mixed, policy.progress, seed, deterministic=noise == 0.0)
        for seed in range(episodes // AT_A_TIME)
    ]
    env.close()
    steps = AT_A_TIME * sum(one.length for one in shown)
    return {
        "noise": noise,
        "steps": round(steps),
        "falls": round(AT_A_TIME * sum(one.falls for one in shown)),
        "return": round(float(np.mean([one.total_return for one in shown])), 1),
        "outside": round(AT_A_TIME * sum(one.beta * one.length for one in shown) / steps, 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--episodes", type=int, default=1000, help=f"with each noise, a multiple of {AT_A_TIME}"
    )
    parser.add_argument("--out", type=Path, help="where to keep what is printed")
    args = parser.parse_args()
    if args.episodes < AT_A_TIME or args.episodes % AT_A_TIME:
        parser.error(f"--episodes is {args.episodes}; allowed: multiples of {AT_A_TIME}")
    policy = open_policy(args.run)
    if policy.settings.robot is None:
        parser.error(
            f"{args.run} is of an environment of your own; allowed: runs on {', '.join(robots.ROBOTS)}"
        )
    facts = policy.facts | {
        "commit": json.loads((args.run / "run.json").read_text())["provenance"]["commit"],
        "radius": policy.radius,
        "log_std": float(np.mean(policy.params["log_std"])),
    }
    found = facts | {"rows": [falls_with(policy, noise, args.episodes) for noise in NOISE]}
    print(json.dumps(found, indent=1))
    if args.out is not None:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
