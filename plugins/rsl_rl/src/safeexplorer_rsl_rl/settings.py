"""What a user writes under `algorithm.recovery_cfg`, checked before any work starts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

CLASS_NAME = "safeexplorer_rsl_rl:SafeExplorerPPO"


@dataclass(frozen=True)
class RecoverySettings:
    """Who catches the robot, where, and how much of it the policy imitates."""

    policy: str | Callable  # observations -> actions: a callable, "module:name", or a .pt / .onnx file
    region: str | Callable  # observations -> distance or inside: a callable, "module:name", "manager/term"
    radius: float | dict | None = None  # of a distance: a number, or {"initial", "final", "iterations"}
    obs_groups: list[str] | tuple[str, ...] | None = None  # read by a policy from a file; None: the actor's
    imitation: float = 1e-3  # lambda of the compatibility loss; 0 switches it off
    hold_rollouts: int = 10  # a segment without an outcome waits that long, then its rows are dropped
    use_final_obs: bool = True  # bootstrap time limits from extras["final_obs"] where given

    @classmethod
    def read(cls, given: Any) -> RecoverySettings:
        """The settings in `given`, or an error that names the field."""
        if not isinstance(given, dict):
            raise ValueError(
                f"algorithm.recovery_cfg: got {given!r}, needs a dictionary with 'policy' and 'region' "
                "(for plain PPO set algorithm.class_name to 'PPO')"
            )
        names = [f.name for f in fields(cls)]
        for name in given:
            if name not in names:
                raise ValueError(f"algorithm.recovery_cfg: no field {name!r}; known: {', '.join(names)}")
        for name in ("policy", "region"):
            if name not in given:
                raise ValueError(f"algorithm.recovery_cfg.{name} is missing")
        settings = cls(**given)
        settings.check()
        return settings

    def check(self) -> None:
        """Types and ranges of every field."""
        for name in ("policy", "region"):
            value = getattr(self, name)
            _demand(isinstance(value, str) or callable(value), name, value, "a callable or a string")
        _demand(
            is_number(self.imitation) and self.imitation >= 0, "imitation", self.imitation, "a number >= 0"
        )
        whole = isinstance(self.hold_rollouts, int) and not isinstance(self.hold_rollouts, bool)
        _demand(whole and self.hold_rollouts >= 0, "hold_rollouts", self.hold_rollouts, "a whole number >= 0")
        _demand(isinstance(self.use_final_obs, bool), "use_final_obs", self.use_final_obs, "true or false")
        if self.obs_groups is not None:
            names = isinstance(self.obs_groups, list | tuple) and all(
                isinstance(g, str) for g in self.obs_groups
            )
            _demand(names and self.obs_groups, "obs_groups", self.obs_groups, "a list of observation groups")
        if isinstance(self.radius, dict):
            self._check_schedule(self.radius)
        elif self.radius is not None:
            _demand(
                is_number(self.radius, inf=True) and self.radius >= 0, "radius", self.radius, "a number >= 0"
            )

    def _check_schedule(self, schedule: dict) -> None:
        wanted = {"initial", "final", "iterations"}
        _demand(set(schedule) == wanted, "radius", schedule, "a number or {'initial', 'final', 'iterations'}")
        for name in ("initial", "final"):
            good = is_number(schedule[name]) and schedule[name] >= 0
            _demand(good, f"radius.{name}", schedule[name], "a number >= 0")
        good = is_number(schedule["iterations"]) and schedule["iterations"] >= 1
        _demand(good, "radius.iterations", schedule["iterations"], "a number >= 1")

    def radius_at(self, iteration: int) -> float | None:
        """d at an iteration, counted from 0: constant, or linear until `iterations` and constant after."""
        if not isinstance(self.radius, dict):
            return self.radius
        progress = min(iteration / self.radius["iterations"], 1.0)
        return self.radius["initial"] + progress * (self.radius["final"] - self.radius["initial"])


def is_number(value: Any, inf: bool = False) -> bool:
    """A finite number, or an infinite one where that is meant."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not math.isnan(value) and (inf or not math.isinf(value))


def _demand(holds: Any, name: str, got: Any, allowed: str) -> None:
    if not holds:
        raise ValueError(f"algorithm.recovery_cfg.{name}: got {got!r}, needs {allowed}")


def with_recovery(algorithm: Any, **recovery_cfg: Any) -> Any:
    """The given algorithm settings (a dictionary or a dataclass such as mjlab's) with a recovery."""
    RecoverySettings.read(recovery_cfg)
    added = {"class_name": CLASS_NAME, "recovery_cfg": recovery_cfg}
    if isinstance(algorithm, dict):
        return {**algorithm, **added}
    if not dataclasses.is_dataclass(algorithm) or isinstance(algorithm, type):
        raise ValueError(
            f"algorithm: got {type(algorithm).__name__}, needs a dictionary or a dataclass instance"
        )
    kind = type(algorithm)
    extended = dataclasses.make_dataclass(
        f"SafeExplorer{kind.__name__}", [("recovery_cfg", dict, field(default_factory=dict))], bases=(kind,)
    )
    return extended(**{f.name: getattr(algorithm, f.name) for f in fields(algorithm)} | added)
