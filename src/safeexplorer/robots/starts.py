"""Randomised first states that are healthy and have nothing under the floor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

VELOCITY_NOISE = 0.1  # m/s and rad/s: "small noise around zero"


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, qpos: np.ndarray) -> float:
    """The height of the lowest point of the robot's colliding geoms, floor at 0 (m)."""
    import mujoco

    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    robot = (model.geom_bodyid > 0) & (model.geom_contype | model.geom_conaffinity > 0)
    down = np.abs(data.geom_xmat[robot, 6:9])  # the world's z axis in each geom's frame
    size, kind = model.geom_size[robot], model.geom_type[robot]
    radius, half_length = size[:, 0], size[:, 1]
    reach = {
        mujoco.mjtGeom.mjGEOM_SPHERE: radius,
        mujoco.mjtGeom.mjGEOM_CAPSULE: radius + half_length * down[:, 2],
        mujoco.mjtGeom.mjGEOM_CYLINDER: radius * np.hypot(down[:, 0], down[:, 1]) + half_length * down[:, 2],
        mujoco.mjtGeom.mjGEOM_BOX: (size * down).sum(1),
    }
    below = np.select([kind == shape for shape in reach], list(reach.values()), np.nan)
    return float((data.geom_xpos[robot, 2] - below).min())


def healthy_start(
    sample: Callable[[], np.ndarray],
    fallen: Callable[[np.ndarray], bool],
    height: int,
    model: mujoco.MjModel,
    data: mujoco.MjData,
) -> np.ndarray:
    """Draw qpos, raise qpos[height] until nothing is under the floor, and again until the robot is healthy."""
    while True:
        qpos = sample()
        qpos[height] += max(0.0, -lowest_point(model, data, qpos))
        if not fallen(qpos):
            return qpos
