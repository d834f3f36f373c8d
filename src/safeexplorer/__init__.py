"""Safe exploration with recovery interventions. Importing the package registers its robots with Gymnasium."""

import os

from safeexplorer.screen import has_screen

# MuJoCo picks its OpenGL backend when it is first imported; without a screen only EGL can draw.
if not has_screen():
    os.environ.setdefault("MUJOCO_GL", "egl")

from safeexplorer import envs

__all__ = ["envs"]
__version__ = "0.1.0"
