"""Safe exploration with recovery interventions."""

import os
import sys

# MuJoCo picks its OpenGL backend when it is first imported; without a screen only EGL can draw.
if sys.platform == "linux" and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
    os.environ.setdefault("MUJOCO_GL", "egl")

__version__ = "0.1.0"
