"""What a step costs in the constrained problem."""

from collections.abc import Callable

import numpy as np

COSTS = ("fall", "region")


def step_cost(kind: str, max_radius: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The cost of steps as a function of (terminated, D(s_t)).

    fall:   c_t = 1[the step ends in a fall]; the time limit costs nothing
    region: c_t = 1[D(s_t) > d_max], the steps at which a recovery would act
    """
    if kind == "fall":
        return lambda terminated, distance: terminated.astype(np.float64)
    if kind == "region":
        return lambda terminated, distance: (distance > max_radius).astype(np.float64)
    raise ValueError(f"no cost {kind!r}; known: {', '.join(COSTS)}")
