"""Stable-Baselines3 beside the class: its VecEnv, its judge of policies, its SAC as a recovery."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from safeexplorer import SafeExplorer, SafeRegion

ENV = "InvertedPendulum-v5"
SMALL = {"rollout_steps": 128, "minibatches": 4, "epochs": 2, "hidden": (16,)}


def push(observation: np.ndarray) -> np.ndarray:
    return np.clip(20.0 * observation[:, 1:2] + 3.0 * observation[:, 3:4], -3.0, 3.0)


def main() -> None:
    region = SafeRegion(distance=lambda observation: np.abs(observation[:, 1]), radius=0.05)
    theirs = SafeExplorer(make_vec_env(ENV, 2), push, region, **SMALL).learn(1024)
    ours = SafeExplorer([lambda: gymnasium.make(ENV)] * 2, push, region, **SMALL).learn(1024)
    for a, b in zip(*(jax.tree.leaves(agent.learner.params) for agent in (theirs, ours)), strict=True):
        np.testing.assert_array_equal(a, b)
    print("a VecEnv and the environments in it train to the same parameters, bit for bit")
    mean, _ = evaluate_policy(ours, make_vec_env(ENV, 2), n_eval_episodes=4, deterministic=True)
    print(f"their evaluate_policy takes our agent: mean return {mean:.0f}")
    sys.argv = ["sb3_recovery.py", "--recovery-steps", "300", "--steps", "8192"]
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "sb3_recovery.py"), run_name="__main__")


if __name__ == "__main__":
    main()
