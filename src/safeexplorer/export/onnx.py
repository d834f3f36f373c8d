"""A trained policy as an ONNX file, written only if it acts like ours.

    observation [batch, n] float32  ->  action               [batch, m] float32, or [batch] int64 if discrete
    distance    [batch]    float32  ->  recovery_should_act  [batch] bool, with a gate

The action is the deterministic one: the Gaussian's mean within the action bounds, or the likeliest of the discrete
actions. The gate is not (distance <= radius), so that a NaN distance calls the recovery, as in training.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

import safeexplorer
from safeexplorer.acting.interventions import SafeRegion, Situation
from safeexplorer.acting.networks import Params, policy_mean
from safeexplorer.acting.schedules import constant
from safeexplorer.export.graph import below, build_model
from safeexplorer.files.extras import load
from safeexplorer.files.writing import replacing
from safeexplorer.recovery.library import open_session

Array = np.ndarray
TOLERANCE = 1e-5  # of the action scale
LARGEST_RADIUS = 1e30
ROWS = 128  # of each kind of trial observation


class ExportError(ValueError):
    """A policy that cannot be exported, or whose file does not act like it."""


def export_onnx(
    path: str | os.PathLike,
    params: Params,
    action_space: Space,
    *,
    region: float | None = None,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the policy to `path`, with a gate at the radius `region` if given; `metadata` goes into the file as text.

    The file is run with onnxruntime against the numpy policy before it gets its name: nothing is left if they differ.
    Returns the path, the largest error (of the action scale) and the number of observations checked.
    """
    onnx = load("onnx", "onnx", "the export")
    load("onnxruntime", "onnx", "the export")
    path, params = Path(path), float32_policy(params)
    check_policy(params, action_space)
    if region is not None and not 0 <= region <= LARGEST_RADIUS:
        raise ExportError(f"region is {region}; allowed: a number from 0 to {LARGEST_RADIUS:g}")
    facts = {
        **(metadata or {}),
        "safeexplorer": safeexplorer.__version__,
        "observation_size": observation_size(params),
        "action_size": action_size(action_space),
        **({} if region is None else {"radius": region}),
    }
    model = build_model(onnx, params, action_space, region, {str(k): str(v) for k, v in facts.items()})
    data = model.SerializeToString()
    error, checked = check_actions(open_session(data), params, action_space, region)
    with replacing(path) as file:
        file.write(data)
    return {"path": str(path), "max_error": error, "checked": checked}


# -- what is exported ------------------------------------------------------------------------------------------


def float32_policy(params: Params) -> Params:
    """What acting needs, as numpy arrays."""
    arrays = ("weight", "bias")
    layers = [layer | {k: np.asarray(layer[k], np.float32) for k in arrays} for layer in params["actor"]]
    rest = {k: params[k] for k in ("normaliser", "log_std") if k in params}
    if "normaliser" in rest:
        rest["normaliser"] = {k: np.asarray(v, np.float32) for k, v in rest["normaliser"].items()}
    return {"actor": layers, **rest}


def check_policy(params: Params, action_space: Space) -> None:
    """A Gaussian policy on a flat Box or a categorical one on a Discrete, of the right size and finite."""
    gaussian = "log_std" in params
    if isinstance(action_space, Box):
        fits = gaussian and len(action_space.shape) == 1
    else:
        fits = not gaussian and isinstance(action_space, Discrete)
    if not fits:
        kind = "Gaussian policy" if gaussian else "categorical policy"
        allowed = "a Box with one axis for a Gaussian policy, Discrete for a categorical one"
        raise ExportError(f"action_space is {action_space} for a {kind}; allowed: {allowed}")
    outputs = params["actor"][-1]["weight"].shape[1]
    wanted = int(action_space.n) if isinstance(action_space, Discrete) else action_size(action_space)
    if outputs != wanted:
        raise ExportError(f"the actor has {outputs} outputs; {action_space} needs {wanted}")
    arrays = [layer[name] for layer in params["actor"] for name in ("weight", "bias")]
    arrays += params.get("normaliser", {}).values()
    if not all(np.isfinite(array).all() for array in arrays):
        raise ExportError("the policy holds a non-finite number")


