"""Seconds per iteration of plain PPO and of the plugin on the same environment, E = 1024, T = 24, on the CPU.

python bench/overhead.py            # nobody intervenes, a tenth, half and all of the steps
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import time
from pathlib import Path

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from balance import configuration

ENVS, STEPS, OBSERVATIONS, ACTIONS = 1024, 24, 48, 12  # the sizes of a quadruped's velocity task


class Noise(VecEnv):
    """Random observations at no cost, so that what is timed is the algorithm; the first number decides who acts."""

    num_envs, num_actions, device, cfg, step_dt = ENVS, ACTIONS, "cpu", {}, 0.02
    max_episode_length = 1000

    def __init__(self):
        self.episode_length_buf = torch.zeros(ENVS, dtype=torch.long)

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": torch.rand(ENVS, OBSERVATIONS)}, batch_size=[ENVS])

    def step(self, actions: torch.Tensor):
        done = (torch.rand(ENVS) < 0.002).long()
        return self.get_observations(), torch.rand(ENVS), done, {"time_outs": torch.zeros(ENVS)}


def runner(share: float | None) -> OnPolicyRunner:
    """Plain PPO, or the plugin with a recovery that takes `share` of the steps."""
    changes: dict = {"entropy_coef": 0.01, "num_learning_epochs": 5}
    if share is not None:
        changes["class_name"] = "safeexplorer_rsl_rl:SafeExplorerPPO"
        changes["recovery_cfg"] = {
            "policy": lambda obs: torch.zeros(ENVS, ACTIONS),
            "region": lambda obs: obs["policy"][:, 0],
            "radius": 1.0 - share,
        }
    cfg = configuration(**changes)
    cfg["actor"]["hidden_dims"] = cfg["critic"]["hidden_dims"] = [512, 256, 128]
    with contextlib.redirect_stdout(io.StringIO()):
        return OnPolicyRunner(Noise(), cfg, log_dir=None, device="cpu")


def main(iterations: int = 7) -> None:
    """Alternate the variants, so that what else the machine does falls on all alike; print medians."""
    torch.manual_seed(0)
    variants = {"PPO": runner(None)}
    variants |= {
        f"plugin, recovery acts on {share:.0%} of steps": runner(share) for share in (0.0, 0.1, 0.5, 1.0)
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(iterations + 1):
        for name, agent in variants.items():
            start = time.process_time()
            agent.learn(1)
            if turn:  # the first one allocates
                times[name].append(time.process_time() - start)
    base = statistics.median(times["PPO"])
    print(
        f"E = {ENVS}, T = {STEPS}, {OBSERVATIONS} observations, networks 512-256-128, {torch.get_num_threads()} thread"
    )
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:>40}: {middle:6.3f} CPU s per iteration, {middle / base:5.2f} of PPO's")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
