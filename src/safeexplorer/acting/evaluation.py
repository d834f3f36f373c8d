"""The policy alone, recovery disabled: what training never samples and deployment will see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.mixed import MixedPolicy
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
    rng, alone = np.random.default_rng(seed), MixedPolicy(intervention, recovery=None)
    observation, info = env.reset(seed=seed)
    count = env.num_envs
    alive, total, length = np.ones(count, bool), np.zeros(count), np.zeros(count, np.int64)
    fell, outside = np.zeros(count, bool), np.zeros(count, np.int64)
    while alive.any():
        noise = 0.0 if deterministic else draw_noise(params, (count,), rng)
        proposed = propose(params, observation.astype(np.float32), noise)
        acted = alone.act(Situation(observation, info["distance"], length), proposed, progress, rng)
        outside += alive & acted.recovering
        observation, reward, terminated, truncated, info = env.step(acted.action)
        total += alive * reward
        length += alive
        fell |= alive & terminated
        alive &= ~(terminated | truncated)
    return Evaluation(total.mean(), length.mean(), fell.mean(), outside.sum() / length.sum())
