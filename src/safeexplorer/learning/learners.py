"""What the training loop asks of a learner, and the one of every row of the method table."""

import math
from typing import Any, Protocol

import jax
import numpy as np

from safeexplorer.acting.handover import Handover
from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning import diagnostics
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import Method
from safeexplorer.learning.update import init_learner, make_learn


class Learner(Protocol):
    """Improves a policy from one rollout after another."""

    params: Params  # numpy arrays, all that acting needs
    columns: list[str]  # metrics of its own, beyond those of every run
    handover: Handover | None  # from the recovery to the policy, where there is one

    def update(self, rollout: Rollout, order: np.ndarray, learning_rate: float) -> dict[str, float | None]:
        """Learn from a rollout, given the order of its steps in each pass; a row of metrics.

        `finite` in the row says whether the parameters still are.
        """
        ...

    def get_state(self) -> Any:
        """Nested arrays from which `set_state` goes on bit for bit."""
        ...

    def set_state(self, state: Any) -> None: ...

    def cut(self) -> None:
        """New episodes begin everywhere, the old ones never to be finished."""
        ...


class WeightedLearner:
    """The one learner of every row of the method table (`update`)."""

    columns: list[str] = []
    handover = None

    def __init__(self, method: Method, hyper: Hyperparameters, params: Params):
        self.state = init_learner(params, hyper)
        self.learn = make_learn(method, hyper)
        self.params = jax.device_get(self.state.params)

    def update(self, rollout: Rollout, order: np.ndarray, learning_rate: float) -> dict[str, float | None]:
        self.state, metrics = self.learn(self.state, rollout, order, np.float32(learning_rate))
        self.params = jax.device_get(self.state.params)
        return as_row(metrics)

    def get_state(self) -> Any:
        return jax.device_get(self.state)

    def set_state(self, state: Any) -> None:
        self.state = jax.tree.map(jax.numpy.asarray, state)
        self.params = jax.device_get(self.state.params)

    def cut(self) -> None:
        """Nothing here spans two rollouts."""


def as_row(metrics: dict[str, Any]) -> dict[str, float | None]:
    """Numbers of an update, on the host."""
    row = {name: float(x) for name, x in jax.device_get(metrics).items()}
    return {name: None if name in diagnostics.COLUMNS and math.isnan(x) else x for name, x in row.items()}
