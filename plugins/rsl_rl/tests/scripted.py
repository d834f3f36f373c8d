"""Algorithms on scripted rollouts: who acted, how it ended and what was paid are given, nothing is simulated."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from balance import configuration
from safeexplorer_rsl_rl import SafeExplorerPPO
from tensordict import TensorDict

RECOVERY = {
    "policy": lambda obs: torch.full((len(obs), 2), 0.5),
    "region": lambda obs: ~obs["flag"][:, 0].bool(),
}


def observation(flag: torch.Tensor, generator: torch.Generator | None = None) -> TensorDict:
    """A random observation; the region reads `flag` (1: outside), which no network sees."""
    seen = torch.randn(len(flag), 3, generator=generator)
    return TensorDict({"policy": seen, "flag": flag.float().unsqueeze(-1)}, batch_size=[len(flag)])


def algorithm(
    num_envs: int, steps: int, recovery: dict | None = None, obs_groups: dict | None = None, **changes: Any
) -> SafeExplorerPPO:
    """A freshly constructed algorithm with two actions."""
    cfg = configuration(
        class_name="safeexplorer_rsl_rl:SafeExplorerPPO",
        recovery_cfg={**RECOVERY, **(recovery or {})},
        **changes,
    )
    cfg |= {"num_steps_per_env": steps, "multi_gpu": None}
    cfg["obs_groups"] |= obs_groups or {}
    env = SimpleNamespace(num_envs=num_envs, num_actions=2, step_dt=1.0)
    env.unwrapped = env
    return SafeExplorerPPO.construct_algorithm(observation(torch.zeros(num_envs)), env, cfg, "cpu")


def play(
    agent: SafeExplorerPPO, rollout: dict[str, torch.Tensor], extras: dict | None = None
) -> torch.Tensor:
    """Drive the algorithm through a rollout [T, E] of who acted and how it ended; returns what was executed."""
    generator, executed = torch.Generator().manual_seed(1), []
    outside = torch.cat([rollout["recovering"], torch.zeros_like(rollout["recovering"][:1])])
    with torch.inference_mode():
        obs = observation(outside[0], generator)
        for t in range(len(outside) - 1):
            executed.append(agent.act(obs))
            obs = observation(outside[t + 1], generator)
            ended = rollout["terminated"][t] | rollout["truncated"][t]
            given = {"time_outs": rollout["truncated"][t], **(extras or {})}
            agent.process_env_step(obs, rollout["task_reward"][t], ended.long(), given)
        agent.compute_returns(obs)
    return torch.stack(executed)


def random_rollout(steps: int, num_envs: int, seed: int, recovering: float = 0.2) -> dict[str, torch.Tensor]:
    """Segments of random lengths, falls and time limits."""
    generator = torch.Generator().manual_seed(seed)
    chance = lambda p: torch.rand(steps, num_envs, generator=generator) < p  # noqa: E731
    terminated = chance(0.08)
    return {
        "recovering": (chance(recovering).int().cumsum(0) % 2).bool(),
        "terminated": terminated,
        "truncated": chance(0.06) & ~terminated,
        "task_reward": torch.randn(steps, num_envs, generator=generator),
    }
