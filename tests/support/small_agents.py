"""Agents of the class that learn in a second."""

from __future__ import annotations

import jax
import numpy as np
from toys import Drift, far, pull_back

from safeexplorer import SafeExplorer, SafeRegion, linear

REGION = SafeRegion(distance=far, radius=linear(0.1, 0.8))
SMALL = {"rollout_steps": 32, "minibatches": 4, "epochs": 2, "hidden": (8,)}


def agent(env=None, **changes) -> SafeExplorer:
    env = [Drift, Drift] if env is None else env
    return SafeExplorer(env, **({"recovery": pull_back, "region": REGION} | SMALL | changes))


def equal(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