def observation_size(params: Params) -> int:
    return params["actor"][0]["weight"].shape[0]


def action_size(action_space: Space) -> int:
    return 1 if isinstance(action_space, Discrete) else action_space.shape[0]


# -- the check -------------------------------------------------------------------------------------------------


def trial_observations(params: Params) -> Array:
    """Usual ones, three times as wide ones, single components from 1e2 to 1e30, and one that is NaN.

    Many large components at once would test nothing: their sums round differently in any two orders of addition.
    """
    rng, n = np.random.default_rng(0), observation_size(params)
    usual = params.get("normaliser", {"mean": np.zeros(n), "deviation": np.ones(n)})
    noise = rng.standard_normal((2, ROWS, n)) * np.array([1.0, 3.0])[:, None, None]
    dense = usual["mean"] + usual["deviation"] * noise.reshape(-1, n)
    single = np.zeros((ROWS, n))
    size = rng.choice([-1, 1], ROWS) * 10 ** rng.uniform(2, 30, ROWS)
    single[np.arange(ROWS), rng.integers(n, size=ROWS)] = size
    return np.concatenate([dense, single, np.full((1, n), np.nan)]).astype(np.float32)


def trial_distances(radius: float, count: int) -> Array:
    """The two numbers around the radius, NaN, infinity, and others up to twice the radius."""
    edge = below(radius)
    special = [edge, np.nextafter(edge, np.float32(np.inf)), np.nan, np.inf]
    others = np.random.default_rng(1).uniform(0, 2, count - len(special)) * radius
    return np.array([*special, *others], np.float32)


def check_actions(
    session: Any, params: Params, action_space: Space, region: float | None
) -> tuple[float, int]:
    """Run the file beside the policy: the largest error, of the action scale, and how many observations; or raise."""
    observation = trial_observations(params)
    feed = {"observation": observation}
    if region is not None:
        feed["distance"] = trial_distances(region, len(observation))
    action, *gate = session.run(None, feed)
    with np.errstate(all="ignore"):
        output = policy_mean(params, observation)
    compare = discrete_error if isinstance(action_space, Discrete) else box_error
    error = compare(action, output, action_space)
    if not error <= TOLERANCE:
        raise ExportError(
            f"the file's actions differ from the policy's by {error:.2g} of their scale; allowed: {TOLERANCE}"
        )
    if region is not None:
        situation = Situation(observation, feed["distance"].astype(np.float64), np.zeros(len(observation)))
        if not np.array_equal(gate[0], SafeRegion(constant(region)).takes_over(situation, 0.0)):
            raise ExportError(f"the file's gate differs from the safe region of radius {region}")
    return error, len(observation)


def box_error(action: Array, mean: Array, box: Box) -> float:
    """|action - clip(mean)|, of half the range; of a hundredth of the mean's usual size where that is more, because of
    rounding; where a bound is infinite, of the action's own or usual size."""
    low, high = box.low.astype(np.float32), box.high.astype(np.float32)
    expected = np.clip(mean, low, high)
    if not np.array_equal(np.isnan(action), np.isnan(expected)):
        return np.inf
    size = np.fmax(np.abs(expected), np.nanmedian(np.abs(expected), axis=0))
    half = np.fmax(high / 2 - low / 2, np.nanmedian(np.abs(mean), axis=0) / 100)
    scale = np.where(box.is_bounded(), half, size)
    return float(np.nanmax(np.abs(action - expected) / np.where(scale > 0, scale, 1.0)))


def discrete_error(action: Array, logits: Array, space: Discrete) -> float:
    """By how much the chosen actions' logits miss the largest, of the logits' own size (1 at least)."""
    finite = np.isfinite(logits).all(1)
    chosen, logits = action[finite] - space.start, logits[finite]
    if (chosen < 0).any() or (chosen >= space.n).any():
        return np.inf
    short = logits.max(1) - np.take_along_axis(logits, chosen[:, None], 1)[:, 0]
    return float((short / np.fmax(np.abs(logits).max(1), 1.0)).max())
