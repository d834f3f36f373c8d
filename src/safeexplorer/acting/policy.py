"""The main policy: a Gaussian over a box of actions, or a categorical over numbered choices.

The parameters say which: a Gaussian has a `log_std`. An action is a row of float32 numbers in either case, [m] for a
box and [1], the index of the choice, for a categorical; everything between the environment and the loss treats both
alike. Theorem 1 (masked gradient) asks only that log pi is differentiable.
"""

from typing import Any, NamedTuple

import numpy as np

from safeexplorer.acting.networks import Params, mlp, policy_mean


class Sizes(NamedTuple):
    """What goes into the policy and what comes out."""

    observation: int  # n
    action: int  # m, numbers per action
    choices: int = 0  # K > 0: one of K choices, and m = 1
    scale: tuple[float, ...] = ()  # of each number of an action: half its range, 1 where it has none


def is_gaussian(params: Params) -> bool:
    """Otherwise the policy is categorical."""
    return "log_std" in params


def draw_noise(params: Params, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """What makes `propose` a sample: sigma times a normal [..., m], or Gumbel numbers [..., K]."""
    if is_gaussian(params):
        size = len(params["log_std"])
        return rng.standard_normal((*shape, size), np.float32) * np.exp(params["log_std"])
    return rng.gumbel(size=(*shape, len(params["actor"][-1]["bias"]))).astype(np.float32)


def propose(params: Params, observation: Any, noise: Any = 0.0, xp: Any = np) -> Any:
    """The policy's action for observations [E, n], unclipped, [E, m]; without noise its mean or likeliest choice."""
    scores = policy_mean(params, observation, xp) + noise
    return scores if is_gaussian(params) else scores.argmax(-1)[..., None].astype(np.float32)


def shaken(
    params: Params, action: np.ndarray, noise: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Someone's actions [E, m] with this share of the policy's noise; of choices, this share is drawn anew."""
    if is_gaussian(params):
        return action + np.float32(share) * noise
    return np.where(rng.random((len(action), 1)) < share, noise.argmax(-1)[..., None], action).astype(
        np.float32
    )


def softened(params: Params, observation: np.ndarray, confidence: float) -> Params:
    """A categorical policy with its scores scaled so that the likeliest choice has the probability `confidence`, on
    average over the observations (as the actor sees them); one that is less sure stays as it is."""
    scores = mlp(params["actor"], observation)
    scores = scores - scores.max(-1, keepdims=True)

    def sureness(factor: float) -> float:
        return float((1.0 / np.exp(factor * scores).sum(-1)).mean())

    low, high = 0.0, 1.0
    if sureness(high) <= confidence:
        return params
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if sureness(middle) < confidence else (low, middle)
    *hidden, last = params["actor"]
    return params | {"actor": [*hidden, {name: x * np.float32(high) for name, x in last.items()}]}
