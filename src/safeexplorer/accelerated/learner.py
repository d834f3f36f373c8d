"""The weighted learner with everything that it carries from update to update on the device."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import Params, normalised_observation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.learners import as_row
from safeexplorer.learning.methods import Method
from safeexplorer.learning.moments import Moments
from safeexplorer.learning.networks import read_by
from safeexplorer.learning.normalising import believed, normaliser, taken_in
from safeexplorer.learning.update import LearnerState, init_learner, make_learn
from safeexplorer.learning.waiting import NOBODY, Waiting, hold_back, nothing_waits, release

LATE_SHARE = 8  # of a rollout's steps at most one in so many, besides: steps whose outcome came later
ROOM = 2  # rollouts of steps that can wait


class Carried(NamedTuple):
    """Everything that an update changes."""

    learner: LearnerState
    rate: Any  # the learning rate, where it follows the KL divergence
    moments: Moments | tuple  # of the observations; () where they are not normalised
    waiting: Waiting | tuple  # for outcomes; () where nothing waits


def acting_params(carried: Carried, xp: Any = jnp) -> Params:
    """What acting needs: the networks, and the policy's part of the normaliser."""
    params = carried.learner.params
    if not carried.moments:
        return params
    scales = normaliser(carried.moments, xp)
    return params | {"normaliser": {k: read_by("actor", params["actor"], x) for k, x in scales.items()}}


def normalised(rollout: Rollout, moments: Moments) -> Rollout:
    """The rollout as the networks see it."""
    scales = normaliser(moments, jnp)
    both = (normalised_observation(scales, x, jnp) for x in (rollout.observation, rollout.next_observation))
    return rollout._replace(**dict(zip(("observation", "next_observation"), both, strict=True)))


@functools.cache
def make_step(method: Method, hyper: Hyperparameters) -> Callable:
    """`step(carried, rollout, order, learning_rate) -> (carried, metrics)`, a pure function to be compiled."""
    learn = make_learn(method, hyper)

    def step(carried: Carried, rollout: Rollout, order: Any, learning_rate: Any) -> tuple[Carried, Any]:
        moments, waiting, late, seen = carried.moments, carried.waiting, None, rollout
        rate = learning_rate if hyper.desired_kl is None else carried.rate
        if moments:
            seen = normalised(rollout, moments)
        if waiting:
            waiting, undecided = hold_back(waiting, rollout, jnp)
            waiting, late = release(waiting, late_rows(order.shape[1], hyper), jnp)
            seen = seen._replace(undecided=undecided)
        if late is not None and moments:
            scales = acting_params(carried)["normaliser"]
            late = late._replace(observation=normalised_observation(scales, late.observation, jnp))
        learner, metrics = learn(carried.learner, seen, order, rate, None, late)
        if moments:
            moments, params = taken_in(moments, rollout, learner.params, jnp)
            learner = learner._replace(params=params)
        if waiting:
            metrics["waiting"] = (waiting.owner >= 0).sum()
        return Carried(learner, metrics.get("learning_rate", rate), moments, waiting), metrics

    return step


def late_rows(size: int, hyper: Hyperparameters) -> int:
    """How many steps of earlier rollouts an update can learn from: the same number in every minibatch."""
    return hyper.minibatches * max(size // (hyper.minibatches * LATE_SHARE), 1)


class DeviceLearner:
    """The learner of a run on JAX environments."""

    columns = ["waiting"]
    handover = None

    def __init__(
        self,
        method: Method,
        hyper: Hyperparameters,
        params: Params,
        batch_size: int,
        action_size: int,
        learning_rate: float = 0.0,
    ):
        self.step = make_step(method, hyper)
        policy_size, critic_size = (len(params[name][0]["weight"]) for name in ("actor", "critic"))
        row_size = policy_size if critic_size == policy_size else policy_size + critic_size
        moments: Any = ()
        if method.normalise_observations:
            count, *rest = believed(row_size)
            moments = Moments(jnp.float32(count), *(jnp.asarray(x, jnp.float32) for x in rest))
        waiting: Any = ()
        if method.wait_for_outcomes:
            waiting = Waiting(*map(jnp.asarray, nothing_waits(ROOM * batch_size, policy_size, action_size)))
        self.carried = Carried(init_learner(params, hyper), jnp.float32(learning_rate), moments, waiting)
        self._published: tuple[Any, Any] = None, None

    @property
    def params(self) -> Params:
        """Numpy arrays, all that acting needs; they come to the host once per update."""
        known, params = self._published
        if known is not self.carried:
            learner = LearnerState(self.carried.learner.params, ())
            bare = jax.device_get(self.carried._replace(learner=learner, waiting=()))
            self._published = self.carried, (params := acting_params(bare, np))
        return params

    def update(self, rollout: Rollout, order: np.ndarray, learning_rate: float) -> dict[str, float | None]:
        """Learn from a rollout that came from elsewhere; `fleet` does it where the rollout is made."""
        self.carried, metrics = jax.jit(self.step)(self.carried, rollout, order, np.float32(learning_rate))
        return as_row(metrics)

    def cut(self) -> None:
        """New episodes begin everywhere: what is open will never have an outcome."""
        if self.carried.waiting:
            owner = jnp.minimum(self.carried.waiting.owner, NOBODY)
            self.carried = self.carried._replace(waiting=self.carried.waiting._replace(owner=owner))

    def get_state(self) -> Any:
        """From which learning goes on in new episodes: nothing waits there."""
        return jax.device_get(self.carried._replace(waiting=()))

    def set_state(self, state: Any) -> None:
        waiting = self.carried.waiting and self.carried.waiting._replace(
            owner=jnp.full_like(self.carried.waiting.owner, NOBODY)
        )
        self.carried = jax.tree.map(jnp.asarray, state)._replace(waiting=waiting)
