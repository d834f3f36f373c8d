"""What can be told about an environment by looking at it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

NAMELESS = "<lambda>"


def name_of(env: Any) -> str:
    """What reports call an environment: its id, or the name of its class or of the function that makes it."""
    if isinstance(env, str):
        return env
    if isinstance(env, Sequence) and env:
        return name_of(env[0])
    if isinstance(env, partial):
        return name_of(env.func)
    spec = getattr(env, "spec", None)
    if getattr(spec, "id", None):
        return spec.id
    if hasattr(env, "__name__"):  # a class or a function
        return "environment" if env.__name__ == NAMELESS else env.__name__
    if getattr(env, "envs", None):  # a vector of them
        return name_of(env.envs[0])
    return type(getattr(env, "unwrapped", env)).__name__
