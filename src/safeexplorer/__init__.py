"""Safe exploration with recovery interventions. Importing the package registers its robots with Gymnasium."""

import os
from importlib import import_module
from typing import Any

from safeexplorer.robots.screen import has_screen

# MuJoCo picks its OpenGL backend when it is first imported; without a screen only EGL can draw.
if not has_screen():
    os.environ.setdefault("MUJOCO_GL", "egl")

from safeexplorer import robots

# What a user of the library names, loaded on use: the learner's JAX takes a second to import.
HOMES = {
    "SafeExplorer": "agent",
    "SafeRegion": "acting.interventions",
    "JumpStart": "acting.interventions",
    "StateShield": "acting.interventions",
    "ReportedTakeovers": "acting.interventions",
    "Situation": "acting.interventions",
    "linear": "acting.schedules",
    "interpolate": "acting.schedules",
    "logarithmic": "acting.schedules",
    "step": "acting.schedules",
    "constant": "acting.schedules",
    "RecoveryWrapper": "adapters.takeovers",
    "ReportTakeovers": "adapters.takeovers",
    "RobotLoop": "realtime",
}

__all__ = ["robots", *HOMES]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'safeexplorer' has no attribute {name!r}")
    return getattr(import_module(f"safeexplorer.{HOMES[name]}"), name)
