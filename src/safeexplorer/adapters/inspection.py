"""What can be told about an environment by looking at it, and how one is made with arguments."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium

NAMELESS = "environment"
NORMALISERS = ("NormalizeObservation", "VecNormalize")


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
        return NAMELESS if env.__name__ == "<lambda>" else env.__name__
    if getattr(env, "envs", None):  # a vector of them
        return name_of(env.envs[0])
    return type(getattr(env, "unwrapped", env)).__name__


def factories(env: Any, num_envs: int, arguments: Mapping[str, Any]) -> list[Callable[[], gymnasium.Env]]:
    """As many as there are to be environments, each made with these arguments."""
    if isinstance(env, str):
        return [partial(gymnasium.make, env, **arguments)] * num_envs
    if isinstance(env, type):
        return [partial(env, **arguments)] * num_envs
    raise ValueError(f"env_kwargs are given and env is {env!r}; allowed with them: an id or a class")


def normaliser_of(env: Any) -> str | None:
    """The wrapper, if any, that hands on observations of which it has taken away mean and scale."""
    while env is not None:
        name = type(env).__name__
        if name in NORMALISERS and getattr(env, "norm_obs", True):
            return name
        inside = vars(env).get("envs") or [None]
        env = vars(env).get("env") or vars(env).get("venv") or inside[0]
    return None
