"""The nouns of the algorithm. T steps in E environments; every array says its shape and meaning."""

from typing import Any, NamedTuple

import numpy as np


class Rollout(NamedTuple):
    """What happened, in the order it happened. No field depends on the method that will learn from it."""

    observation: Any  # [T, E, n] s_t
    next_observation: Any  # [T, E, n] s_{t+1}; the final observation where the episode ended
    distance: Any  # [T, E] D(s_t), NaN where there is none
    proposed: Any  # [T, E, m] the main policy's own sample, unclipped, drawn at every step
    action: Any  # [T, E, m] the sample on main steps, the executed recovery action on recovery steps
    task_reward: Any  # [T, E] the environment's own reward
    terminated: Any  # [T, E] bool, the episode ended for good: a fall, unless `reached`
    truncated: Any  # [T, E] bool, the time limit (never true where terminated)
    recovering: Any  # [T, E] bool, s_t outside the main-policy set: the recovery acted
    next_outside: Any  # [T, E] bool, s_{t+1} outside the main-policy set
    recovery_log_density: Any  # [T, E] log mu(a_t | s_t) where a sampled recovery acted, else 0
    reroll_value: Any = 0.0  # [T, E] mean value of re-rolled recoveries at a segment's first step, else 0
    reroll_count: Any = 0.0  # [T, E] how many recoveries were re-rolled there
    reached: Any = np.False_  # [T, E] bool, terminated because the task was done
    undecided: Any = np.False_  # [T, E] bool, the recovery's end is not known yet and is waited for

    @property
    def fell(self) -> Any:
        """[T, E] bool, terminated otherwise than by reaching a goal."""
        return self.terminated & ~self.reached


def blank_rollout(shape: tuple[int, int], n: int = 1, m: int = 1, **known: Any) -> Rollout:
    """A rollout [T, E] in which nothing happened, but for the fields that are known."""
    sizes = {"observation": n, "next_observation": n, "proposed": m, "action": m}
    flags = ("terminated", "truncated", "recovering", "next_outside", "reached")
    blank = {name: np.zeros((*shape, size), np.float32) for name, size in sizes.items()}
    blank |= {name: np.zeros(shape) for name in ("distance", "task_reward")}
    blank |= {name: np.zeros(shape, bool) for name in flags}
    return Rollout(**blank | {"recovery_log_density": np.zeros(shape, np.float32)} | known)


class Segments(NamedTuple):
    """Maximal runs of recovery steps inside one episode, spread over their steps."""

    start: Any  # [T, E] bool, first step of a segment in this rollout
    length: Any  # [T, E] length of the segment that contains the step, else 0
    remaining: Any  # [T, E] steps until the segment ends (1 on its last step), else 0
    succeeded: Any  # [T, E] bool, the segment did not end in a fall
    terminal: Any  # [T, E] bool, the segment's last step terminated, by a fall or at a goal
    end_value: Any  # [T, E] r_term where it is terminal, else V at re-entry, else 0


class Batch(NamedTuple):
    """What the learner sees: numbers per step. One row, one step; B = T * E rows after flattening."""

    observation: Any  # [B, n]
    recovering: Any  # [B] bool, the recovery acted: which critic head to read
    action: Any  # [B, m] the stored action
    log_prob: Any  # [B] log pi_old(action | s)
    log_mu: Any  # [B] log density of the recovery, for importance weights only
    advantage: Any  # [B]
    value_target: Any  # [B] R = A + V
    policy_weight: Any  # [B] w_pi: 1 where the clipped surrogate counts the step
    importance_weight: Any  # [B] w_is: 1 where the step counts through min(pi / mu, c)
    log_cap: Any  # [B] log c
    value_weight: Any  # [B] w_V
    imitation_norm: Any  # [B] share of the step in the normaliser of the compatibility loss
    gate: Any  # [B] w_t of the compatibility loss
    gate_centred: Any  # [B] 1 where w_t counts relative to its mean over the minibatch, else 0


def by_step(columns: Any) -> Any:
    """The columns [T, E, ...] of a named tuple with one row per step, [T * E, ...]."""
    return type(columns)(*(x.reshape(-1, *x.shape[2:]) for x in columns))
