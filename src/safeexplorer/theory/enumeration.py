"""Every trajectory of a finite horizon with its probability, and the policy-gradient estimators on them.

A trajectory carries both what the main policy proposed and what was executed: relabelling stores the former.
Expectations and variances are exact sums, so a bias of 1e-11 is a bias of zero and nothing is left to chance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from safeexplorer.theory.mdp import MDP, softmax


@dataclass(frozen=True)
class Trajectories:
    """N trajectories of T steps."""

    probability: np.ndarray  # [N]
    state: np.ndarray  # [N, T] s_t
    proposed: np.ndarray  # [N, T] the main policy's own sample
    executed: np.ndarray  # [N, T] what acted
    recovering: np.ndarray  # [N, T] bool, the recovery acted
    alive: np.ndarray  # [N, T] bool, the episode has not ended
    total_reward: np.ndarray  # [N] r(tau) = sum_t gamma^t r_t


def step_distribution(mdp: MDP, main: np.ndarray, recovery: np.ndarray, recovering: np.ndarray) -> np.ndarray:
    """[S, proposed, executed, S'] probability of one step; recovering [S, A] by state and proposed action."""
    own = np.eye(mdp.actions)[None]  # executed = proposed
    executed = np.where(recovering[:, :, None], recovery[:, None, :], own)
    joint = main[:, :, None, None] * executed[..., None] * mdp.transition[:, None]
    joint[mdp.terminal] = 0.0
    for state in np.flatnonzero(mdp.terminal):
        joint[state, 0, 0, state] = 1.0
    return joint


def enumerate_trajectories(
    mdp: MDP, theta: np.ndarray, recovery: np.ndarray, recovering: np.ndarray
) -> Trajectories:
    """All trajectories of the mixed process; recovering [T, S, A] says when the recovery takes over."""
    main = softmax(theta)
    now = np.flatnonzero(mdp.start)
    probability, total_reward = mdp.start[now], np.zeros(len(now))
    history = np.zeros((len(now), 0, 3), np.int64)  # (state, proposed, executed) per step
    for t, table in enumerate(recovering):
        joint = step_distribution(mdp, main, recovery, table)[now]  # [N, A, A, S]
        parent, proposed, executed, after = np.nonzero(joint)
        step = np.stack([now[parent], proposed, executed], axis=1)
        history = np.concatenate([history[parent], step[:, None]], axis=1)
        reward = mdp.reward[now[parent], executed, after]
        probability = probability[parent] * joint[parent, proposed, executed, after]
        total_reward = total_reward[parent] + mdp.gamma**t * reward
        now = after
    state, proposed, executed = np.moveaxis(history, 2, 0)
    took_over = recovering[np.arange(len(recovering)), state, proposed]
    alive = ~mdp.terminal[state]
    return Trajectories(probability, state, proposed, executed, took_over & alive, alive, total_reward)


def finite_horizon_return(mdp: MDP, theta: np.ndarray, recovery: np.ndarray, recovering: np.ndarray) -> float:
    """J_mix over T steps by backward induction, without enumerating anything."""
    main, values = softmax(theta), np.zeros(mdp.states)
    for table in recovering[::-1]:
        joint = step_distribution(mdp, main, recovery, table).sum(axis=1)  # [S, executed, S']
        values = np.einsum("sap,sap->s", joint, mdp.reward + mdp.gamma * values)
    return float(mdp.start @ values)


def finite_difference(function: Callable[[Any], float], tree: Any, width: float = 1e-5) -> Any:
    """Central differences in every number of a tree of arrays."""
    leaves, structure = jax.tree.flatten(tree)
    gradient = [np.zeros_like(leaf) for leaf in leaves]
    for which, leaf in enumerate(leaves):
        for index in np.ndindex(leaf.shape):
            sides = []
            for sign in (1.0, -1.0):
                nudged = [x.copy() for x in leaves]
                nudged[which][index] += sign * width
                sides.append(function(jax.tree.unflatten(structure, nudged)))
            gradient[which][index] = (sides[0] - sides[1]) / (2 * width)
    return jax.tree.unflatten(structure, gradient)


def score_estimator(
    paths: Trajectories, main: np.ndarray, action: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """sum_t weight_t grad log pi(action_t | s_t) r(tau) for each trajectory, [N, S, A].

    Of a softmax, grad log pi(a | s) is the unit vector of a minus pi(. | s), in the row of s.
    """
    count, (states, actions) = len(paths.probability), main.shape
    total, rows = np.zeros((count, states, actions)), np.arange(count)
    for t in range(action.shape[1]):
        state = paths.state[:, t]
        score = np.eye(actions)[action[:, t]] - main[state]
        total[rows, state] += (paths.alive[:, t] * weight[:, t])[:, None] * score
    return total * paths.total_reward[:, None, None]


def masked(paths: Trajectories, main: np.ndarray) -> np.ndarray:
    """Equation (correct-gradient): the score of main steps only."""
    return score_estimator(paths, main, paths.executed, ~paths.recovering)


def relabelled(paths: Trajectories, main: np.ndarray) -> np.ndarray:
    """Recovery RL's rule carried into a policy gradient: the score of the proposal, at every step."""
    return score_estimator(paths, main, paths.proposed, np.ones_like(paths.recovering))


def unmasked(paths: Trajectories, main: np.ndarray) -> np.ndarray:
    """Recovery actions scored as if the main policy had chosen them."""
    return score_estimator(paths, main, paths.executed, np.ones_like(paths.recovering))


def importance_sampled(
    paths: Trajectories, main: np.ndarray, recovery: np.ndarray, cap: float = np.inf
) -> np.ndarray:
    """Equation (is-decomp): main steps, plus recovery steps weighted by min(pi / mu, cap)."""
    ratio = main[paths.state, paths.executed] / recovery[paths.state, paths.executed]
    weight = np.where(paths.recovering, np.minimum(ratio, cap), 1.0)
    return score_estimator(paths, main, paths.executed, weight)


def mean_and_variance(paths: Trajectories, estimate: np.ndarray) -> tuple[np.ndarray, float]:
    """The exact mean [S, A] of an estimator and the trace of its covariance."""
    mean = np.tensordot(paths.probability, estimate, axes=1)
    spread = ((estimate - mean) ** 2).sum(axis=(1, 2))
    return mean, float(paths.probability @ spread)
