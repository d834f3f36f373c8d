"""A pole on a motor that must follow a target angle, and an LQR that catches it: falls of PPO and of SafeExplorer.

python examples/balance.py
"""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

DT, GRAVITY, FALLEN, LIMIT = 0.05, 8.0, 0.6, 100
GAINS = (14.0, 5.0)  # of the LQR, per radian and per radian per second


class Balance(VecEnv):
    """E poles: angle, rate and target; the torque is the action. A pole beyond 0.6 rad has fallen."""

    def __init__(self, num_envs: int, seed: int = 0, final_obs: bool = False):
        self.num_envs, self.num_actions, self.device = num_envs, 1, "cpu"
        self.max_episode_length, self.step_dt, self.cfg = LIMIT, DT, {}
        self.gives_final_obs, self.falls = final_obs, 0
        self.random = torch.Generator().manual_seed(seed)
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.state = torch.zeros(num_envs, 3)
        self._reset(torch.ones(num_envs, dtype=torch.bool))

    @property
    def unwrapped(self) -> Balance:
        return self

    def _reset(self, which: torch.Tensor) -> None:
        fresh = (torch.rand(self.num_envs, 3, generator=self.random) - 0.5) * torch.tensor([0.1, 0.1, 0.5])
        self.state = torch.where(which[:, None], fresh, self.state)
        self.episode_length_buf = torch.where(which, 0, self.episode_length_buf)

    def get_observations(self) -> TensorDict:
        angle, rate, target = self.state.unbind(-1)
        seen = torch.stack([angle, rate, target], dim=-1)
        hidden = torch.stack([angle, rate, target, self.episode_length_buf / LIMIT], dim=-1)
        return TensorDict({"policy": seen, "privileged": hidden}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        angle, rate, target = self.state.unbind(-1)
        rate = rate + DT * (GRAVITY * torch.sin(angle) + 4.0 * actions[:, 0].clamp(-3, 3))
        angle = angle + DT * rate
        self.state = torch.stack([angle, rate, target], dim=-1)
        self.episode_length_buf = self.episode_length_buf + 1
        fell = angle.abs() > FALLEN
        limit = (self.episode_length_buf >= LIMIT) & ~fell
        reward = torch.exp(-10 * (angle - target) ** 2) - 5.0 * fell
        extras: dict[str, Any] = {"time_outs": limit}
        if self.gives_final_obs:
            extras["final_obs"] = self.get_observations().to_dict()
        self.falls += int(fell.sum())
        self._reset(fell | limit)
        return self.get_observations(), reward, (fell | limit).long(), extras


def lqr(obs: TensorDict) -> torch.Tensor:
    """The torque that brings a pole upright."""
    angle, rate, _ = obs["policy"].unbind(-1)
    return -(GAINS[0] * angle + GAINS[1] * rate).unsqueeze(-1) / 4.0


def lean(obs: TensorDict) -> torch.Tensor:
    """How near a pole is to a fall: where it will be in 0.1 s."""
    angle, rate, _ = obs["policy"].unbind(-1)
    return (angle + 0.1 * rate).abs()


def configuration(**algorithm: Any) -> dict[str, Any]:
    """What an rsl_rl user has; `algorithm` changes its algorithm section."""
    network = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    spread = {"class_name": "GaussianDistribution", "init_std": 0.6, "std_type": "log"}
    return {
        "num_steps_per_env": 24,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": spread},
        "critic": dict(network),
        "algorithm": {
            "class_name": "PPO",
            "learning_rate": 1e-3,
            "num_learning_epochs": 4,
            "num_mini_batches": 4,
            "entropy_coef": 0.0,
            "rnd_cfg": None,
            "symmetry_cfg": None,
            **algorithm,
        },
    }


WITH_RECOVERY = {
    "class_name": "safeexplorer_rsl_rl:SafeExplorerPPO",
    "recovery_cfg": {
        "policy": lqr,
        "region": lean,
        "radius": {"initial": 0.2, "final": 0.35, "iterations": 40},
        "imitation": 0.01,
    },
}


def train(iterations: int, seed: int = 0, num_envs: int = 64, **algorithm: Any) -> tuple[int, float]:
    """Falls while it trained, and the reward per step of the policy alone afterwards."""
    torch.manual_seed(seed)
    env = Balance(num_envs, seed)
    runner = OnPolicyRunner(env, configuration(**algorithm), log_dir=None, device="cpu")
    runner.learn(iterations)
    falls, policy = env.falls, runner.get_inference_policy("cpu")
    rewards = []
    with torch.inference_mode():
        for _ in range(LIMIT):
            _, reward, _, _ = env.step(policy(env.get_observations()))
            rewards.append(reward.mean().item())
    return falls, sum(rewards) / len(rewards)


if __name__ == "__main__":
    for name, algorithm in (("PPO", {}), ("SafeExplorer", WITH_RECOVERY)):
        falls, reward = train(60, **algorithm)
        print(f"{name:>12}: {falls:4d} falls in training, reward per step of the policy alone {reward:.3f}")
