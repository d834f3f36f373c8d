"""Other people's environments in JAX, each with a simple recovery and a distance, as a user would bring them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp


class Task(NamedTuple):
    """An environment, who catches it, how far it is from safe, and how Brax's own trainer wants it."""

    env: Any
    recovery: Callable[[Any], Any]
    distance: Callable[[Any], Any]
    radius: float
    wrap: Callable | None = None  # Playground's wrapper for Brax; None: Brax's own
    obs_keys: tuple[str, str] = ("state", "state")


def go1() -> Task:
    """Playground's Go1 joystick task; the recovery holds the standing pose; D is the tilt in radians."""
    from mujoco_playground import registry, wrapper

    env = registry.load("Go1JoystickFlatTerrain", config_overrides={"impl": "jax"})

    def tilt(observation: Any) -> Any:
        gravity = observation[:, 6:9]
        return jnp.arctan2(jnp.linalg.norm(gravity[:, :2], axis=-1), -gravity[:, 2])

    keys = ("state", "privileged_state")
    return Task(env, lambda rows: jnp.zeros((len(rows), 12)), tilt, 0.2, wrapper.wrap_for_brax_training, keys)


def cartpole() -> Task:
    """Playground's CartpoleBalance; a linear controller recovers; D is the pole's angle."""
    from mujoco_playground import registry, wrapper

    env = registry.load("CartpoleBalance", config_overrides={"impl": "jax"})

    def balance(observation: Any) -> Any:
        position, _, sine, velocity, turning = observation.T
        return jnp.clip(0.3 * position + 4.0 * sine + 0.4 * velocity + 0.8 * turning, -1, 1)[:, None]

    return Task(env, balance, lambda rows: jnp.abs(rows[:, 2]), 0.1, wrapper.wrap_for_brax_training)


def brax(name: str, backend: str, height: float, radius: float) -> Task:
    """A legged robot of Brax; the recovery lets go; D is how far the torso is from its height."""
    from brax import envs

    env = envs.get_environment(name, backend=backend)
    size = env.action_size
    return Task(
        env, lambda rows: jnp.zeros((len(rows), size)), lambda rows: jnp.abs(rows[:, 0] - height), radius
    )


TASKS: dict[str, Callable[[], Task]] = {
    "go1": go1,
    "cartpole": cartpole,
    "ant": lambda: brax("ant", "spring", 0.6, 0.15),
    "hopper": lambda: brax("hopper", "generalized", 1.25, 0.2),
}
