"""The policy on whole episodes: alone, which training never samples and deployment will see, or with its recovery."""

from typing import NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from safeexplorer.acting.interventions import Situation
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import draw_noise, propose


class Evaluation(NamedTuple):
    """Means over the episodes of one evaluation."""

    total_return: float  # undiscounted task return: J of the policy alone, J_mix with its recovery
    length: float
    falls: float  # per episode
    beta: float  # share of steps outside the main-policy set, whoever acts there


def evaluate(
    params: Params, env: VectorEnv, mixed: MixedPolicy, progress: float, seed: int, deterministic: bool
) -> Evaluation:
    """One episode of every robot in `env`; a `mixed` without a recovery is the main policy alone.

    Equal seeds begin in equal states with equal noise. Deterministic: the policy's mean action.
    """
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    count = env.num_envs
    alive, total, length = np.ones(count, bool), np.zeros(count), np.zeros(count, np.int64)
    fell, outside = np.zeros(count, bool), np.zeros(count, np.int64)
    while alive.any():
        noise = 0.0 if deterministic else draw_noise(params, (count,), rng)
        proposed = propose(params, observation.astype(np.float32), noise)
        acted = mixed.act(Situation(observation, info["distance"], length), proposed, progress, rng)
        outside += alive & acted.recovering
        observation, reward, terminated, truncated, info = env.step(acted.action)
        total += alive * reward
        length += alive
        fell |= alive & terminated & ~info.get("reached", np.False_)
        alive &= ~(terminated | truncated)
    means = total.mean(), length.mean(), fell.mean(), outside.sum() / length.sum()
    return Evaluation(*map(float, means))
