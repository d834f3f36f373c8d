"""The networks as the learner sees them: first parameters, and densities in jax.numpy over whole rollouts."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting import networks
from safeexplorer.acting.networks import ACTIVATIONS, LOG_2PI, Layers, Params, activation_of, read_head
from safeexplorer.acting.policy import is_gaussian

# First parameters.


def orthogonal(rng: np.random.Generator, rows: int, columns: int, gain: float) -> np.ndarray:
    """A matrix with orthonormal rows or columns (whichever are fewer), times `gain`."""
    normal = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(normal)
    q = q * np.sign(np.diag(r))  # makes the distribution uniform (Haar)
    return np.float32(gain) * (q if rows >= columns else q.T).astype(np.float32)


def init_mlp(
    rng: np.random.Generator, sizes: list[int], output_gain: float, activation: str = "tanh"
) -> Layers:
    """Orthogonal weights (hidden gain sqrt 2, output gain given), zero biases."""
    gains = [math.sqrt(2.0)] * (len(sizes) - 2) + [output_gain]
    layers = [
        {"weight": orthogonal(rng, n_in, n_out, gain), "bias": np.zeros(n_out, np.float32)}
        for n_in, n_out, gain in zip(sizes[:-1], sizes[1:], gains, strict=True)
    ]
    mark = {} if activation == "tanh" else {activation: {}}
    return [*(layer | mark for layer in layers[:-1]), layers[-1]]


def init_actor_critic(
    rng: np.random.Generator,
    observation_size: int,
    action_size: int,
    hidden: tuple[int, ...],
    heads: int = 1,
    choices: int = 0,
    activation: str = "tanh",
    critic_size: int = 0,
) -> Params:
    """Separate actor and critic; the actor's output starts near zero (gain 0.01), sigma at one.

    With `choices` the policy is categorical over so many, and has no sigma. `critic_size`: how many numbers the critic
    sees, if not the policy's; a row of observations then holds both, the policy's first.
    """
    actor = init_mlp(rng, [observation_size, *hidden, choices or action_size], 0.01, activation)
    spread = {} if choices else {"log_std": np.zeros(action_size, np.float32)}
    critic = init_mlp(rng, [critic_size or observation_size, *hidden, heads], 1.0, activation)
    return {"actor": actor, **spread, "critic": critic}


def init_uniform(rng: np.random.Generator, sizes: list[int]) -> Layers:
    """Weights and biases uniform within 1/sqrt(fan in), the usual start of soft actor-critic."""
    layers = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        bound, shapes = 1.0 / math.sqrt(n_in), {"weight": (n_in, n_out), "bias": (n_out,)}
        layers.append({k: rng.uniform(-bound, bound, x).astype(np.float32) for k, x in shapes.items()})
    return layers


def init_squashed(
    rng: np.random.Generator, observation_size: int, action_size: int, hidden: tuple[int, ...]
) -> Params:
    """One network with two outputs side by side: mean and log standard deviation."""
    return {"actor": init_uniform(rng, [observation_size, *hidden, 2 * action_size])}


# What is differentiated.


def mlp(layers: Layers, x: Any) -> Any:
    """As `acting.networks.mlp`. Many rows lie along the last axis: a sixteenth less time per update."""
    if x.ndim != 2:
        return networks.mlp(layers, x, jnp)
    x = x.T
    for layer in layers[:-1]:
        x = ACTIVATIONS[activation_of(layer)](layer["weight"].T @ x + layer["bias"][:, None], jnp)
    return (layers[-1]["weight"].T @ x + layers[-1]["bias"][:, None]).T


def read_by(network: str, layers: Layers, columns: Any) -> Any:
    """The columns of an observation that a network has weights for: the actor the first, the critic the last."""
    size = len(layers[0]["weight"])
    return columns[..., :size] if network == "actor" else columns[..., -size:]


def value(critic: Layers, observation: Any, outside: Any) -> Any:
    """V(s)."""
    return read_head(mlp(critic, read_by("critic", critic, observation)), outside, jnp)


def policy_output(actor: Layers, observation: Any) -> Any:
    """The Gaussian's mean or the choices' scores."""
    return mlp(actor, read_by("actor", actor, observation))


def log_prob(params: Params, observation: Any, action: Any) -> Any:
    """log pi(a | s)."""
    output = policy_output(params["actor"], observation)
    if is_gaussian(params):
        return gaussian_log_prob(action, output, params["log_std"])
    index = action[..., :1].astype(jnp.int32)
    return jnp.take_along_axis(jax.nn.log_softmax(output), index, -1)[..., 0]


def entropy(params: Params, observation: Any) -> Any:
    """H(pi(. | s)): one number per state, or a single one for a Gaussian, whose spread is the same everywhere."""
    if is_gaussian(params):
        return gaussian_entropy(params["log_std"])
    log_probs = jax.nn.log_softmax(policy_output(params["actor"], observation))
    return -(jnp.exp(log_probs) * log_probs).sum(-1)


def gaussian_log_prob(action: Any, mean: Any, log_std: Any) -> Any:
    """log N(a; mu, sigma^2), summed over the action dimensions."""
    z = (action - mean) * jnp.exp(-log_std)
    return -0.5 * (z * z).sum(-1) - log_std.sum(-1) - 0.5 * LOG_2PI * log_std.shape[-1]


def gaussian_entropy(log_std: Any) -> Any:
    """H = sum log sigma + k/2 (1 + log 2 pi)."""
    return log_std.sum(-1) + 0.5 * (1.0 + LOG_2PI) * log_std.shape[-1]


def gaussian_kl(old: tuple[Any, Any], new: tuple[Any, Any]) -> Any:
    """KL(old || new) of diagonal Gaussians (mean, log sigma), one number per action dimension."""
    (mean, log_std), (new_mean, new_log_std) = old, new
    spread = jnp.exp(2.0 * log_std) + (mean - new_mean) ** 2
    return new_log_std - log_std + 0.5 * spread * jnp.exp(-2.0 * new_log_std) - 0.5
