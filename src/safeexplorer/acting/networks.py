"""Multi-layer perceptrons and the two policies built on them, as plain arrays.

Parameters are dictionaries and lists of float32 arrays. Functions that the learner differentiates too take the array
module as the argument `xp`: numpy unless said otherwise. A hidden layer is followed by tanh unless it names another of
`ACTIVATIONS` by a key without numbers, such as `"elu": {}`: parameters know their activation, and no optimiser sees it.
"""

import math
from typing import Any

import numpy as np

Layers = list[dict[str, Any]]  # [{"weight": [in, out], "bias": [out], "elu": {}}, ...]
Params = dict[str, Any]

LOG_2PI = math.log(2.0 * math.pi)
LOG_2 = math.log(2.0)
LOG_STD_RANGE = (-5.0, 2.0)  # of the recovery
OBSERVATION_CLIP = 5.0


ACTIVATIONS = {
    "tanh": lambda x, xp: xp.tanh(x),
    "relu": lambda x, xp: xp.maximum(x, 0.0),
    "elu": lambda x, xp: xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0.0))),
    "swish": lambda x, xp: x * (0.5 + 0.5 * xp.tanh(0.5 * x)),
}


def activation_of(layer: dict[str, Any]) -> str:
    """What follows a hidden layer."""
    return next((name for name in layer if name in ACTIVATIONS), "tanh")


def mlp(layers: Layers, x: Any, xp: Any = np) -> Any:
    """Hidden layers with their activation, linear output."""
    for layer in layers[:-1]:
        x = ACTIVATIONS[activation_of(layer)](xp.dot(x, layer["weight"]) + layer["bias"], xp)
    return xp.dot(x, layers[-1]["weight"]) + layers[-1]["bias"]


def relu_mlp(layers: Layers, x: Any, xp: Any = np) -> Any:
    """Rectified hidden layers, linear output (the soft actor-critic networks)."""
    for layer in layers[:-1]:
        x = xp.maximum(xp.dot(x, layer["weight"]) + layer["bias"], 0.0)
    return xp.dot(x, layers[-1]["weight"]) + layers[-1]["bias"]


# The main policy and its critic.


def policy_mean(params: Params, observation: Any, xp: Any = np) -> Any:
    """The actor's output; a policy that was trained on normalised observations carries its `normaliser`."""
    if "normaliser" in params:
        observation = normalised_observation(params["normaliser"], observation, xp)
    return mlp(params["actor"], observation, xp)


def normalised_observation(normaliser: Params, observation: Any, xp: Any = np) -> Any:
    """(s - mean) / deviation, held within +-5."""
    scaled = (observation - normaliser["mean"]) / normaliser["deviation"]
    return xp.minimum(xp.maximum(scaled, -OBSERVATION_CLIP), OBSERVATION_CLIP)


def value(critic: Layers, observation: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """V(s)."""
    return read_head(mlp(critic, observation), outside)


def read_head(heads: Any, outside: Any, xp: Any = np) -> Any:
    """A critic with two heads reads the first inside the main-policy set and the second outside."""
    if heads.shape[-1] == 1:
        return heads[..., 0]
    return xp.where(outside, heads[..., 1], heads[..., 0])


# The recovery policy of the paper: a Gaussian squashed by tanh (soft actor-critic).


def squashed_mean_log_std(params: Params, observation: Any, xp: Any = np) -> tuple[Any, Any]:
    """Mean and log standard deviation before the squash; the latter mapped smoothly into its range."""
    output = relu_mlp(params["actor"], observation, xp)
    mean, raw = xp.split(output, 2, axis=-1)
    low, high = LOG_STD_RANGE
    return mean, low + 0.5 * (high - low) * (xp.tanh(raw) + 1.0)


def squash_correction(u: Any, half_range: Any, xp: Any = np) -> Any:
    """log |da/du| of a = centre + half_range * tanh(u): log(1 - tanh(u)^2) in its stable form."""
    softplus = xp.logaddexp(-2.0 * u, 0.0)
    return (2.0 * (LOG_2 - u - softplus) + xp.log(half_range)).sum(-1)
