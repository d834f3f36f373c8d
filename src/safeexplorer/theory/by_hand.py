"""Labels and losses a second time, in plain loops from the paper's sentences, for `training` to compare with.

Nothing here is imported from the learner.
"""

from typing import NamedTuple

import numpy as np

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch, Rollout


class Row(NamedTuple):
    """A row of the paper's table of methods."""

    stored: str = "executed"
    policy_on: str = "main"
    value_on: str = "all"
    analytic: bool = True
    reward: str = "zero"
    gate: str = "off"
    cap: float | None = None
    heads: int = 1
    intervenes: bool = True
    sampled: bool = False


PAPER = {
    "ppo": Row(policy_on="all", analytic=False, reward="task", intervenes=False),
    "recovery_rl": Row("proposed", "all", analytic=False),
    "safe_legged": Row("proposed", "all", analytic=False, reward="task_minus_one"),
    "unmasked": Row(policy_on="all", analytic=False),
    "masked": Row(value_on="main", analytic=False),
    "analytic": Row(),
    "soft": Row(gate="soft"),
    "soft_decomposed": Row(gate="soft", heads=2),
    "dagger": Row(gate="always"),
    "safeexplorer": Row(gate="hard"),
    "truncated_is": Row(gate="hard", cap=10.0, sampled=True),
}


class Labels(NamedTuple):
    """[T, E] each, observation and action [T, E, ...]."""

    observation: np.ndarray
    recovering: np.ndarray
    action: np.ndarray
    log_prob: np.ndarray  # of the policy that collected the rollout
    log_mu: np.ndarray  # of the recovery
    advantage: np.ndarray
    value_target: np.ndarray
    policy_weight: np.ndarray
    value_weight: np.ndarray
    importance_weight: np.ndarray
    imitation_norm: np.ndarray
    gate: np.ndarray  # where the recovery acted, else 0


def segments(rollout: Rollout, robot: int) -> list[tuple[int, int]]:
    """First and last step of each run of recovery steps within an episode."""
    found, first = [], None
    steps = len(rollout.recovering)
    for t in range(steps):
        if rollout.recovering[t, robot] and first is None:
            first = t
        over = rollout.terminated[t, robot] or rollout.truncated[t, robot] or t == steps - 1
        if first is not None and (over or not rollout.recovering[t + 1, robot]):
            found.append((first, t))
            first = None
    return found


def labels(rollout: Rollout, params: Params, row: Row, gamma: float, trace: float) -> Labels:
    """What each step counts for, robot by robot."""
    steps, robots = rollout.recovering.shape
    value = values(params, rollout.observation, rollout.recovering, row)
    next_value = values(params, rollout.next_observation, rollout.next_outside, row)
    action = rollout.proposed if row.stored == "proposed" else rollout.action
    known, gate = value.copy(), np.zeros((steps, robots))
    for e in range(robots):
        for first, last in segments(rollout, e):
            fell, length = rollout.terminated[last, e], last - first + 1
            end = rollout.task_reward[last, e] if fell else next_value[last, e]
            if row.analytic:
                known[first, e] = gamma ** (length - 1 if fell else length) * end
            for t in range(first, last + 1):
                left = last - t + 1
                soft = gamma ** (left - 1 if fell else left) * end - value[t, e]
                gate[t, e] = {"off": 0.0, "hard": float(not fell), "always": 1.0, "soft": soft}[row.gate]
    advantage = np.zeros((steps, robots))
    for e in range(robots):
        after = 0.0
        for t in reversed(range(steps)):
            fell, cut = rollout.terminated[t, e], rollout.truncated[t, e]
            reward = rollout.task_reward[t, e]
            if rollout.recovering[t, e] and row.reward == "task_minus_one":
                reward -= 1.0
            if rollout.recovering[t, e] and row.reward == "zero" and not fell:
                reward = 0.0
            following = next_value[t, e] if cut or t == steps - 1 else known[t + 1, e]
            error = reward + (0.0 if fell else gamma * following) - known[t, e]
            after = error + (0.0 if fell or cut else gamma * trace * after)
            advantage[t, e] = after
    recovers = rollout.recovering.astype(float)
    return Labels(
        observation=rollout.observation,
        recovering=rollout.recovering.astype(float),
        action=action,
        log_prob=log_pi(params, rollout.observation, action),
        log_mu=rollout.recovery_log_density,
        advantage=advantage,
        value_target=advantage + known,
        policy_weight=np.ones_like(recovers) if row.policy_on == "all" else 1.0 - recovers,
        value_weight=np.ones_like(recovers) if row.value_on == "all" else 1.0 - recovers,
        importance_weight=recovers if row.cap else 0.0 * recovers,
        imitation_norm=recovers if row.gate != "off" else 0.0 * recovers,
        gate=gate,
    )


def network(layers: list, x: np.ndarray) -> np.ndarray:
    for layer in layers[:-1]:
        x = np.tanh(x @ layer["weight"] + layer["bias"])
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def values(params: Params, observation: np.ndarray, outside: np.ndarray, row: Row) -> np.ndarray:
    """V(s): where there are two heads, the second one outside the region."""
    heads = network(params["critic"], observation)
    return np.where(outside, heads[..., row.heads - 1], heads[..., 0])


def log_pi(params: Params, observation: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Of the diagonal Gaussian."""
    sigma = np.exp(params["log_std"])
    z = (action - network(params["actor"], observation)) / sigma
    return (-0.5 * z**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)).sum(-1)


def loss(params: Params, batch: Batch, frozen: Params, hyper, row: Row) -> dict[str, float]:
    """The terms of L, row by row; importance weights are taken at `frozen`: nothing flows through them."""
    scores, held = (log_pi(p, batch.observation, batch.action) for p in (params, frozen))
    counts = (batch.policy_weight > 0) | (batch.importance_weight > 0)
    used = batch.advantage[counts]
    centre, spread = used.mean(), used.std(ddof=1) + 1e-8
    policy = 0.0
    for i in np.flatnonzero(counts):
        a = (batch.advantage[i] - centre) / spread
        if batch.policy_weight[i]:
            ratio = np.exp(scores[i] - batch.log_prob[i])
            kept = min(max(ratio, 1 - hyper.clip), 1 + hyper.clip)
            policy += min(ratio * a, kept * a)
        else:
            policy += min(np.exp(held[i] - batch.log_mu[i]), row.cap) * scores[i] * a
    known = values(params, batch.observation, batch.recovering, row)
    errors = [(known[i] - batch.value_target[i]) ** 2 for i in np.flatnonzero(batch.value_weight)]
    rec = np.flatnonzero(batch.imitation_norm)
    weight = batch.gate[rec] - (batch.gate[rec].mean() if row.gate == "soft" else 0.0) if len(rec) else 0.0
    imitation = -(weight * scores[rec]).sum() / len(rec) if len(rec) else 0.0
    spread_of_policy = (params["log_std"] + 0.5 * np.log(2 * np.pi * np.e)).sum()
    return {
        "policy": -policy / counts.sum(),
        "value": hyper.value_coefficient * 0.5 * float(np.mean(errors)),
        "compat": hyper.lambda_compat * float(imitation),
        "entropy": -hyper.entropy_coefficient * float(spread_of_policy),
    }
