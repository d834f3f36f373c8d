"""Where an environment departs from Gymnasium's interface, in words: what its vector says about it is hard to read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

RESET = "(observation, info)"
STEP = "(observation, reward, terminated, truncated, info)"


def explained(env: VectorEnv, error: Exception) -> Exception:
    """The error with its cause, if the first environment shows one; else the error itself."""
    first = next(iter(getattr(env.unwrapped, "envs", ())), None)
    with suppress(Exception):  # whatever it does when asked again, what it did first counts
        if first is not None and (fault := next(faults(first), None)):
            return ValueError(f"{type(first.unwrapped).__name__}.{fault}")
    return error


def faults(env: gymnasium.Env) -> Iterator[str]:
    """What is wrong with the answers of one environment, found by asking it once."""
    try:
        answer = env.reset(seed=0)
    except TypeError as error:
        yield f"reset(seed=0) fails: {error}; allowed: reset(self, *, seed=None, options=None)"
        return
    if not isinstance(answer, tuple) or len(answer) != 2:
        yield f"reset() gave {shown(answer)}; allowed: {RESET}"
        return
    yield from wrong_parts("reset()", env, *answer)
    answer = env.step(env.action_space.sample())
    if not isinstance(answer, tuple) or len(answer) != 5:
        yield f"step() gave {shown(answer)}; allowed: {STEP}"
        return
    observation, reward, terminated, truncated, info = answer
    yield from wrong_parts("step()", env, observation, info)
    for name, value in (("reward", reward), ("terminated", terminated), ("truncated", truncated)):
        if np.shape(value) != ():
            yield f"step() gave {name} of shape {np.shape(value)}; allowed: one number"


def wrong_parts(call: str, env: gymnasium.Env, observation: Any, info: Any) -> Iterator[str]:
    """What is wrong with the two parts that `reset` and `step` share."""
    wanted = env.observation_space.shape  # None where it has parts
    if wanted is not None and np.shape(observation) != wanted:
        yield f"{call} gave an observation of shape {np.shape(observation)}; allowed: {wanted}, as its space says"
    if not isinstance(info, dict):
        yield f"{call} gave info {info!r}; allowed: a dictionary"


def shown(answer: Any) -> str:
    return f"{len(answer)} things" if isinstance(answer, tuple) else f"a {type(answer).__name__}"
