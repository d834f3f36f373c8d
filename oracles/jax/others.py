"""Other people's environments through the class: Playground's CartpoleBalance and Brax's hopper collect and learn.

make test-jax
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from tasks import TASKS

from safeexplorer import SafeExplorer, SafeRegion

SIZES = {"num_envs": 32, "rollout_steps": 24, "minibatches": 4, "epochs": 4, "hidden": (32, 32), "seed": 1}
UPDATES = {"cartpole": 12, "hopper": 6}


def check(name: str) -> None:
    """Train for a few updates; the policy must move, stay finite, act within bounds, and come back from its file."""
    task, rows = TASKS[name](), []
    region = SafeRegion(task.radius, task.distance)
    agent = SafeExplorer(
        task.env, task.recovery, region, activation="swish", desired_kl=0.01, start_states=64, **SIZES
    )
    before = agent.learner.params["actor"][0]["weight"].copy()
    agent.learn(UPDATES[name] * 32 * 24, callback=lambda agent, row: rows.append(row))
    last = rows[-1]
    assert last["steps"] == UPDATES[name] * 32 * 24 and last["main_steps"] > 0 and last["recovery_steps"] > 0
    assert np.isfinite([last["policy_loss"], last["value_loss"], last["approx_kl"]]).all()
    assert (agent.learner.params["actor"][0]["weight"] != before).any()
    rng = np.random.default_rng(0)
    seen = rng.standard_normal((3, agent.observation_space.shape[0])).astype(np.float32)
    action, _ = agent.predict(seen, deterministic=True)
    with tempfile.TemporaryDirectory() as folder:
        again = SafeExplorer.load(agent.save(Path(folder) / name))
    assert np.array_equal(again.predict(seen, deterministic=True)[0], action) and np.abs(action).max() <= 1
    shown = (
        "steps",
        "falls",
        "exits",
        "succeeded",
        "failed",
        "recovery_rate",
        "waiting",
        "value_loss",
        "learning_rate",
    )
    print(name, {key: round(float(last[key]), 4) for key in shown}, flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or UPDATES:
        check(name)
