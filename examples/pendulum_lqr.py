"""An inverted pendulum on a cart; an LQR controller catches it whenever the policy leads it too far astray.

    python examples/pendulum_lqr.py --steps 40000

The controller needs no training: it is computed from the simulator's own linearisation. D(s) = sqrt(s' P s), the
square root of its cost to go, grows towards the states that it cannot save. PPO on the same budget, for comparison,
learns by letting the pendulum fall.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

from safeexplorer import SafeExplorer, SafeRegion, linear

ENV = "InvertedPendulum-v5"  # observation (x, angle, velocities); falls beyond 0.2 rad; force in [-3, 3]
SETTINGS = {"rollout_steps": 256, "minibatches": 8, "gamma": 0.98, "learning_rate": 1e-3}


def linearise(epsilon: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
    """A and B of s' = A s + B a about the upright pose, by central differences of the simulator."""
    env = gymnasium.make(ENV).unwrapped
    env.reset(seed=0)

    def step(state: np.ndarray, force: float) -> np.ndarray:
        env.set_state(state[:2], state[2:])
        return env.step(np.array([force]))[0]

    def slope(direction: np.ndarray, force: float) -> np.ndarray:
        ahead = step(epsilon * direction, epsilon * force)
        return (ahead - step(-epsilon * direction, -epsilon * force)) / (2 * epsilon)

    A = np.stack([slope(row, 0.0) for row in np.eye(4)], axis=1)
    return A, slope(np.zeros(4), 1.0)[:, None]


def solve_lqr(A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: float) -> tuple[np.ndarray, np.ndarray]:
    """Gain K and cost matrix P of the discrete algebraic Riccati equation, by iterating it."""
    P = Q
    for _ in range(2000):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
    return K, P


K, P = solve_lqr(*linearise(), Q=np.diag([1.0, 10.0, 0.1, 0.1]), R=0.1)
EDGE = np.array([0.0, 0.2, 0.0, 0.0])
SCALE = 1.0 / np.sqrt(EDGE @ P @ EDGE)  # D = 1 where a resting pendulum falls


def lqr(observation: np.ndarray) -> np.ndarray:
    """[k, 4] -> [k, 1]."""
    return np.clip(-observation @ K.T, -3.0, 3.0)


def distance(observation: np.ndarray) -> np.ndarray:
    """[k, 4] -> [k]."""
    return SCALE * np.sqrt(np.einsum("ki,ij,kj->k", observation, P, observation))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000, help="environment steps of each method")
    steps = parser.parse_args().steps
    region = SafeRegion(distance=distance, radius=linear(0.2, 0.4))
    for method in ("ppo", "safeexplorer"):
        agent = SafeExplorer(ENV, lqr, region, method=method, **SETTINGS).learn(steps, progress_bar=True)
        alone = agent.evaluate(ENV)
        print(
            f"{method}: {agent.summary['falls']:,} falls; alone it balances {alone.length:,.0f} of 1,000 steps"
        )


if __name__ == "__main__":
    main()
