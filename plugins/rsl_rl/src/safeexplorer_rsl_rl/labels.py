"""Recovery segments of a rollout: how each ended, and the value where it began. All tensors are [T, E]."""

from __future__ import annotations

from typing import NamedTuple

import torch


class MixedRollout(NamedTuple):
    """What the labels need to know of a rollout in which two acted."""

    recovering: torch.Tensor  # bool, the recovery acted
    fell: torch.Tensor  # bool, the step terminated the episode
    ended: torch.Tensor  # bool, the step ended the episode (a fall or a time limit)
    task_reward: torch.Tensor  # the environment's own reward
    value: torch.Tensor  # V(s_t)
    limit_value: torch.Tensor  # the value to bootstrap from where a time limit ended the episode
    last_value: torch.Tensor  # [E] V of the observation after the last step


class Segments(NamedTuple):
    """Maximal runs of recovery steps inside one episode, spread over their steps."""

    start: torch.Tensor  # bool, first step of a segment in this rollout
    remaining: torch.Tensor  # steps until the segment ends (1 on its last step), else 0
    succeeded: torch.Tensor  # bool, the segment did not end in a fall
    decided: torch.Tensor  # bool, the segment ended within this rollout
    exit_value: torch.Tensor  # V where it ended on success, r_term on failure


def find_segments(rollout: MixedRollout) -> Segments:
    """One pass backwards through the rollout, all environments at once.

    A segment failed if its last step terminated. One that the time limit ends succeeded. One that the
    rollout's end cuts is undecided; for its value it counts as a success that continues from V(s_T).
    """
    recovering, fell, ended = rollout.recovering, rollout.fell, rollout.ended
    carries_on = recovering & ~ended
    start = recovering.clone()
    start[1:] &= ~carries_on[:-1]
    last = recovering.clone()
    last[:-1] &= ended[:-1] | ~recovering[1:]
    next_value = torch.cat([rollout.value[1:], rollout.last_value[None]])
    exit_here = torch.where(fell, rollout.task_reward, torch.where(ended, rollout.limit_value, next_value))
    decided_here = ended.clone()
    decided_here[:-1] = True

    remaining = torch.zeros_like(rollout.value)
    succeeded, decided = torch.zeros_like(recovering), torch.zeros_like(recovering)
    exit_value = torch.zeros_like(rollout.value)
    steps = len(recovering)
    for t in reversed(range(steps)):
        after = min(t + 1, steps - 1)  # never read where the segment ends here
        remaining[t] = torch.where(last[t], 1.0, remaining[after] + 1.0)
        succeeded[t] = torch.where(last[t], ~fell[t], succeeded[after])
        decided[t] = torch.where(last[t], decided_here[t], decided[after])
        exit_value[t] = torch.where(last[t], exit_here[t], exit_value[after])
    return Segments(
        start, remaining * recovering, succeeded & recovering, decided & recovering, exit_value * recovering
    )


def analytic_value(value: torch.Tensor, segments: Segments, gamma: float) -> torch.Tensor:
    """At the state that triggers recovery, with l the segment's length,

    V(s_t) = gamma^l V(s_{t+l}) on success and gamma^(l-1) r_term on failure.
    """
    exponent = segments.remaining - (~segments.succeeded).to(value.dtype)
    return torch.where(segments.start, gamma**exponent * segments.exit_value, value)


def learning_reward(
    task_reward: torch.Tensor, bonus: torch.Tensor | float, recovering: torch.Tensor, fell: torch.Tensor
) -> torch.Tensor:
    """The task reward and the policy's exploration bonus on its own steps; zero on recovery steps, except that
    a step that terminates keeps the environment's own reward (r_term)."""
    return torch.where(recovering, torch.where(fell, task_reward, 0.0), task_reward + bonus)


def normalised(advantages: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Mean 0 and standard deviation 1 over the policy's own steps, exactly 0 on the others; one step alone gives 0."""
    weight = own.to(advantages.dtype)
    count = weight.sum()
    centred = advantages - (advantages * weight).sum() / count.clamp(min=1.0)
    deviation = ((centred**2 * weight).sum() / (count - 1.0).clamp(min=1.0)).sqrt()
    return torch.where(own, centred / (deviation + 1e-8), 0.0)
