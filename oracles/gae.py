"""Our advantages against Stable-Baselines3's rollout buffer; `--write` renews the golden file that the tests read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from gymnasium.spaces import Box
from stable_baselines3.common.buffers import RolloutBuffer

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "sb3_gae.json"
CASES = ((0, 12, 2, 0.99, 0.95), (1, 9, 3, 0.9, 0.8), (2, 16, 1, 0.97, 1.0))


def rollout(seed: int, steps: int, robots: int) -> dict[str, np.ndarray]:
    """Rewards, values and ends of a random rollout; every kind of end occurs."""
    rng = np.random.default_rng(seed)
    terminated = rng.random((steps, robots)) < 0.15
    truncated = (rng.random((steps, robots)) < 0.15) & ~terminated
    numbers = {
        name: rng.normal(size=(steps, robots)).astype(np.float32) for name in ("reward", "value", "final")
    }
    return numbers | {
        "terminated": terminated,
        "truncated": truncated,
        "last_value": rng.normal(size=robots).astype(np.float32),
    }


def stable_baselines(
    case: dict[str, np.ndarray], gamma: float, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and returns of its buffer; it bootstraps a time limit through the reward, as its PPO does."""
    steps, robots = case["reward"].shape
    space = Box(-1, 1, (1,))
    buffer = RolloutBuffer(steps, space, space, gae_lambda=gae_lambda, gamma=gamma, n_envs=robots)
    ended = case["terminated"] | case["truncated"]
    reward = case["reward"] + gamma * case["final"] * case["truncated"]
    started = np.ones(robots)
    nothing = np.zeros((robots, 1))
    for t in range(steps):
        value = torch.as_tensor(case["value"][t])
        buffer.add(nothing, nothing, reward[t], started, value, torch.zeros(robots))
        started = ended[t].astype(np.float32)
    buffer.compute_returns_and_advantage(torch.as_tensor(case["last_value"]), dones=started)
    return buffer.advantages, buffer.returns


def main() -> None:
    golden = []
    for seed, steps, robots, gamma, gae_lambda in CASES:
        case = rollout(seed, steps, robots)
        advantage, target = stable_baselines(case, gamma, gae_lambda)
        case |= {"advantage": advantage, "target": target}
        golden.append({k: v.tolist() for k, v in case.items()} | {"gamma": gamma, "gae_lambda": gae_lambda})
    if "--write" in sys.argv:
        GOLDEN.write_text(json.dumps(golden))
    kept = json.loads(GOLDEN.read_text())
    worst = max(
        float(np.abs(np.subtract(new[key], old[key])).max())
        for new, old in zip(golden, kept, strict=True)
        for key in ("advantage", "target", "reward", "value")
    )
    print(f"Stable-Baselines3 buffer against the golden file: largest difference {worst:.1e}")
    if worst > 1e-6:
        sys.exit("the golden file no longer says what Stable-Baselines3 computes")


if __name__ == "__main__":
    main()
