"""Manipulation: a hand pushes a block to a mark; a script drags it back before it drops off the table.

    python examples/tidy_table.py --steps 150000

The fall that costs here is the block on the floor: someone has to get up. The recovery is the usual scripted reset:
walk round the block and push it towards the middle of the table.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from safeexplorer import SafeExplorer, SafeRegion, linear

TOUCH, EDGE = 0.15, 1.0  # distance of hand and block in touch, radius of the table
SETTINGS = {"rollout_steps": 512, "minibatches": 16, "learning_rate": 1e-3, "gamma": 0.97}


class Table(gymnasium.Env):
    """Observation: block, hand - block, mark - block. Action: the hand's move, 0.1 at most per axis."""

    observation_space = Box(-np.inf, np.inf, (6,), np.float64)
    action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.block, self.mark = self.np_random.uniform(-0.6, 0.6, (2, 2))
        self.hand, self.steps = self.block + self.np_random.uniform(-0.3, 0.3, 2), 0
        return self._look(), {}

    def step(self, action):
        before = self._cost()
        self.hand = self.hand + 0.1 * np.clip(action, -1.0, 1.0)
        offset = self.block - self.hand
        gap = np.linalg.norm(offset)
        if gap < TOUCH:  # the block gives way
            self.block = self.hand + offset * (TOUCH / max(gap, 1e-6))
        self.steps += 1
        dropped = bool(np.linalg.norm(self.block) > EDGE)
        return self._look(), 10.0 * (before - self._cost()), dropped, self.steps >= 60 and not dropped, {}

    def _cost(self) -> float:
        return np.linalg.norm(self.block - self.mark) + 0.3 * np.linalg.norm(self.block - self.hand)

    def _look(self) -> np.ndarray:
        return np.concatenate([self.block, self.hand - self.block, self.mark - self.block])


def fetch_back(observation: np.ndarray) -> np.ndarray:
    """Round the block to its far side, then push it to the middle; [k, 6] -> [k, 2]."""
    block, offset = observation[:, :2], observation[:, 2:4]
    outward = block / np.linalg.norm(block, axis=1, keepdims=True)
    along = (offset * outward).sum(1, keepdims=True)
    side = offset - along * outward
    side /= np.linalg.norm(side, axis=1, keepdims=True) + 1e-6
    behind = along > 0.9 * np.linalg.norm(offset, axis=1, keepdims=True)
    target = np.where(behind, -block, 0.25 * outward + np.where(along > 0, 0.0, 0.3) * side)
    return np.clip((target - offset) / 0.1, -1.0, 1.0)


def from_middle(observation: np.ndarray) -> np.ndarray:
    return np.linalg.norm(observation[:, :2], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150_000, help="environment steps of each method")
    steps, region = parser.parse_args().steps, SafeRegion(distance=from_middle, radius=linear(0.75, 0.1))
    for method in ("ppo", "safeexplorer"):
        agent = SafeExplorer([Table] * 4, fetch_back, region, method=method, **SETTINGS)
        end = agent.learn(steps, progress_bar=True).summary
        print(f"{method}: {end['falls']:,} blocks dropped, final return {end['final_reward']:,.1f}")


if __name__ == "__main__":
    main()
