"""Our robots inside OmniSafe, and OmniSafe's CPO step beside ours on problems whose solution is known."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent / "constrained" / "stand_ins"))

import jax.numpy as jnp
import numpy as np
import omnisafe
import torch
from omnisafe.algorithms.on_policy.second_order.cpo import CPO
from omnisafe.envs.core import make

from safeexplorer.adapters.omnisafe import IDS
from safeexplorer.learning.constrained.cpo import Gradients, trust_region_step

DELTA = 0.02


def check_against_the_simulation(env_id: str, robots: int) -> None:
    """Step by step the same numbers as our own vector environment, last observations included."""
    name, cost = IDS[env_id]
    theirs = make(env_id, num_envs=robots, max_episode_steps=40)
    ours = robots.make(name, robots, max_episode_steps=40)
    theirs.set_seed(3)
    seen, _ = theirs.reset()
    expected, info = ours.reset(seed=3)
    distance, rng, ends = info["distance"], np.random.default_rng(0), 0
    for _ in range(120):
        batched = seen if robots > 1 else seen[None]
        np.testing.assert_array_equal(batched.numpy(), expected.astype(np.float32))
        action = rng.normal(size=(robots, ours.robot.action_size)).astype(np.float32)
        seen, reward, paid, terminated, truncated, extra = theirs.step(
            torch.as_tensor(action if robots > 1 else action[0])
        )
        expected, task_reward, fell, late, info = ours.step(action)
        wanted = fell if cost == "fall" else distance > ours.robot.max_radius
        np.testing.assert_array_equal(paid.numpy().reshape(-1), wanted.astype(np.float32))
        np.testing.assert_array_equal(reward.numpy().reshape(-1), task_reward.astype(np.float32))
        np.testing.assert_array_equal(terminated.numpy().reshape(-1) > 0, fell)
        np.testing.assert_array_equal(truncated.numpy().reshape(-1) > 0, late & ~fell)
        distance = info["distance"]
        assert ("final_observation" in extra) == bool((fell | late).any())
        for i in np.flatnonzero(fell | late):
            final = extra["final_observation"].numpy().reshape(robots, -1)[i]
            np.testing.assert_array_equal(final, info["final_obs"][i].astype(np.float32))
            ends += 1
    assert ends >= 2 * robots


def train_briefly(algorithm: str, env_id: str, robots: int) -> float:
    """One of OmniSafe's algorithms, untouched, on our robots; the mean cost per episode at its end."""
    settings = {
        "train_cfgs": {"total_steps": 1024 * robots, "vector_env_nums": robots, "torch_threads": 1},
        "algo_cfgs": {
            "steps_per_epoch": 1024 * robots,
            "update_iters": 1,
        },  # long enough for one episode each
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        settings["logger_cfgs"] = {"use_wandb": False, "use_tensorboard": False, "log_dir": folder}
        return omnisafe.Agent(algorithm, env_id, custom_cfgs=settings).learn()[1]


def compare_steps(problems: int = 200) -> tuple[float, float]:
    """The largest c + b'x, at most 0 by right, of OmniSafe's step and of ours, where a step can keep the limit."""
    rng, worst_theirs, worst_ours = np.random.default_rng(0), -np.inf, -np.inf
    judge = SimpleNamespace(
        _cfgs=SimpleNamespace(algo_cfgs=SimpleNamespace(target_kl=DELTA)),
        _logger=SimpleNamespace(log=lambda *words: None),
    )
    for _ in range(problems):
        root = rng.normal(size=(4, 4))
        h, g, b = root @ root.T + np.eye(4), rng.normal(size=4), rng.normal(size=4)
        x, p = np.linalg.solve(h, g), np.linalg.solve(h, b)
        c = rng.uniform(-0.9, 0.9) * np.sqrt(2 * DELTA * (b @ p))
        q, r, s, excess = (torch.tensor(float(v)) for v in (g @ x, g @ p, b @ p, c))
        as_tensor = {k: torch.as_tensor(v, dtype=torch.float32) for k, v in {"x": x, "p": p, "b": b}.items()}
        case, a, room = CPO._determine_case(judge, as_tensor["b"], excess, q, r, s)
        theirs, *_ = CPO._step_direction(
            judge, case, q, as_tensor["x"], a, room, q, as_tensor["p"], r, s, excess
        )
        ours, _ = trust_region_step(Gradients(*(jnp.float32(v) for v in (g, b, x, p))), c, DELTA)
        scale = np.sqrt(2 * DELTA * (b @ p))  # the most that any step can change the cost
        worst_theirs = max(worst_theirs, (c + b @ theirs.numpy()) / scale)
        worst_ours = max(worst_ours, (c + b @ np.array(ours, float)) / scale)
    return worst_theirs, worst_ours


def main() -> None:
    for env_id in IDS:
        for robots in (1, 3):
            check_against_the_simulation(env_id, robots)
    print(
        "bridge: three robots, one and three at a time, both costs: the same numbers as our own environment"
    )
    for algorithm, robots in (("PPOLag", 4), ("CPO", 1), ("FOCOPS", 2)):
        cost = train_briefly(algorithm, "SafeExplorerHalfCheetah-v0", robots)
        print(
            f"bridge: OmniSafe's {algorithm} trains on {robots} of our cheetahs, cost per episode {cost:.2f}"
        )
    theirs, ours = compare_steps()
    print(f"CPO step, largest violation of the linearised limit: OmniSafe {theirs:.3f}, ours {ours:.1e}")
    if ours > 1e-4:
        sys.exit("our CPO step leaves its limit")


if __name__ == "__main__":
    main()
