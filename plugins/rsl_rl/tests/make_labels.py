"""Write `labels.npz`: random rollouts with falls, time limits and cuts, and the labels that safeexplorer gives them.

python plugins/rsl_rl/tests/make_labels.py      # with safeexplorer installed; the plugin itself never imports it
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("labels.npz")
STEPS, ENVS, ROLLOUTS = 24, 16, 4
DISCOUNTS = (0.97, 0.9)


def random_rollouts(seed: int = 0) -> dict[str, np.ndarray]:
    """[R, T, E] who acted, how episodes ended, rewards and values; long segments, so that the end cuts many."""
    rng = np.random.default_rng(seed)
    shape = (ROLLOUTS, STEPS, ENVS)
    switch = rng.random(shape) < 0.15
    terminated = rng.random(shape) < 0.06
    number = lambda: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    return {
        "recovering": np.logical_xor.accumulate(switch, axis=1),
        "terminated": terminated,
        "truncated": (rng.random(shape) < 0.05) & ~terminated,
        "task_reward": number(),
        "value": number(),
        "limit_value": number(),  # V of the final observation, read where `truncated`
        "last_value": number()[:, 0],
    }


def package_labels(rollouts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Advantage, value target and gate of the package's own `label`, method safeexplorer."""
    from safeexplorer.acting.trajectory import blank_rollout
    from safeexplorer.learning.labelling import Appraisal, label
    from safeexplorer.learning.methods import SAFEEXPLORER

    found: dict[str, list] = {"advantage": [], "value_target": [], "gate": []}
    for r in range(ROLLOUTS):
        one = {name: array[r] for name, array in rollouts.items()}
        following = np.concatenate([one["value"][1:], one["last_value"][None]])
        happened = {name: one[name] for name in ("recovering", "terminated", "truncated", "task_reward")}
        rollout = blank_rollout((STEPS, ENVS), **happened)
        next_value = np.where(one["truncated"], one["limit_value"], following)
        batch, _ = label(
            rollout, Appraisal(one["value"], next_value, np.zeros_like(next_value)), SAFEEXPLORER, DISCOUNTS
        )
        for name, rows in found.items():
            rows.append(np.asarray(getattr(batch, name)))
    return {name: np.stack(rows) for name, rows in found.items()}


if __name__ == "__main__":
    rollouts = random_rollouts()
    np.savez_compressed(FILE, **rollouts, **package_labels(rollouts))
    print(f"{FILE}: {FILE.stat().st_size} bytes")
