"""The policy alone, recovery disabled: what training never samples and deployment will see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from safeexplorer.interventions import Intervention, Situation
from safeexplorer.networks import Params, policy_mean
from safeexplorer.simulation import Simulation


class Evaluation(NamedTuple):
    """Means over the episodes of one evaluation."""

    total_return: float  # J, undiscounted task return
    length: float
    falls: float  # per episode
    beta: float  # share of steps outside the main-policy set, the policy acting throughout


def evaluate(
    params: Params,
    env: Simulation,
    intervention: Intervention,
    progress: float,
    seed: int,
    deterministic: bool,
) -> Evaluation:
    """One episode of every robot in `env` under the main policy alone; its mean action if deterministic."""
    rng = np.random.default_rng(seed)
    sigma = np.zeros_like(params["log_std"]) if deterministic else np.exp(params["log_std"])
    observation, info = env.reset(seed=seed)
    count = env.num_envs
    alive, total, length = np.ones(count, bool), np.zeros(count), np.zeros(count, np.int64)
    fell, outside = np.zeros(count, bool), np.zeros(count, np.int64)
    while alive.any():
        situation = Situation(observation, info["distance"], info["episode_length"])
        outside += alive & intervention.takes_over(situation, progress)
        noise = rng.standard_normal((count, len(sigma)), np.float32)
        action = policy_mean(params, observation.astype(np.float32), np) + sigma * noise
        observation, reward, terminated, truncated, info = env.step(action)
        total += alive * reward
        length += alive
        fell |= alive & terminated
        alive &= ~(terminated | truncated)
    return Evaluation(total.mean(), length.mean(), fell.mean(), outside.sum() / length.sum())
