"""The mixed-policy rollout of `acting.collector`, traced: T steps of E robots without leaving the device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from safeexplorer.accelerated.environments import JaxEnvironments, Robots
from safeexplorer.acting.interventions import Intervention, NoIntervention, SafeRegion, Situation, outside
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import is_gaussian, propose
from safeexplorer.acting.trajectory import Rollout


class Crew(NamedTuple):
    """Who acts, and in what."""

    envs: JaxEnvironments
    intervention: Intervention
    recovery: Callable[[Any], Any] | None  # of the policy's observations [E, n] -> [E, m]


def limit_of(intervention: Intervention, progress: float) -> float:
    """The number that the compiled rollout is told of the curriculum: the radius, or the progress itself."""
    return intervention.radius(progress) if isinstance(intervention, SafeRegion) else progress


def takes_over(intervention: Intervention, situation: Situation, limit: Any) -> Any:
    """[E] bool: True where the recovery acts."""
    if isinstance(intervention, SafeRegion):
        return outside(situation.distance, limit)
    if isinstance(intervention, NoIntervention):
        return jnp.zeros(len(situation.step), bool)
    return intervention.takes_over(situation, limit)


def draw_noise(params: Params, shape: tuple[int, ...], key: Any) -> Any:
    """What makes `propose` a sample, as `acting.policy.draw_noise`."""
    if is_gaussian(params):
        log_std = params["log_std"]
        return jax.random.normal(key, (*shape, len(log_std))) * jnp.exp(log_std)
    return jax.random.gumbel(key, (*shape, len(params["actor"][-1]["bias"])))


def collect(crew: Crew, params: Params, robots: Robots, noise: Any, limit: Any) -> tuple[Robots, Rollout]:
    """One step per row of `noise` [T, E, ...] under the mixed policy."""
    envs = crew.envs

    def advance(robots: Robots, noise: Any) -> tuple[Robots, Rollout]:
        rows, distance = envs.rows(robots.state), envs.distance(robots.state)
        seen = envs.policy_rows(rows)
        proposed = propose(params, seen, noise, jnp)
        recovering = takes_over(crew.intervention, Situation(seen, distance, robots.step), limit)
        action = proposed
        if crew.recovery is not None:
            caught = jnp.clip(crew.recovery(seen), -1.0, 1.0).astype(proposed.dtype)
            action = jnp.where(recovering[:, None], caught, proposed)
        moved, after = envs.step(robots, action)
        ahead = Situation(envs.policy_rows(moved.observation), moved.distance, robots.step + 1)
        return after, Rollout(
            observation=rows,
            next_observation=moved.observation,
            distance=distance,
            proposed=proposed,
            action=action,
            task_reward=moved.reward,
            terminated=moved.terminated,
            truncated=moved.truncated,
            recovering=recovering,
            next_outside=takes_over(crew.intervention, ahead, limit),
            recovery_log_density=jnp.zeros_like(moved.reward),
            reached=moved.reached,
        )

    robots, rollout = jax.lax.scan(advance, robots, noise)
    return robots, rollout._replace(reroll_value=0.0, reroll_count=0.0, undecided=jnp.zeros((), bool))
