"""Rollouts from masks, for tests of what is counted in them."""

from __future__ import annotations

import numpy as np

from safeexplorer.acting.trajectory import Rollout, blank_rollout


def rollout_of(recovering, terminated=None, truncated=None, distance=0.0) -> Rollout:
    """Masks [T, E] as a rollout; every step earns 1."""
    shape = np.shape(recovering)
    masks = {"recovering": recovering, "terminated": terminated, "truncated": truncated}
    given = {name: np.array(mask, bool) for name, mask in masks.items() if mask is not None}
    return blank_rollout(shape, task_reward=np.ones(shape), distance=np.full(shape, distance), **given)


def columns(*words: str) -> np.ndarray:
    """One robot per word, one letter per step: '.' is False."""
    return np.array([[letter != "." for letter in word] for word in words]).T
