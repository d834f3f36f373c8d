"""OmniSafe's CPO trains; at every epoch our own step is computed from the batch, the policy and the cost it has.

    python oracles/constrained/same_step.py --robot SafeExplorerAnt-v0 --epochs 8 [--limit 2]

Prints, per epoch, the cost, the case on both sides, the part of the step that the line search left, and
|our step - their step| / |their step|. A higher limit leads into other cases.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from curves import EPOCH
from jax.flatten_util import ravel_pytree
from run_omnisafe import omnisafe, settings

from safeexplorer.learning.constrained.cpo import improve_policy
from safeexplorer.learning.constrained.estimates import Steps


def policy_of_state(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Their actor as our parameters."""
    state = {name: x.detach().numpy().copy() for name, x in state.items()}
    layers = sorted(name for name in state if name.endswith("weight"))
    actor = [{"weight": state[name].T, "bias": state[name.replace("weight", "bias")]} for name in layers]
    return {"actor": actor, "log_std": state["log_std"]}


def compared(update: Any, rows: list[dict[str, float]]) -> Any:
    """Their `_update_actor`, with ours computed beside it."""

    def both(self, obs, act, logp, adv_r, adv_c) -> None:
        before, kl = policy_of_state(self._actor_critic.actor.state_dict()), self._cfgs.algo_cfgs.target_kl
        cost = self._logger.get_stats("Metrics/EpCost")[0]
        update(self, obs, act, logp, adv_r, adv_c)
        batch = (jnp.asarray(x.numpy(), jnp.float32) for x in (obs, act, logp, adv_r, adv_c))
        steps = Steps(*batch, target=None, cost_target=None)
        ours, metrics = improve_policy(before, steps, np.float32(cost - self._cfgs.algo_cfgs.cost_limit), kl)
        start, here, there = (
            ravel_pytree(policy)[0]
            for policy in (before, ours, policy_of_state(self._actor_critic.actor.state_dict()))
        )
        step = float(jnp.linalg.norm(there - start))
        rows.append(
            {
                "episode_cost": float(cost),
                "case_theirs": int(self._logger.get_stats("Misc/OptimCase")[0]),
                "case_ours": int(metrics["case"]),
                "step_share_ours": float(metrics["step_share"]),
                "step": step,
                "difference": float(jnp.linalg.norm(here - there)) / (step or 1.0),
            }
        )
        print(json.dumps(rows[-1]), flush=True)

    return both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default="SafeExplorerHalfCheetah-v0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--limit", type=float, default=0.05)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, float]] = []
    their = omnisafe.algorithms.on_policy.CPO
    their._update_actor = compared(their._update_actor, rows)
    with tempfile.TemporaryDirectory() as folder:
        custom = settings("CPO", args.seed, args.epochs * EPOCH, Path(folder))
        custom["algo_cfgs"]["cost_limit"] = args.limit
        omnisafe.Agent("CPO", args.robot, custom_cfgs=custom).learn()
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
