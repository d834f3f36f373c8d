"""What a pre-training run of a recovery is: one frozen record, with the paper's recipe for each robot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from safeexplorer.files.fields import check_fields, demand, plain, setting
from safeexplorer.robots import get_robot


@dataclass(frozen=True)
class RecoverySettings:
    """Every number that decides the result of a run."""

    # default, help, lowest, highest
    robot: str = setting("half_cheetah", "which robot to train a recovery for")
    flavour: str = setting("recovery", "reward and starts of the training episodes")
    seed: int = setting(1, "seed of everything random in the run", 0)
    steps: int = setting(5_000_000, "environment steps in all", 1)
    num_envs: int = setting(64, "robots simulated side by side", 1, 65536)
    updates_per_step: int = setting(16, "gradient updates per step of all robots", 1, 10**5)
    replay: int = setting(1_000_000, "transitions remembered", 1, 10**8)
    learning_starts: int = setting(5_000, "environment steps with random actions before the first update", 0)
    policy_learning_rate: float = setting(3e-4, "step size of the actor", above=0, at_most=1)
    q_learning_rate: float = setting(
        1e-3, "step size of the critics and of the entropy coefficient", above=0, at_most=1
    )
    tau: float = setting(0.005, "smoothing of the target critics", above=0, at_most=1)
    gamma: float = setting(0.99, "discount", above=0, at_most=1)
    batch_size: int = setting(256, "transitions per update", 1, 10**6)
    hidden: tuple[int, ...] = setting((256, 256), "widths of the hidden layers of actor and critics")
    snapshot_every: int = setting(250_000, "environment steps between snapshots of the actor", 1)
    record_every: int = setting(10_000, "environment steps between rows of metrics", 1)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON gives them back."""
        return plain(self)


def recovery_settings(robot: str, **chosen: Any) -> RecoverySettings:
    """The recipe of `robot` with `chosen` on top. Checked."""
    own = get_robot(robot)
    settings = RecoverySettings(robot, **dict(own.recipe) | chosen)
    settings = replace(settings, hidden=tuple(settings.hidden))
    own.weights(settings.flavour)
    check(settings)
    return settings


def check(settings: RecoverySettings) -> None:
    """Refuse what cannot work, before any work starts."""
    check_fields(settings)
    if settings.flavour == "task":
        raise ValueError("flavour is 'task'; a recovery is trained on a recovery flavour")
    enough = settings.replay >= max(settings.num_envs, settings.batch_size)
    demand(settings, "replay", enough, "at least num_envs and batch_size")
