"""The safe region: which environments the policy may act in now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

TERM_MANAGERS = ("observation_manager", "reward_manager", "termination_manager")


class Region:
    """Inside, per environment: a distance D(s) <= d, or a predicate.

    A function of the observations returns the distance (floating point) or whether the robot is inside
    (bool). A term of one of the environment's managers returns the distance, or, of the termination
    manager, whether the robot is outside.
    """

    def __init__(self, region: str | Callable, env: Any, num_envs: int):
        self.num_envs = num_envs
        self.true_is_outside = False
        if isinstance(region, str) and "/" in region:
            self.measure = self._term(region, env)
        else:
            self.measure = resolve(region, "region")

    def _term(self, path: str, env: Any) -> Callable[[TensorDict], torch.Tensor]:
        """The function of a manager's term with its parameters, evaluated on the present state."""
        manager_name, *names = path.split("/")
        if manager_name not in TERM_MANAGERS:
            raise ValueError(
                f"algorithm.recovery_cfg.region: no manager {manager_name!r} in {path!r}; "
                f"known: {', '.join(TERM_MANAGERS)}"
            )
        world = getattr(env, "unwrapped", env)
        if not hasattr(world, manager_name):
            raise ValueError(
                f"algorithm.recovery_cfg.region: {path!r} needs a manager-based environment, "
                f"{type(world).__name__} has no {manager_name}"
            )
        manager = getattr(world, manager_name)
        try:
            term = manager.get_term_cfg(*names)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"algorithm.recovery_cfg.region: no term {'/'.join(names)!r} in {manager_name}; "
                f"known: {manager.active_terms}"
            ) from error
        self.true_is_outside = manager_name == "termination_manager"
        return lambda _: term.func(world, **term.params)

    def inside(self, obs: TensorDict, radius: float | None) -> torch.Tensor:
        """[E] bool, where the policy acts."""
        measured = self.measure(obs)
        if not isinstance(measured, torch.Tensor) or measured.numel() != self.num_envs:
            shape = tuple(measured.shape) if isinstance(measured, torch.Tensor) else type(measured).__name__
            raise ValueError(
                f"algorithm.recovery_cfg.region: returned {shape}, needs one number per environment "
                f"({self.num_envs})"
            )
        measured = measured.reshape(self.num_envs)
        if measured.dtype == torch.bool:
            if radius is not None:
                raise ValueError(
                    f"algorithm.recovery_cfg.radius: got {radius}, but the region returns a bool, which has no radius"
                )
            return ~measured if self.true_is_outside else measured
        if radius is None:
            raise ValueError("algorithm.recovery_cfg.radius is missing: the region returns a distance")
        if measured.isnan().any():
            raise ValueError("algorithm.recovery_cfg.region: the distance is NaN")
        return measured <= radius


def resolve(given: str | Callable, name: str) -> Callable:
    """A callable, or what the string "module:name" stands for."""
    try:
        return resolve_callable(given)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"algorithm.recovery_cfg.{name}: cannot resolve {given!r} ({error}); needs a callable or 'module:name'"
        ) from error
