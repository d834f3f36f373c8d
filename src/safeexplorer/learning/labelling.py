"""From a rollout and a row of the method table to per-step numbers: the only place where methods differ."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from safeexplorer.acting.trajectory import Batch, Rollout, Segments
from safeexplorer.learning.methods import Method
from safeexplorer.learning.segments import find_segments


class Appraisal(NamedTuple):
    """The networks' view of a rollout, under the parameters that collected it."""

    value: Any  # [T, E] V(s_t)
    next_value: Any  # [T, E] V(s_{t+1}), of the final observation where the episode ended
    log_prob: Any  # [T, E] log pi(a_t | s_t) of the stored action


def stored_action(rollout: Rollout, method: Method) -> Any:
    """Relabelling keeps the policy's own proposal at recovery steps; every other rule what was executed."""
    return rollout.proposed if method.stored_action == "proposed" else rollout.action


def learning_reward(rollout: Rollout, method: Method) -> Any:
    """The task reward, changed on recovery steps; a terminating step keeps the environment's own (r_term)."""
    if method.recovery_reward == "task":
        return rollout.task_reward
    if method.recovery_reward == "task_minus_one":
        return rollout.task_reward - rollout.recovering
    return jnp.where(rollout.recovering & ~rollout.terminated, 0.0, rollout.task_reward)


def analytic_value(value: Any, segments: Segments, gamma: float) -> Any:
    """Proposition 6, equation (analytic-V): at the state that triggers recovery,

    V(s_t) = gamma^l V(s_{t+l}) on success and gamma^(l-1) r_term on failure, l the segment's length;
    at a goal, too, the last reward is all that follows.
    """
    exponent = segments.length - segments.terminal
    return jnp.where(segments.start, gamma**exponent * segments.end_value, value)


def average_rerolls(value: Any, rollout: Rollout, segments: Segments) -> Any:
    """The stochastic extension: the mean over the realised recovery and the re-rolled ones."""
    count = rollout.reroll_count
    mean = (value + count * rollout.reroll_value) / (1.0 + count)
    return jnp.where(segments.start, mean, value)


def advantages(
    reward: Any, value: Any, appraisal: Appraisal, rollout: Rollout, discounts: tuple[float, float]
):
    """GAE(gamma, lambda) over the whole mixed trajectory, on the overwritten values.

    A fall cuts the bootstrap; the time limit bootstraps from the final observation and cuts the trace.
    Within an episode the next value is the (overwritten) value of the next step.
    """
    gamma, gae_lambda = discounts
    ended = rollout.terminated | rollout.truncated
    following = jnp.concatenate([value[1:], appraisal.next_value[-1:]])
    next_value = jnp.where(ended, appraisal.next_value, following)
    delta = reward + gamma * jnp.where(rollout.terminated, 0.0, next_value) - value
    decay = jnp.where(ended, 0.0, gamma * gae_lambda)

    def backwards(after, step):
        delta, decay = step
        now = delta + decay * after
        return now, now

    return jax.lax.scan(backwards, jnp.zeros_like(delta[0]), (delta, decay), reverse=True)[1]


def gate(method: Method, segments: Segments, value: Any, gamma: float) -> Any:
    """w_t of the compatibility loss: hard = 1[segment succeeded]; soft = gamma^k V(s_{t+k}) - V(s_t), with k
    the steps left in the segment (r_term stands for the value where it is terminal); always = 1."""
    if method.gate == "hard":
        return segments.succeeded.astype(value.dtype)
    if method.gate == "always":
        return jnp.ones_like(value)
    if method.gate == "soft":
        exponent = segments.remaining - segments.terminal
        return gamma**exponent * segments.end_value - value
    return jnp.zeros_like(value)


def label(
    rollout: Rollout,
    appraisal: Appraisal,
    method: Method,
    discounts: tuple[float, float],
    per_segment: bool = False,
) -> tuple[Batch, Segments]:
    """Compile a method into a batch [T, E, ...] of per-step numbers."""
    gamma, _ = discounts
    main = ~rollout.recovering
    every = jnp.ones_like(main)
    segments = find_segments(rollout, appraisal.next_value)
    value = appraisal.value
    if method.analytic_value:
        value = analytic_value(value, segments, gamma)
        value = average_rerolls(value, rollout, segments)
    advantage = advantages(learning_reward(rollout, method), value, appraisal, rollout, discounts)
    norm = rollout.recovering / jnp.maximum(segments.length, 1) if per_segment else rollout.recovering
    norm = jnp.where(rollout.undecided, 0, norm)
    number = advantage.dtype
    batch = Batch(
        observation=rollout.observation,
        recovering=rollout.recovering,
        action=stored_action(rollout, method),
        log_prob=appraisal.log_prob,
        log_mu=rollout.recovery_log_density,
        advantage=advantage,
        value_target=advantage + value,
        policy_weight=(every if method.policy_steps == "all" else main).astype(number),
        importance_weight=(rollout.recovering & (method.importance_cap is not None)).astype(number),
        log_cap=jnp.full_like(advantage, math.log(method.importance_cap or 1.0)),
        value_weight=(every if method.value_steps == "all" else main).astype(number),
        imitation_norm=(norm * (method.gate != "off")).astype(number),
        gate=gate(method, segments, appraisal.value, gamma),
        gate_centred=jnp.full_like(advantage, method.gate == "soft"),
    )
    return batch, segments
