"""Pictures of robots: headless frames and a window."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from safeexplorer.robots.screen import has_screen


class Painter:
    """Draws one robot at a time, seen from a camera that follows its root body."""

    def __init__(self, model: mujoco.MjModel, view: Mapping[str, float], width: int = 640, height: int = 480):
        if not has_screen() and mujoco.GLContext.__module__.endswith("glfw"):
            raise OSError(
                "no screen, and MuJoCo was imported with a backend that needs one; "
                "import safeexplorer before mujoco or set MUJOCO_GL=egl"
            )
        screen = model.vis.global_
        screen.offwidth, screen.offheight = max(screen.offwidth, width), max(screen.offheight, height)
        self.renderer = mujoco.Renderer(model, height, width)
        self.model, self.data = model, mujoco.MjData(model)
        self.camera = mujoco.MjvCamera()
        self.camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        self.camera.trackbodyid = 1
        for name, value in view.items():
            setattr(self.camera, name, value)

    def draw(self, qpos: np.ndarray) -> np.ndarray:
        """[height, width, 3] uint8."""
        self.data.qpos[:] = qpos
        mujoco.mj_forward(self.model, self.data)
        self.renderer.update_scene(self.data, self.camera)
        return self.renderer.render()

    def close(self) -> None:
        self.renderer.close()


class Window:
    """An interactive window on one robot; closing it does not stop the simulation."""

    def __init__(self, model: mujoco.MjModel, view: Mapping[str, float]):
        from mujoco.viewer import launch_passive  # needs a screen

        self.model, self.data = model, mujoco.MjData(model)
        self.viewer = launch_passive(model, self.data)
        self.viewer.cam.type = mujoco.mjtCamera.mjCAMERA_TRACKING
        self.viewer.cam.trackbodyid = 1
        for name, value in view.items():
            setattr(self.viewer.cam, name, value)

    def draw(self, qpos: np.ndarray) -> None:
        with self.viewer.lock():
            self.data.qpos[:] = qpos
            mujoco.mj_forward(self.model, self.data)
        self.viewer.sync()

    def close(self) -> None:
        self.viewer.close()
