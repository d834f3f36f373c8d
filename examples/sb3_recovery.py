"""A Stable-Baselines3 SAC model as the recovery of HalfCheetah.

    pip install "safeexplorer[sb3]"
    python examples/sb3_recovery.py --recovery-steps 100000 --steps 500000

The model learns to stand up on the robot's recovery flavour (random poses, no task); then it acts inside
SafeExplorer through its own `predict`, and what it was trained with does not matter.
"""

from __future__ import annotations

import argparse

import gymnasium
from stable_baselines3 import SAC

from safeexplorer import SafeExplorer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recovery-steps", type=int, default=100_000, help="environment steps of SAC")
    parser.add_argument("--steps", type=int, default=500_000, help="environment steps of SafeExplorer")
    args = parser.parse_args()
    model = SAC("MlpPolicy", gymnasium.make("SafeExplorer/HalfCheetah-v0", flavour="recovery"), seed=1)
    model.learn(args.recovery_steps, progress_bar=False)
    agent = SafeExplorer("SafeExplorer/HalfCheetah-v0", recovery=model, seed=1)
    agent.learn(args.steps, progress_bar=True)
    print(f"{agent.summary['falls']:,} falls, final return {agent.summary['final_reward'] or 0.0:,.0f}")


if __name__ == "__main__":
    main()
