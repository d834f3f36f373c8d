"""Spaces of others as the policy wants them: observations in rows of numbers, actions as a box or as numbered choices.

Whatever Gymnasium can flatten is flattened, in its own order. Several choices at once (`MultiDiscrete`, `MultiBinary`)
become one choice among all their combinations, which says the same as long as there are not too many.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import (
    Box,
    Dict,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Text,
    Tuple,
    flatdim,
    flatten,
    flatten_space,
)
from gymnasium.vector.utils import iterate

from safeexplorer.acting.policy import Sizes

MOST_CHOICES = 4096  # outputs of the policy's network


def sizes_of(observation_space: gymnasium.Space, action_space: gymnasium.Space) -> Sizes:
    """What the policy reads and writes."""
    observation, action = flat_observation_space(observation_space), flat_action_space(action_space)
    if isinstance(action, Discrete):
        return Sizes(observation.shape[0], 1, int(action.n))
    with np.errstate(over="ignore"):  # bounds may be infinite
        half = (action.high.astype(np.float64) - action.low) / 2.0
    scale = tuple(float(x) if 0 < x < np.inf else 1.0 for x in half)
    return Sizes(observation.shape[0], action.shape[0], scale=scale)


def is_row(space: gymnasium.Space) -> bool:
    """Is it a Box with one axis?"""
    return isinstance(space, Box) and len(space.shape) == 1


def flat_observation_space(space: gymnasium.Space) -> Box:
    """The rows that observations of this space become."""
    if is_row(space):
        return space
    odd = [name or "it" for name, part in parts_of(space) if not is_numbers(part)]
    if odd:
        raise ValueError(
            f"the observation space is {space}, and {', '.join(odd)} cannot become numbers; allowed: what "
            "gymnasium.spaces.flatten_space makes a row of, without text. Wrap the environment, for example in "
            "gymnasium.wrappers.TransformObservation, or in FilterObservation, which leaves parts out"
        )
    return flatten_space(space)


def parts_of(space: gymnasium.Space, name: str = "") -> Iterator[tuple[str, gymnasium.Space]]:
    """What an observation consists of, in the order in which it is flattened, by name."""
    if not isinstance(space, Dict | Tuple):
        yield name, space
        return
    if isinstance(space, Tuple):
        parts = [(f"{name}[{i}]", part) for i, part in enumerate(space)]
    else:
        parts = [(f"{name}.{key}".removeprefix("."), part) for key, part in space.items()]
    for key, part in parts:
        yield from parts_of(part, key)


def is_numbers(space: gymnasium.Space) -> bool:
    """Does Gymnasium make a row of it? Of words it does, but they would mean nothing."""
    try:
        flat = flatten_space(space) if space.is_np_flattenable and not isinstance(space, Text) else None
    except NotImplementedError:  # of a space that its author never flattens
        return False
    return isinstance(flat, Box) and flat.shape[0] > 0


def columns_of(space: gymnasium.Space) -> str:
    """Where each part of an observation lies in its row: `position 0:3, velocity 3:5`."""
    found, start = [], 0
    for name, part in parts_of(space):
        end = start + flatdim(part)
        found.append(f"{name or part} {start}:{end}")
        start = end
    return ", ".join(found)


def flat_rows(observation: Any, space: gymnasium.Space, batched_space: gymnasium.Space) -> np.ndarray:
    """A batch of observations as rows of numbers, [E, n] float64, always a copy."""
    if isinstance(space, Box):
        rows = np.array(observation, np.float64)
        return rows.reshape(len(rows), -1)
    return np.stack([flatten(space, one) for one in iterate(batched_space, observation)]).astype(np.float64)


def rows_of(observation: Any, space: gymnasium.Space) -> tuple[np.ndarray, bool]:
    """What a caller hands to `predict` as rows of numbers [k, n], and whether it was one observation.

    It may be one observation or a batch, as the space has it or already flat.
    """
    if isinstance(space, Dict | Tuple) and isinstance(observation, Mapping | tuple):
        return _rows_of_parts(observation, space)
    try:
        array = np.asarray(observation, np.float32 if isinstance(space, Box) else None)
    except (TypeError, ValueError):
        raise ValueError(f"observation is {observation!r}; allowed: one of {space}, or several") from None
    size = flat_observation_space(space).shape[0]
    if array.shape == space.shape:
        return flatten(space, array)[None], True
    if array.shape[-1:] == (size,) and array.ndim <= 2:
        return array.reshape(-1, size), array.ndim == 1
    if space.shape is not None and array.shape[1:] == space.shape:
        return np.stack([flatten(space, one) for one in array]), False
    own = "" if space.shape is None or is_row(space) else f"{space.shape}, (k, *{space.shape}), "
    raise ValueError(f"observation has shape {array.shape}; allowed: {own}({size},) or (k, {size})")


def _rows_of_parts(observation: Any, space: Dict | Tuple) -> tuple[np.ndarray, bool]:
    """The same of an observation that has parts, side by side as Gymnasium flattens them."""
    parts = space.items() if isinstance(space, Dict) else enumerate(space)
    found = []
    for key, part in parts:
        try:
            found.append(rows_of(observation[key], part))
        except (KeyError, IndexError):
            raise ValueError(f"observation has no {key!r}; allowed: one of {space}") from None
    rows, alone = zip(*found, strict=True)
    return np.concatenate(rows, axis=1), all(alone)


def flat_action_space(space: gymnasium.Space) -> Box | Discrete:
    """The box or the choices that the policy acts in."""
    if isinstance(space, Discrete) or is_row(space):
        return space
    if isinstance(space, Box):
        return flatten_space(space)
    counts = choices_of(space)
    if counts is None or counts.prod(dtype=float) > MOST_CHOICES:
        raise ValueError(
            f"the action space is {space}; allowed: a Box, Discrete, or MultiDiscrete and MultiBinary with at most "
            f"{MOST_CHOICES} combinations. Wrap the environment, for example in gymnasium.wrappers.TransformAction"
        )
    return Discrete(int(counts.prod()))


def choices_of(space: gymnasium.Space) -> np.ndarray | None:
    """How many there are of each of several choices; None for other spaces."""
    if isinstance(space, MultiDiscrete):
        return np.asarray(space.nvec).reshape(-1)
    if isinstance(space, MultiBinary):
        return np.full(int(np.prod(space.shape)), 2)
    return None


def in_space(rows: np.ndarray, space: gymnasium.Space) -> np.ndarray:
    """Rows of the policy's numbers [k, m] as actions of the space: within its bounds, or its own choices."""
    if isinstance(space, Discrete):
        return rows[:, 0].astype(np.int64) + space.start
    if isinstance(space, Box):
        flat = flat_action_space(space)
        return np.clip(rows, flat.low, flat.high).astype(space.dtype).reshape(-1, *space.shape)
    each = np.stack(np.unravel_index(rows[:, 0].astype(np.int64), choices_of(space)), axis=1)
    start = np.reshape(getattr(space, "start", 0), -1)
    return (each + start).reshape(-1, *space.shape).astype(space.dtype)


