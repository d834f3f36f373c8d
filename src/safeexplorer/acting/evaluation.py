"""The policy alone, recovery disabled: what training never samples and deployment will see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import draw_noise, propose


class Evaluation(NamedTuple):
    """Means over the episodes of one evaluation."""

    total_return: float  # J, undiscounted task return
    length: float
    falls: float  # per episode
    beta: float  # share of steps outside the main-policy set, the policy acting throughout


def evaluate(
    params: Params,
    env: VectorEnv,
    intervention: Intervention,
    progress: float,
    seed: int,
    deterministic: bool,
) -> Evaluation:
    """One episode of every robot in `env` under the main policy alone; its mean action if deterministic."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    count = env.num_envs
    alive, total, length = np.ones(count, bool), np.zeros(count), np.zeros(count, np.int64)
    fell, outside = np.zeros(count, bool), np.zeros(count, np.int64)
    while alive.any():
        situation = Situation(observation, info["distance"], length)
        outside += alive & intervention.takes_over(situation, progress)
        noise = 0.0 if deterministic else draw_noise(params, (count,), rng)
        action = propose(params, observation.astype(np.float32), noise)
        observation, reward, terminated, truncated, info = env.step(action)
        total += alive * reward
        length += alive
        fell |= alive & terminated
        alive &= ~(terminated | truncated)
    return Evaluation(total.mean(), length.mean(), fell.mean(), outside.sum() / length.sum())
