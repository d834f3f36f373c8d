"""Recovery segments: where each begins, how long it is, how it ended, and the value at its end."""

from typing import Any

import jax
import jax.numpy as jnp

from safeexplorer.acting.trajectory import Rollout, Segments


def find_segments(rollout: Rollout, next_value: Any) -> Segments:
    """One scan backwards through the rollout, all environments at once.

    A segment is a maximal run of recovery steps within an episode. It failed if its last step was a
    fall. Otherwise it succeeded: it re-entered the region, ended at a goal, or was cut by the time limit or
    the end of the rollout, which counts as a tentative success that bootstraps from the next observation.
    """
    recovering, terminated = rollout.recovering, rollout.terminated
    ended = terminated | rollout.truncated
    open_before = jnp.concatenate([jnp.zeros_like(recovering[:1]), (recovering & ~ended)[:-1]])
    start = recovering & ~open_before
    goes_on = jnp.concatenate([(recovering[1:] & ~ended[:-1]), jnp.zeros_like(recovering[:1])])
    last = recovering & ~goes_on
    end_value_here = jnp.where(terminated, rollout.task_reward, next_value)

    def backwards(after, step):
        last, recovering, terminated, fell, end_value_here = step
        remaining, succeeded, terminal, end_value = after
        remaining = jnp.where(recovering, jnp.where(last, 1, remaining + 1), 0)
        succeeded = recovering & jnp.where(last, ~fell, succeeded)
        terminal = recovering & jnp.where(last, terminated, terminal)
        end_value = jnp.where(recovering, jnp.where(last, end_value_here, end_value), 0.0)
        now = (remaining, succeeded, terminal, end_value)
        return now, now

    width = recovering.shape[1]
    no = jnp.zeros(width, bool)
    nothing = (jnp.zeros(width, jnp.int32), no, no, jnp.zeros(width, end_value_here.dtype))
    steps = (last, recovering, terminated, rollout.fell, end_value_here)
    _, (remaining, *ending) = jax.lax.scan(backwards, nothing, steps, reverse=True)
    return Segments(start, _whole_length(start, recovering, remaining), remaining, *ending)


def _whole_length(start: Any, recovering: Any, remaining: Any) -> Any:
    """Carry each segment's length, known at its first step, forward to all of its steps."""

    def forwards(before, step):
        start, recovering, remaining = step
        length = jnp.where(recovering, jnp.where(start, remaining, before), 0)
        return length, length

    nothing = jnp.zeros(start.shape[1], remaining.dtype)
    return jax.lax.scan(forwards, nothing, (start, recovering, remaining))[1]
