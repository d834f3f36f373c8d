"""Recoveries written by hand: hold the nominal pose, and do nothing.

They need no training, serve any robot listed in `POSTURES`, and are the yardstick of the learned ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Controller = Callable[[Array], Array]


@dataclass(frozen=True)
class Posture:
    """The joints of one robot as the observation shows them, in the order of the actuators.

    With torque actuators (`stiffness` given) the action is a torque; otherwise it is a target angle.
    """

    angle: tuple[int, ...]  # columns with the joint angles, less `offset`
    speed: tuple[int, ...]  # columns with the joint speeds
    pose: tuple[float, ...]  # the nominal angles, rad
    offset: tuple[float, ...]  # what the observation subtracts from the angles, rad
    stiffness: float | None = None  # action per rad
    damping: float = 0.0  # action per rad/s


ANT_ORDER = (6, 7, 0, 1, 2, 3, 4, 5)  # Ant's actuators start with the fourth leg, its joints with the first
GO1_POSE = (0.0, 0.8, -1.5) * 2 + (0.0, 1.0, -1.5) * 2

POSTURES: dict[str, Posture] = {
    "half_cheetah": Posture(
        angle=tuple(range(2, 8)),
        speed=tuple(range(11, 17)),
        pose=(0.0,) * 6,
        offset=(0.0,) * 6,
        stiffness=2.0,
        damping=0.02,  # at 0.1 the torques chatter between their bounds
    ),
    "ant": Posture(
        angle=tuple(5 + joint for joint in ANT_ORDER),
        speed=tuple(19 + joint for joint in ANT_ORDER),
        pose=(0.0, 1.2) * 2 + (0.0, -1.2) * 2,  # lower legs pointing down: it stands at z = 0.63 m
        offset=(0.0,) * 8,
        stiffness=1.0,
        damping=0.1,
    ),
    "go1": Posture(angle=tuple(range(13, 25)), speed=tuple(range(25, 37)), pose=GO1_POSE, offset=GO1_POSE),
}


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