def from_space(actions: Any, space: gymnasium.Space) -> np.ndarray:
    """Actions of the space as actions of `flat_action_space`, for controllers that know only the space: [k, m]."""
    actions = np.asarray(actions)
    counts = choices_of(space)
    if counts is None:
        return actions.reshape(len(actions), -1)
    each = actions.reshape(len(actions), len(counts)) - np.reshape(getattr(space, "start", 0), -1)
    if (each != np.rint(each)).any() or (each < 0).any() or (each >= counts).any():
        raise ValueError(
            f"an action is outside {space}: {actions[((each < 0) | (each >= counts)).any(1)][:1]}"
        )
    return np.ravel_multi_index(each.astype(np.int64).T, counts)[:, None]


# -- as plain values -----------------------------------------------------------------------------------------


def describe_space(space: gymnasium.Space) -> dict[str, Any]:
    """A space as plain values; what nothing here knows is described as the row that it becomes."""
    if isinstance(space, Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, MultiDiscrete):
        return {"kind": "multi_discrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, MultiBinary):
        return {"kind": "multi_binary", "n": space.n if isinstance(space.n, int) else list(space.shape)}
    if isinstance(space, Dict):
        return {"kind": "dict", "parts": [[key, describe_space(part)] for key, part in space.items()]}
    if isinstance(space, Tuple):
        return {"kind": "tuple", "parts": [describe_space(part) for part in space]}
    space = space if isinstance(space, Box) else flat_observation_space(space)
    bounds = {side: [repr(float(x)) for x in getattr(space, side).reshape(-1)] for side in ("low", "high")}
    return {"kind": "box", "dtype": space.dtype.str, "shape": list(space.shape), **bounds}


def space_of(values: dict[str, Any]) -> gymnasium.Space:
    """Back from `describe_space`; from a file that was changed it is no space."""
    try:
        return space_from(values)
    except Exception as error:  # gymnasium raises almost anything
        raise ValueError(f"{values} describes no space: {error!r}") from error


def space_from(values: dict[str, Any]) -> gymnasium.Space:
    if values["kind"] == "discrete":
        return Discrete(values["n"], start=values["start"])
    if values["kind"] == "multi_discrete":
        return MultiDiscrete(np.array(values["nvec"]), start=np.array(values["start"]))
    if values["kind"] == "multi_binary":
        return MultiBinary(values["n"])
    if values["kind"] == "dict":
        return Dict(OrderedDict((key, space_of(part)) for key, part in values["parts"]))  # in that order
    if values["kind"] == "tuple":
        return Tuple([space_of(part) for part in values["parts"]])
    low, high = (np.array([float(x) for x in values[side]], values["dtype"]) for side in ("low", "high"))
    shape = values.get("shape", low.shape)  # older files hold rows only
    return Box(low.reshape(shape), high.reshape(shape), dtype=np.dtype(values["dtype"]).type)
