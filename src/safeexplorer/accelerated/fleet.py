"""E robots and their learner, moved on together: rollout and update in one compiled function."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.accelerated.environments import Robots, check_traceable
from safeexplorer.accelerated.learner import Carried, DeviceLearner, acting_params
from safeexplorer.accelerated.rollout import Crew, collect, draw_noise, limit_of, takes_over
from safeexplorer.acting.interventions import Situation
from safeexplorer.acting.trajectory import Rollout, blank_rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.learners import as_row

COUNTED = ("task_reward", "terminated", "truncated", "recovering", "reached", "distance")


class Told(NamedTuple):
    """What the compiled update is told by the host: numbers, so that nothing is compiled twice."""

    key: Any
    limit: Any  # the radius, or the progress of other interventions
    learning_rate: Any


class Fleet:
    """Robots on the device, and the compiled function that moves them and learns from it."""

    def __init__(self, crew: Crew, rollout_steps: int, hyper: Hyperparameters):
        self.crew, self.rollout_steps, self.hyper = crew, rollout_steps, hyper
        check_crew(crew)
        self._compiled: Any = None

    def reset(self, seed: int) -> None:
        """Start new episodes everywhere."""
        self.begin(self.crew.envs.reset(seed), seed)

    def begin(self, robots: Robots, seed: int) -> None:
        """Go on from where these robots are; the noise follows from the seed."""
        self.robots, self._key = robots, jax.random.PRNGKey(seed)
        if not bool(jnp.isfinite(self.crew.envs.rows(self.robots.state)).all()):
            raise FloatingPointError("env.reset gave observations that are not finite")

    def update(self, learner: DeviceLearner, update: int, progress: float, learning_rate: float):
        """Update number `update`: what is counted of its rollout, and its row of metrics. The learner learns."""
        if self._compiled is None:
            self._compiled = jax.jit(self.make_update(learner.step), donate_argnums=(0, 1))
        told = self.told(update, progress, learning_rate)
        self.robots, learner.carried, counted, metrics = self._compiled(self.robots, learner.carried, told)
        row = as_row(metrics)
        if not row.pop("world_finite"):
            raise FloatingPointError(
                f"update {update}: the environment gave an observation or a reward that is not finite; "
                "the policy is as it was before"
            )
        return jax.device_get(counted), row

    def told(self, update: int, progress: float, learning_rate: float) -> Told:
        """The numbers of one update."""
        limit = np.float32(limit_of(self.crew.intervention, progress))
        return Told(jax.random.fold_in(self._key, update), limit, np.float32(learning_rate))

    def make_update(self, step: Any) -> Any:
        """T steps, then the learner's `step` on them, as one function of what is on the device and what is told."""
        shape = (self.rollout_steps, self.crew.envs.num_envs)

        def update(robots: Robots, carried: Carried, told: Told):
            noise_key, order_key = jax.random.split(told.key)
            params = acting_params(carried)
            noise = draw_noise(params, shape, noise_key)
            robots, rollout = collect(self.crew, params, robots, noise, told.limit)
            keys = jax.random.split(order_key, self.hyper.epochs)
            order = jax.vmap(lambda key: jax.random.permutation(key, shape[0] * shape[1]))(keys)
            learned, metrics = step(carried, rollout, order, told.learning_rate)
            finite = jnp.isfinite(rollout.next_observation).all() & jnp.isfinite(rollout.task_reward).all()
            carried = jax.tree.map(lambda new, old: jnp.where(finite, new, old), learned, carried)
            counted = {name: getattr(rollout, name) for name in COUNTED}
            return robots, carried, counted, metrics | {"world_finite": finite}

        return update


def check_crew(crew: Crew) -> None:
    """Try recovery and intervention on shapes: what JAX cannot compile, or what does not fit, is refused."""
    envs = crew.envs
    for count in (envs.num_envs, envs.num_envs + 1):  # what looks along the wrong axis is found
        rows = jax.ShapeDtypeStruct((count, envs.sizes.observation), jnp.float32)
        number, whole = (jax.ShapeDtypeStruct((count,), kind) for kind in (jnp.float32, jnp.int32))
        if crew.recovery is not None:
            check_traceable("recovery", crew.recovery, (rows,), (count, envs.action_size))

        def asked(observation: Any, distance: Any, step: Any) -> Any:
            return takes_over(crew.intervention, Situation(observation, distance, step), jnp.float32(0.0))

        check_traceable("takes_over", asked, (rows, number, whole), (count,))


def host_rollout(counted: dict[str, np.ndarray], action_size: int) -> Rollout:
    """What is counted, as a rollout on the host; what stays on the device is empty there."""
    shape = counted["terminated"].shape
    action = np.broadcast_to(np.float32(0.0), (*shape, action_size))
    counted = counted | {name: counted[name].astype(np.float64) for name in ("task_reward", "distance")}
    return blank_rollout(shape, 0, 0)._replace(action=action, **counted)
