"""What the training loop asks of a learner, and the two kinds there are."""

from __future__ import annotations

import math
from typing import Any, Protocol

import jax
import numpy as np

from safeexplorer.acting.networks import Params, init_actor_critic
from safeexplorer.acting.policy import Sizes
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning import diagnostics
from safeexplorer.learning.constrained.learner import make_constrained
from safeexplorer.learning.learner import Hyperparameters, init_learner, make_learn
from safeexplorer.learning.methods import CONSTRAINED, Method
from safeexplorer.runs.settings import Settings


class Learner(Protocol):
    """Improves a policy from one rollout after another."""

    params: Params  # numpy arrays, all that acting needs
    columns: list[str]  # metrics of its own, beyond those of every run

    def update(
        self, rollout: Rollout, distances: np.ndarray, order: np.ndarray, learning_rate: float
    ) -> dict[str, float | None]:
        """Learn from a rollout, given D(s_t) and the order of its steps in each pass; a row of metrics.

        `finite` in the row says whether the parameters still are.
        """
        ...

    def get_state(self) -> Any:
        """Nested arrays from which `set_state` goes on bit for bit."""
        ...

    def set_state(self, state: Any) -> None: ...


class WeightedLearner:
    """The one learner of every row of the method table (`learner`)."""

    columns: list[str] = []

    def __init__(self, method: Method, hyper: Hyperparameters, params: Params):
        self.state = init_learner(params, hyper)
        self.learn = make_learn(method, hyper)
        self.params = jax.device_get(self.state.params)

    def update(
        self, rollout: Rollout, distances: np.ndarray, order: np.ndarray, learning_rate: float
    ) -> dict[str, float | None]:
        self.state, metrics = self.learn(self.state, rollout, order, np.float32(learning_rate))
        self.params = jax.device_get(self.state.params)
        row = {name: float(x) for name, x in jax.device_get(metrics).items()}
        return {name: None if name in diagnostics.COLUMNS and math.isnan(x) else x for name, x in row.items()}

    def get_state(self) -> Any:
        return jax.device_get(self.state)

    def set_state(self, state: Any) -> None:
        self.state = jax.tree.map(jax.numpy.asarray, state)
        self.params = jax.device_get(self.state.params)


def make_learner(settings: Settings, rng: np.random.Generator, sizes: Sizes) -> Learner:
    """The learner of a run."""
    if settings.method in CONSTRAINED:
        return make_constrained(settings, rng, sizes.observation, sizes.action)
    method = settings.method_row()
    params = init_actor_critic(
        rng, sizes.observation, sizes.action, settings.hidden, method.critic_heads, sizes.choices
    )
    return WeightedLearner(method, settings.hyperparameters(), params)
