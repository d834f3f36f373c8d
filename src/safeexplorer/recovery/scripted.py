"""Recoveries written by hand: hold the nominal pose, and do nothing.

They need no training, serve any robot that says its `Posture`, and are the yardstick of the learned ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Controller = Callable[[Array], Array]


@dataclass(frozen=True)
class Posture:
    """The joints of one robot as the observation shows them, in the order of the actuators.

    With torque actuators (`stiffness` given) the action is a torque; otherwise it is a target angle.
    """

    angle: Sequence[int]  # columns with the joint angles, less `offset`
    speed: Sequence[int]  # columns with the joint speeds
    pose: Sequence[float]  # the nominal angles, rad
    offset: float | Sequence[float] = 0.0  # what the observation subtracts from the angles, rad
    stiffness: float | None = None  # action per rad
    damping: float = 0.0  # action per rad/s


def hold(posture: Posture, low: Array, high: Array) -> Controller:
    """Towards the nominal pose: tau = K (q0 - q) - B dq/dt, or the constant target q0 for servos."""
    pose = np.array(posture.pose, np.float32)
    angle, speed, offset = list(posture.angle), list(posture.speed), np.array(posture.offset, np.float32)

    def torque(observation: Array) -> Array:
        error = pose - offset - observation[:, angle]
        wanted = posture.stiffness * error - posture.damping * observation[:, speed]
        return np.clip(wanted, low, high)

    def target(observation: Array) -> Array:
        return np.tile(np.clip(pose, low, high), (len(observation), 1))

    return target if posture.stiffness is None else torque


def passive(posture: Posture, low: Array, high: Array) -> Controller:
    """No effort: zero torque, or the joints' present angles as the servos' targets."""
    angle, offset = list(posture.angle), np.array(posture.offset, np.float32)

    def torque(observation: Array) -> Array:
        return np.zeros((len(observation), low.size), np.float32)

    def target(observation: Array) -> Array:
        return np.clip(observation[:, angle] + offset, low, high)

    return target if posture.stiffness is None else torque


SCRIPTED: dict[str, Callable[[Posture, Array, Array], Controller]] = {"hold": hold, "passive": passive}
