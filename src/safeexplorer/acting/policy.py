"""The main policy: a Gaussian over a box of actions, or a categorical over numbered choices.

The parameters say which: a Gaussian has a `log_std`. An action is a row of float32 numbers in either case, [m] for a
box and [1], the index of the choice, for a categorical; everything between the environment and the loss treats both
alike. Theorem 1 (masked gradient) asks only that log pi is differentiable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import (
    Params,
    gaussian_entropy,
    gaussian_log_prob,
    mlp,
    policy_mean,
)


class Sizes(NamedTuple):
    """What goes into the policy and what comes out."""

    observation: int  # n
    action: int  # m, numbers per action
    choices: int = 0  # K > 0: one of K choices, and m = 1


def is_gaussian(params: Params) -> bool:
    """Otherwise the policy is categorical."""
    return "log_std" in params


# Acting, in numpy.


def draw_noise(params: Params, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """What makes `propose` a sample: sigma times a normal [..., m], or Gumbel numbers [..., K]."""
    if is_gaussian(params):
        size = len(params["log_std"])
        return rng.standard_normal((*shape, size), np.float32) * np.exp(params["log_std"])
    return rng.gumbel(size=(*shape, len(params["actor"][-1]["bias"]))).astype(np.float32)


def propose(params: Params, observation: np.ndarray, noise: np.ndarray | float = 0.0) -> np.ndarray:
    """The policy's action for observations [E, n], unclipped, [E, m]; without noise its mean or likeliest choice."""
    scores = policy_mean(params, observation, np) + noise
    return scores if is_gaussian(params) else scores.argmax(-1)[..., None].astype(np.float32)


# Learning, in jax.numpy.


def log_prob(params: Params, observation: Any, action: Any) -> Any:
    """log pi(a | s)."""
    output = mlp(params["actor"], observation)
    if is_gaussian(params):
        return gaussian_log_prob(action, output, params["log_std"])
    index = action[..., :1].astype(jnp.int32)
    return jnp.take_along_axis(jax.nn.log_softmax(output), index, -1)[..., 0]


def entropy(params: Params, observation: Any) -> Any:
    """H(pi(. | s)): one number per state, or a single one for a Gaussian, whose spread is the same everywhere."""
    if is_gaussian(params):
        return gaussian_entropy(params["log_std"])
    log_probs = jax.nn.log_softmax(mlp(params["actor"], observation))
    return -(jnp.exp(log_probs) * log_probs).sum(-1)
