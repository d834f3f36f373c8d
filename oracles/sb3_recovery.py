"""Models of Stable-Baselines3 as recoveries: untrained, so that what they do is their own and what we check is ours."""

from __future__ import annotations

import sys
import warnings

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN, SAC

from safeexplorer.recovery import RecoveryError, as_recovery, interface_between, load_recovery
from safeexplorer.robots import get_robot, make


def continuous() -> float:
    """SAC catches a HalfCheetah for 200 steps; the largest difference from its actor's squashed mean."""
    model = SAC(
        "MlpPolicy", gymnasium.make("SafeExplorer/HalfCheetah-v0"), seed=0, device="cpu", buffer_size=1
    )
    recovery = load_recovery(model, get_robot("half_cheetah"))
    policy = load_recovery(model.policy, get_robot("half_cheetah"))  # callable too, but meant for tensors
    world, worst = make("half_cheetah", 4), 0.0
    observation, _ = world.reset(seed=0)
    for step in range(200):
        rows = observation[: step % 5]  # from none to all of the robots
        action = recovery.act(rows)
        with torch.no_grad():
            mean = torch.tanh(
                model.actor.mu(model.actor.latent_pi(torch.as_tensor(rows, dtype=torch.float32)))
            )
        worst = max(worst, np.abs(action - mean.numpy()).max(initial=0.0))
        worst = max(worst, np.abs(action - policy.act(rows)).max(initial=0.0))
        observation, *_ = world.step(recovery.act(observation))
    world.close()
    return worst


def discrete() -> int:
    """DQN on CartPole; how many of its actions differ from the largest of its Q values."""
    cart = gymnasium.make("CartPole-v1")
    model = DQN("MlpPolicy", cart, seed=1, device="cpu", buffer_size=1)
    recovery = as_recovery(model, interface_between("CartPole-v1", cart.observation_space, cart.action_space))
    observation = np.random.default_rng(0).standard_normal((500, 4))
    action = recovery.act(observation)
    with torch.no_grad():
        best = model.q_net(torch.as_tensor(observation, dtype=torch.float32)).argmax(1).numpy()
    if len(set(best)) != 2:
        sys.exit("this DQN always does the same; choose another seed")
    return int((action[:, 0] != best).sum())


def main() -> None:
    warnings.simplefilter("error")
    worst, wrong = continuous(), discrete()
    print(f"SAC as a recovery: largest difference from its own mean {worst:.1e}; DQN: {wrong} of 500 differ")
    if worst > 1e-5 or wrong:
        sys.exit("a Stable-Baselines3 model does not act the same as a recovery")
    model = SAC("MlpPolicy", gymnasium.make("SafeExplorer/Ant-v0"), device="cpu", buffer_size=1)
    try:
        load_recovery(model, get_robot("half_cheetah"))
    except RecoveryError as error:
        print(f"refused: {error}")
    else:
        sys.exit("a model for Ant was accepted for HalfCheetah")


if __name__ == "__main__":
    main()
