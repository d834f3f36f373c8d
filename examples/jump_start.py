"""Jump start: a teacher leads every episode for a while, less and less of it, and the policy learns the rest.

    python examples/jump_start.py --steps 60000

The mountain car must first roll away from the goal, and random actions never show it why: PPO alone learns to stand
still. The teacher pushes the way the car already rolls, which is enough to get there but wastes fuel.
"""

from __future__ import annotations

import argparse

import numpy as np

from safeexplorer import JumpStart, SafeExplorer, linear

ENV = "MountainCarContinuous-v0"  # observation (position, velocity); +100 at the goal, -0.1 a^2 per step
SETTINGS = {"rollout_steps": 1024, "minibatches": 16, "gamma": 0.995, "learning_rate": 1e-3}


def teacher(observation: np.ndarray) -> np.ndarray:
    """Push along with the velocity, [k, 2] -> [k, 1]."""
    return np.where(observation[:, 1:] >= 0, 1.0, -1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps of each method")
    steps = parser.parse_args().steps
    hand_over = JumpStart(
        linear(110, -130)
    )  # the teacher leads 110 steps at first, none from 85% of training on
    for method in ("ppo", "safeexplorer"):
        agent = SafeExplorer(ENV, teacher, intervention=hand_over, method=method, **SETTINGS)
        agent.learn(steps, progress_bar=True)
        alone = agent.evaluate()
        print(f"{method}: return {alone.total_return:,.1f} without the teacher (the goal is worth 100)")


if __name__ == "__main__":
    main()
