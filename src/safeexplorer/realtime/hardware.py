"""What the loop asks of a robot, and the limits on what it is sent."""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium.spaces import Box


class Hardware(Protocol):
    """A robot, as its user describes it. `read`, `write` and `fallen` are called by the loop's thread alone once the
    loop is armed; `reward` by the thread that learns, so it must depend on its arguments only."""

    observation_space: Box  # [n]
    action_space: Box  # [m], bounded

    def read(self) -> tuple[np.ndarray, float]:
        """The latest whole sample and when it was taken, by `time.monotonic()`. Must not wait."""
        ...

    def write(self, action: np.ndarray) -> None:
        """Send a command [m] float32. Must not wait."""
        ...

    def reward(self, observation: np.ndarray, action: np.ndarray, next_observation: np.ndarray) -> float:
        """The task's reward of one step; `action` is the command that was sent."""
        ...

    def fallen(self, observation: np.ndarray) -> bool:
        """Has the robot fallen? Ends the episode."""
        ...


@dataclass(frozen=True)
class Limits:
    """What may be sent, and how old a reading may be."""

    low: np.ndarray  # [m]
    high: np.ndarray  # [m]
    safe_action: np.ndarray  # [m]
    step: np.ndarray  # [m] largest change from one command to the next
    period: float  # s
    max_age: float  # s, of a reading that the policy may act on
    max_blind: float  # s without a good reading after which the recovery no longer acts

    def command(self, target: np.ndarray, previous: np.ndarray) -> np.ndarray:
        """`target` within the range, and within one step of the previous command, [m] float32."""
        near = np.clip(np.clip(target, self.low, self.high), previous - self.step, previous + self.step)
        return np.clip(near.astype(np.float32), self.low, self.high)

    def ramp_ticks(self) -> int:
        """The most commands it can take to reach the safe action."""
        return max(1, math.ceil(np.max((self.high - self.low) / self.step)))


def make_limits(
    action_space: Box,
    rate: float,
    safe_action: Any,
    max_age: float | None,
    max_blind: float | None,
    slew: Any,
) -> Limits:
    """Check the user's numbers. `slew` is per second; None for no limit."""
    check_box("action_space", action_space)
    low, high = action_space.low.astype(np.float32), action_space.high.astype(np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"action_space is {action_space}; allowed: finite bounds")
    period = 1.0 / positive("rate", rate)
    safe = np.asarray(safe_action, np.float32)
    if safe.shape != low.shape or not ((safe >= low) & (safe <= high)).all():
        raise ValueError(f"safe_action is {safe_action}; allowed: shape {low.shape}, within [{low}, {high}]")
    age = positive("max_age", 2.0 * period if max_age is None else max_age)
    blind = positive("max_blind", max(10.0 * period, age) if max_blind is None else max_blind)
    if blind < age:
        raise ValueError(f"max_blind is {blind} s; allowed: at least max_age, {age} s")
    speed = np.asarray(np.inf if slew is None else slew, np.float64)
    if speed.shape not in ((), low.shape) or not (speed > 0).all():
        raise ValueError(f"slew is {slew}; allowed: positive, one number or shape {low.shape}, per second")
    return Limits(low, high, safe, np.broadcast_to(speed * period, low.shape), period, age, blind)


def check_box(name: str, space: Any) -> None:
    if not isinstance(space, Box) or len(space.shape) != 1:
        raise ValueError(f"{name} is {space}; allowed: a gymnasium Box with one dimension")


def positive(name: str, number: float) -> float:
    if not (isinstance(number, int | float) and 0 < number < math.inf):
        raise ValueError(f"{name} is {number!r}; allowed: a positive, finite number")
    return float(number)
