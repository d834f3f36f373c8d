"""Driving behind another car, with an emergency brake that takes over before it is too late.

    python examples/emergency_stop.py --steps 60000

D is the braking that would be needed to avoid a crash, as a share of the brakes' best. The policy is paid for speed.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from safeexplorer import SafeExplorer, SafeRegion, linear

DT, BRAKES, TOP_SPEED = 0.1, 6.0, 30.0  # s, m/s^2, m/s
SETTINGS = {"rollout_steps": 512, "minibatches": 16, "learning_rate": 1e-3}


class Following(gymnasium.Env):
    """Observation: gap / 50 m, own speed / 30, the other's speed / 30. Action: pedal, -1 (brake) to 1."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float64)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.gap, self.steps = self.np_random.uniform(20.0, 60.0), 0
        self.speed = self.other = self.wish = self.np_random.uniform(10.0, 20.0)
        return self._look(), {}

    def step(self, action):
        if self.np_random.random() < 0.02:  # the car ahead changes its mind
            self.wish = self.np_random.uniform(0.0, 25.0)
        self.other += np.clip(self.wish - self.other, -4.0 * DT, 2.0 * DT)
        pedal = float(np.clip(action[0], -1.0, 1.0))
        self.speed = np.clip(self.speed + (BRAKES if pedal < 0 else 3.0) * pedal * DT, 0.0, TOP_SPEED)
        self.gap += (self.other - self.speed) * DT
        self.steps += 1
        crash = self.gap <= 0.0
        reward = self.speed / TOP_SPEED - 0.1 * (self.gap > 100.0) - 10.0 * crash
        return self._look(), reward, crash, self.steps >= 400 and not crash, {}

    def _look(self) -> np.ndarray:
        return np.array([self.gap / 50.0, self.speed / TOP_SPEED, self.other / TOP_SPEED])


def needed_braking(observation: np.ndarray) -> np.ndarray:
    """Share of the brakes that a stop behind the other car's hardest stop asks for, [k]."""
    gap, speed, other = observation.T * np.array([[50.0], [TOP_SPEED], [TOP_SPEED]])
    room = gap - 2.0 + other**2 / (2 * 4.0)
    return speed**2 / (2 * BRAKES) / np.maximum(room, 1e-3)


def brake(observation: np.ndarray) -> np.ndarray:
    return -np.ones((len(observation), 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60_000, help="environment steps of each method")
    steps = parser.parse_args().steps
    region = SafeRegion(distance=needed_braking, radius=linear(0.4, 0.5))
    for method in ("ppo", "safeexplorer"):
        agent = SafeExplorer([Following] * 4, brake, region, method=method, **SETTINGS)
        agent.learn(steps, progress_bar=True)
        print(
            f"{method}: {agent.summary['falls']:,} crashes, final return {agent.summary['final_reward']:,.0f}"
        )


if __name__ == "__main__":
    main()
