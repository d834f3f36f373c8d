"""What the Go1 and its world look like: shapes that never collide and weigh nothing."""

from __future__ import annotations

import mujoco


def add_scene(spec: mujoco.MjSpec) -> None:
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05))
    spec.worldbody.add_light(pos=(0, 0, 3), dir=(0, 0, -1))


def dress(body, link: str, sx: int, sy: int) -> None:
    pass
