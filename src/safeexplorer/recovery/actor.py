"""The tanh-squashed Gaussian actor in numpy, and the one file it is kept in.

A recovery file is an `.npz` with float32 arrays (`actor/<layer>/weight` and `.../bias`, `low`, `high`), its
provenance as a JSON text and a SHA-256 over all of them. Nothing in it is ever unpickled.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.acting.networks import LOG_2PI, Params, relu_mlp, squash_correction, squashed_mean_log_std
from safeexplorer.files.archives import read_npz
from safeexplorer.files.checkpoint import flatten
from safeexplorer.files.writing import replacing
from safeexplorer.recovery.protocol import Interface, RecoveryError

Array = np.ndarray


class SquashedActor:
    """a = centre + half * tanh(u), u ~ N(mean(s), std(s)^2); called, it gives the action at u = mean(s)."""

    deterministic = True

    def __init__(self, params: Params, low: Array, high: Array):
        layers = [{k: np.asarray(v, np.float32) for k, v in layer.items()} for layer in params["actor"]]
        self.params = {"actor": layers}
        self.low, self.high = np.asarray(low, np.float32), np.asarray(high, np.float32)
        self.centre, self.half = (self.high + self.low) / 2, (self.high - self.low) / 2
        # Rounding is monotonic: what it does not do at tanh(u) = +-1, it does nowhere.
        self._oversteps = bool(
            np.any((self.centre + self.half > self.high) | (self.centre - self.half < self.low))
        )
        mean = {k: v[..., : self.low.size] for k, v in layers[-1].items()}
        # Column by column: in another order sums are rounded otherwise, and no recorded run could be continued.
        wide = [layer | {"weight": np.asfortranarray(layer["weight"])} for layer in (*layers[1:-1], mean)]
        self._mean_layers = [*layers[:1], *wide]

    def __call__(self, observation: Array) -> Array:
        return self._squash(relu_mlp(self._mean_layers, observation.astype(np.float32)))

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """A drawn action and log mu(a | s) = log N(u; mean, std^2) - log |da/du|."""
        mean, log_std = squashed_mean_log_std(self.params, observation.astype(np.float32))
        noise = rng.standard_normal(mean.shape, np.float32)
        u = mean + np.exp(log_std) * noise
        return self._squash(u), self._log_density(u, noise, log_std)

    def log_density(self, observation: Array, action: Array) -> Array:
        """log mu(a | s) [E] of any action inside the box."""
        mean, log_std = squashed_mean_log_std(self.params, observation.astype(np.float32))
        inside = np.nextafter(np.float32(1.0), np.float32(0.0))
        u = np.arctanh(np.clip((action - self.centre) / self.half, -inside, inside))
        return self._log_density(u, (u - mean) * np.exp(-log_std), log_std)

    def _squash(self, u: Array) -> Array:
        action = self.centre + self.half * np.tanh(u)
        return np.minimum(np.maximum(action, self.low), self.high) if self._oversteps else action

    def _log_density(self, u: Array, noise: Array, log_std: Array) -> Array:
        gaussian = (-0.5 * noise**2 - log_std - 0.5 * LOG_2PI).sum(-1)
        return (gaussian - squash_correction(u, self.half)).astype(np.float32)


def digest(arrays: dict[str, Array]) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def save_actor(path: Path, params: Params, low: Array, high: Array, provenance: dict[str, Any]) -> str:
    """Write a recovery file and return its digest. `provenance` must name the robot."""
    arrays = {
        name: np.asarray(array, np.float32) for name, array in flatten({"actor": params["actor"]}).items()
    }
    arrays |= {"low": np.asarray(low, np.float32), "high": np.asarray(high, np.float32)}
    arrays["provenance"] = np.array(json.dumps(provenance, allow_nan=False, sort_keys=True))
    value, path = digest(arrays), Path(path)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays, sha256=np.array(value))
    return value


def load_actor(path: Path, interface: Interface) -> tuple[SquashedActor, dict[str, Any], str]:
    """The actor, its provenance and its digest; refused unless file, robot and shapes are right."""
    arrays = read_arrays(path)
    stored = str(arrays.pop("sha256", ""))
    if digest(arrays) != stored:
        raise RecoveryError(f"{path}: the SHA-256 does not match; the file was altered or damaged")
    provenance = provenance_in(arrays, path)
    if provenance.get("robot") != interface.robot:
        raise RecoveryError(f"{path}: trained for {provenance.get('robot')}, not for {interface.robot}")
    layers = sum(name.endswith("/weight") for name in arrays)
    missing = {f"actor/{i}/{k}" for i in range(layers) for k in ("weight", "bias")} - arrays.keys()
    if missing:
        raise RecoveryError(f"{path}: there is no array {min(missing)!r} in it")
    params = {"actor": [{k: arrays[f"actor/{i}/{k}"] for k in ("weight", "bias")} for i in range(layers)]}
    check_shapes(path, params, arrays["low"], arrays["high"], interface)
    return SquashedActor(params, interface.low, interface.high), provenance, stored


def read_provenance(path: Path) -> dict[str, Any]:
    """How the actor in a recovery file came about."""
    return provenance_in(read_arrays(path), path)


def provenance_in(arrays: dict[str, Array], path: Path) -> dict[str, Any]:
    """The text among the arrays, which must be a JSON object."""
    try:
        facts = json.loads(str(arrays["provenance"]))
    except (ValueError, RecursionError) as error:
        raise RecoveryError(f"{path}: its provenance is no JSON: {error}") from error
    if not isinstance(facts, dict):
        raise RecoveryError(f"{path}: its provenance is a {type(facts).__name__}; allowed: a JSON object")
    return facts


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of an `.npz`. Anything that is not a zip file is refused before it is parsed."""
    try:
        arrays = read_npz(path)
    except OSError as error:
        raise RecoveryError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecoveryError(str(error)) from error
    if not {"provenance", "sha256", "low", "high"} <= arrays.keys():
        raise RecoveryError(f"{path}: not a recovery file: it lacks the provenance, the hash or the bounds")
    return arrays


def check_shapes(path: Path, params: Params, low: Array, high: Array, interface: Interface) -> None:
    """n -> hidden -> 2m, on the robot's own action box."""
    sizes = [layer["weight"].shape for layer in params["actor"]]
    expected = interface.observation_size, 2 * interface.low.size
    if not sizes or (sizes[0][0], sizes[-1][1]) != expected:
        raise RecoveryError(f"{path}: the network's layers are {sizes}; {interface.robot} needs {expected}")
    if not (np.allclose(low, interface.low) and np.allclose(high, interface.high)):
        raise RecoveryError(f"{path}: trained on another action range than that of {interface.robot}")
    total = math.fsum(float(np.abs(x).sum()) for layer in params["actor"] for x in layer.values())
    if not math.isfinite(total):
        raise RecoveryError(f"{path}: the network holds a non-finite number")
