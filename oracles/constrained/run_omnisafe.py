"""One training of OmniSafe's own PPO-Lagrangian or CPO on one of our robots, with the paper's settings.

python oracles/constrained/run_omnisafe.py PPOLag 1 --out FOLDER
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "stand_ins"))

import omnisafe
from curves import EPOCH

import safeexplorer.adapters.omnisafe  # noqa: F401 (registers the robots)


def settings(algorithm: str, seed: int, steps: int, folder: Path) -> dict[str, Any]:
    """The paper's settings in OmniSafe's words; one robot, because it begins every epoch with a reset and forgets
    the episodes that were running."""
    limit = {"cost_limit": 0.05}
    network = {"hidden_sizes": [64, 64], "activation": "tanh", "lr": 3e-4}
    shared = {
        "seed": seed,
        "train_cfgs": {"total_steps": steps, "vector_env_nums": 1, "torch_threads": 1},
        "algo_cfgs": {
            "steps_per_epoch": EPOCH,
            "update_iters": 10,
            "batch_size": 64,
            "target_kl": 0.02,
            "reward_normalize": True,
            "obs_normalize": True,
            "cost_normalize": False,
        },
        "logger_cfgs": {"use_wandb": False, "use_tensorboard": False, "log_dir": str(folder)},
        "model_cfgs": {"linear_lr_decay": True, "actor": network, "critic": network},
    }
    if algorithm == "PPOLag":
        shared["lagrange_cfgs"] = limit | {"lagrangian_multiplier_init": 0.001, "lambda_lr": 0.035}
        shared["algo_cfgs"] |= {"clip": 0.2}
    else:
        shared["algo_cfgs"] |= limit
    return shared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=["PPOLag", "CPO"])
    parser.add_argument("seed", type=int)
    parser.add_argument("--robot", default="SafeExplorerHalfCheetah-v0")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    custom = settings(args.algorithm, args.seed, args.steps, args.out)
    omnisafe.Agent(args.algorithm, args.robot, custom_cfgs=custom).learn()


if __name__ == "__main__":
    main()
