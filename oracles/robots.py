"""Stable-Baselines3 as a judge of the robots: its environment checker, and 4096 steps of its PPO on each."""

import sys
import time
import warnings

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env

import safeexplorer

STEPS = 4096


def judge(env_id: str) -> str:
    """The line that says what PPO did, once the checker has passed."""
    env = gymnasium.make(env_id)
    with warnings.catch_warnings():
        # An opinion about the paper's choice: Go1's actions are joint angles, not [-1, 1].
        warnings.filterwarnings("ignore", message=".*symmetric and normalized Box action space.*")
        check_env(env, warn=True)
    begin = time.perf_counter()
    model = PPO("MlpPolicy", env, n_steps=1024, seed=0, device="cpu").learn(STEPS)
    lengths = [episode["l"] for episode in model.ep_info_buffer]
    assert model.num_timesteps == STEPS
    assert all(np.isfinite(p.detach().numpy()).all() for p in model.policy.parameters())
    seconds = time.perf_counter() - begin
    return f"{env_id}: checked; PPO {STEPS} steps in {seconds:.0f} s, {len(lengths)} episodes, all weights finite"


def main() -> int:
    for robot in safeexplorer.robots.ROBOTS.values():
        print(judge(robot.env_id), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
