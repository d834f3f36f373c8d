"""A shield: a rule on the state that takes over near the edge. Here with discrete actions.

    python examples/state_shield.py --steps 40000

The shield engages where the pole leans and keeps leaning, or the cart nears the end of its track, and pushes the cart
under the pole. It sees the state only. A shield that looked at the action the policy is about to take, and let the
good ones pass, would make the masked gradient wrong: whether a step counts would depend on the policy's own choice.
"""

from __future__ import annotations

import argparse

import numpy as np

from safeexplorer import SafeExplorer, StateShield

ENV = "CartPole-v1"  # observation (x, velocity, angle, angular velocity); actions 0 (left) and 1 (right)
SETTINGS = {"rollout_steps": 256, "minibatches": 8, "gamma": 0.98, "learning_rate": 1e-3}


def engages(observation: np.ndarray) -> np.ndarray:
    """[k, 4] -> [k] bool."""
    x, velocity, angle, spin = observation.T
    return (np.abs(angle + 0.3 * spin) > 0.12) | (np.abs(x + 0.5 * velocity) > 1.5)


def push_under(observation: np.ndarray) -> np.ndarray:
    """Towards the side to which the pole leans, a little biased back to the middle: [k, 4] -> [k]."""
    x, velocity, angle, spin = observation.T
    return (angle + 0.3 * spin + 0.02 * x + 0.05 * velocity > 0).astype(int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000, help="environment steps of each method")
    steps = parser.parse_args().steps
    for method in ("ppo", "safeexplorer"):
        agent = SafeExplorer(ENV, push_under, intervention=StateShield(engages), method=method, **SETTINGS)
        agent.learn(steps, progress_bar=True)
        alone = agent.evaluate()
        print(
            f"{method}: {agent.summary['falls']:,} falls; without the shield {alone.length:.0f} of 500 steps"
        )


if __name__ == "__main__":
    main()
