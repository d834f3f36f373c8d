"""CPO of OmniSafe and of ours on one robot, as numbers: one JSON file for `results/evidence/`.

    python oracles/constrained/side_by_side.py --robot ant --theirs FOLDER --ours RUN... --alike RUN... --out FILE

FOLDER is what `run_omnisafe.py --out` wrote; the first RUNs are run folders of `safeexplorer train`, the others of
`as_omnisafe.py`. The columns are those of `curves`; `outside` is the share of the policy's mean actions, over 8,192
steps of its own, beyond their bounds.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from curves import COLUMNS, EPOCH, ours, table, theirs
from same_step import policy_of_state

from safeexplorer import robots
from safeexplorer.acting.networks import policy_mean
from safeexplorer.runs.policies import open_policy

ROBOTS, STEPS = 8, 1024
EVERY = 20  # epochs between rows
LATE = 200_000  # steps


def outside(robot: str, policy: dict[str, Any]) -> float:
    """Share of mean actions beyond the bounds while the policy acts with its noise."""
    env, rng, share = robots.make(robot, ROBOTS), np.random.default_rng(0), []
    observation, _ = env.reset(seed=0)
    bound = env.single_action_space.high
    for _ in range(STEPS):
        mean = policy_mean(policy, observation)
        share.append((np.abs(mean) > bound).mean())
        noise = np.exp(policy["log_std"]) * rng.standard_normal(mean.shape)
        observation, *_ = env.step(mean + noise)
    env.close()
    return float(np.mean(share))


def their_policies(folder: Path) -> dict[int, dict[str, Any]]:
    """Epoch -> policy, of those that were saved."""
    policies = {}
    for path in folder.glob("torch_save/epoch-*.pt"):
        saved = torch.load(path, weights_only=False)
        seen = {name.lstrip("_"): x.numpy() for name, x in saved["obs_normalizer"].items()}
        if seen["count"] > 1:
            normaliser = {"mean": seen["mean"], "deviation": seen["std"]}
            policies[int(path.stem.split("-")[1])] = policy_of_state(saved["pi"]) | {"normaliser": normaliser}
    return dict(sorted(policies.items()))


def thinned(curve: dict[str, list[float]]) -> dict[str, Any]:
    """Every so many epochs and the last, and how often each case was met in all of them."""
    cases, last = curve["case"], len(curve["steps"])
    at = sorted({*range(EVERY - 1, last, EVERY), last - 1})
    rows = [
        {name: float(f"{curve[name][i]:.4g}") for name in COLUMNS} | {"steps": (i + 1) * EPOCH} for i in at
    ]
    shares = {int(case): round(cases.count(case) / last, 4) for case in sorted(set(cases))}
    spells = [len(list(group)) for within, group in groupby(case != 0 for case in cases) if within]
    return {"steps": last * EPOCH, "cases": shares, "spells_out_of_case_0": spells, "rows": rows}


def of_theirs(robot: str, folder: Path) -> dict[str, Any]:
    """One of their runs."""
    shares = {epoch * EPOCH: outside(robot, policy) for epoch, policy in their_policies(folder).items()}
    seed = int(folder.name.split("-")[1])
    return {"side": "OmniSafe", "seed": seed} | thinned(theirs(folder)) | {"outside": shares}


def of_ours(robot: str, folder: Path, side: str) -> dict[str, Any]:
    """One of ours."""
    facts, policy = json.loads((folder / "run.json").read_text()), open_policy(folder)
    made_with = {
        name: facts["provenance"][name] for name in ("commit", "jax", "mujoco", "gymnasium", "numpy")
    }
    run = (
        {"side": side, "seed": facts["settings"]["seed"]}
        | made_with
        | thinned(ours(folder, robots.ROBOTS[robot].action_size))
    )
    updates = table(folder / "metrics.csv")
    return run | {
        "falls": int(updates[-1]["falls"]),
        "case_0": downhill(updates),
        f"case_0_after_{LATE}_steps": downhill([row for row in updates if int(row["steps"]) > LATE]),
        "outside": {policy.update * EPOCH: outside(robot, policy.params)},
    }


def downhill(updates: list[dict[str, str]]) -> dict[str, dict[str, float]]:
    """Updates of case 0 with and without a fall among their steps: how many, their falls, how far they moved."""
    rows = [row for row in updates if float(row["case"]) == 0]
    halves = {
        "with_a_fall": [row for row in rows if float(row["cost_ended"]) > 0],
        "without": [row for row in rows if float(row["cost_ended"]) == 0],
    }
    return {
        name: {
            "updates": len(half),
            "falls": sum(float(row["cost_ended"]) for row in half),
            "kl": round(sum(float(row["approx_kl"]) for row in half), 4),
        }
        for name, half in halves.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", choices=sorted(robots.ROBOTS), required=True)
    parser.add_argument("--theirs", type=Path)
    parser.add_argument("--ours", type=Path, nargs="*", default=[])
    parser.add_argument("--alike", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    label = robots.ROBOTS[args.robot].env_id.replace("/", "")
    folders = sorted(args.theirs.glob(f"CPO-*{label}*/seed-*")) if args.theirs else []
    packages = ("omnisafe", "torch", "mujoco", "gymnasium", "numpy")
    result = {
        "robot": args.robot,
        "method": "CPO, cost 1 per fall, limit 0.05, 2048 steps per epoch",
        "versions of OmniSafe's runs": {name: version(name) for name in packages},
        "runs": [
            *(of_theirs(args.robot, folder) for folder in folders),
            *(of_ours(args.robot, folder, "here") for folder in args.ours),
            *(of_ours(args.robot, folder, "here, as OmniSafe") for folder in args.alike),
        ],
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
