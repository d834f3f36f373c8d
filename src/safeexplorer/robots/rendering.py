"""Pictures of robots: headless frames and a window. The only part that needs OpenGL, found when something is drawn."""

import os
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from safeexplorer.robots.simulation import has_screen

MAX_GEOMS = 10_000  # in a picture


def open_context(width: int, height: int) -> Any:
    """An OpenGL context to draw in: that of MUJOCO_GL if it is set, else EGL where there is no screen.

    MuJoCo chooses its own when it is imported, and does not import at all where EGL is asked for and missing.
    """
    try:
        if os.environ.get("MUJOCO_GL") or has_screen():
            return mujoco.GLContext(width, height)
        from mujoco.egl import GLContext

        return GLContext(width, height)
    except Exception as error:  # of the libraries' many kinds
        raise OSError(
            "nothing can be drawn: OpenGL has no context here. Without a screen install EGL (Debian: libegl1 "
            f"libegl-mesa0 libgl1-mesa-dri libgl1), or OSMesa and set MUJOCO_GL=osmesa ({error})"
        ) from error


class Painter:
    """Draws one robot at a time, seen from a camera that follows its root body."""

    def __init__(self, model: mujoco.MjModel, view: Mapping[str, float], width: int = 640, height: int = 480):
        screen = model.vis.global_
        screen.offwidth, screen.offheight = max(screen.offwidth, width), max(screen.offheight, height)
        self.gl = open_context(width, height)
        self.gl.make_current()
        self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.context)
        self.model, self.data = model, mujoco.MjData(model)
        self.scene, self.option = mujoco.MjvScene(model, MAX_GEOMS), mujoco.MjvOption()
        self.frame = mujoco.MjrRect(0, 0, width, height)
        self.camera = mujoco.MjvCamera()
        follow(self.camera, view)

    def draw(self, qpos: np.ndarray) -> np.ndarray:
        """[height, width, 3] uint8."""
        self.data.qpos[:] = qpos
        mujoco.mj_forward(self.model, self.data)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, self.data, self.option, None, self.camera, everything, self.scene)
        pixels = np.empty((self.frame.height, self.frame.width, 3), np.uint8)
        self.gl.make_current()
        mujoco.mjr_render(self.frame, self.scene, self.context)
        mujoco.mjr_readPixels(pixels, None, self.frame, self.context)
        return pixels[::-1].copy()  # OpenGL counts rows from below

    def close(self) -> None:
        self.gl.make_current()
        self.context.free()
        self.gl.free()


class Window:
    """An interactive window on one robot; closing it does not stop the simulation."""

    def __init__(self, model: mujoco.MjModel, view: Mapping[str, float]):
        from mujoco.viewer import launch_passive  # needs a screen

        self.model, self.data = model, mujoco.MjData(model)
        self.viewer = launch_passive(model, self.data)
        follow(self.viewer.cam, view)

    def draw(self, qpos: np.ndarray) -> None:
        with self.viewer.lock():
            self.data.qpos[:] = qpos
            mujoco.mj_forward(self.model, self.data)
        self.viewer.sync()

    def close(self) -> None:
        self.viewer.close()


def follow(camera: mujoco.MjvCamera, view: Mapping[str, float]) -> None:
    """Keep the root body in sight, from where `view` says."""
    camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    camera.trackbodyid = 1
    for name, value in view.items():
        setattr(camera, name, value)
