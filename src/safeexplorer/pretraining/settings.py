"""What a pre-training run of a recovery is: one frozen record, with the paper's recipe for each robot."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from safeexplorer.pretraining.sac import SacHyperparameters
from safeexplorer.robots import get_robot
from safeexplorer.runs.settings import setting


@dataclass(frozen=True)
class RecoverySettings:
    """Every number that decides the result of a run."""

    robot: str
    flavour: str = setting("recovery", "reward and starts of the training episodes")
    seed: int = setting(1, "seed of everything random in the run")
    steps: int = setting(5_000_000, "environment steps in all")
    num_envs: int = setting(64, "robots simulated side by side")
    updates_per_step: int = setting(16, "gradient updates per step of all robots")
    replay: int = setting(1_000_000, "transitions remembered")
    learning_starts: int = setting(5_000, "environment steps with random actions before the first update")
    policy_learning_rate: float = setting(3e-4, "step size of the actor")
    q_learning_rate: float = setting(1e-3, "step size of the critics and of the entropy coefficient")
    tau: float = setting(0.005, "smoothing of the target critics")
    gamma: float = setting(0.99, "discount")
    batch_size: int = setting(256, "transitions per update")
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics")
    snapshot_every: int = setting(250_000, "environment steps between snapshots of the actor")
    record_every: int = setting(10_000, "environment steps between rows of metrics")

    def sac(self) -> SacHyperparameters:
        """The learner's share of the settings."""
        return SacHyperparameters(**{f.name: getattr(self, f.name) for f in fields(SacHyperparameters)})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON gives them back."""
        return asdict(self) | {"hidden": list(self.hidden)}


POSITIVE = ("steps", "num_envs", "updates_per_step", "replay", "batch_size", "snapshot_every", "record_every")
UNIT = ("policy_learning_rate", "q_learning_rate", "tau", "gamma")


def recovery_settings(robot: str, **chosen: Any) -> RecoverySettings:
    """The recipe of `robot` with `chosen` on top; None means not chosen. Checked."""
    own = get_robot(robot)
    own.weights(chosen.get("flavour") or "recovery")
    given = {name: value for name, value in chosen.items() if value is not None}
    if "hidden" in given:
        given["hidden"] = tuple(given["hidden"])
    settings = RecoverySettings(robot, **dict(own.recipe) | given)
    check(settings)
    return settings


def check(settings: RecoverySettings) -> None:
    """Refuse what cannot work, naming the setting, what was got and what is allowed."""
    if settings.flavour == "task":
        raise ValueError("flavour is 'task'; a recovery is trained on a recovery flavour")
    for name in POSITIVE:
        if getattr(settings, name) < 1:
            raise ValueError(f"{name} is {getattr(settings, name)}; allowed: 1 or more")
    for name in UNIT:
        value = getattr(settings, name)
        if not (math.isfinite(value) and 0.0 < value <= 1.0):
            raise ValueError(f"{name} is {value}; allowed: above 0, at most 1")
    if settings.learning_starts < 0 or settings.replay < max(settings.num_envs, settings.batch_size):
        raise ValueError(f"replay is {settings.replay}; allowed: at least num_envs and batch_size")


def difference(before: dict[str, Any], now: RecoverySettings) -> list[str]:
    """One line per setting that differs."""
    after = now.as_dict()
    names = sorted(before.keys() | after.keys())
    return [f"{k}: {before.get(k)} -> {after.get(k)}" for k in names if before.get(k) != after.get(k)]
