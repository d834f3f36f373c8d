"""Safe exploration with recovery interventions. Importing the package registers its robots with Gymnasium."""

import os
from importlib import import_module
from typing import Any

from safeexplorer.screen import has_screen

# MuJoCo picks its OpenGL backend when it is first imported; without a screen only EGL can draw.
if not has_screen():
    os.environ.setdefault("MUJOCO_GL", "egl")

from safeexplorer import envs

# What a user of the library names, loaded on use: the learner's JAX takes a second to import.
HOMES = {
    "SafeExplorer": "agent",
    "SafeRegion": "interventions",
    "JumpStart": "interventions",
    "StateShield": "interventions",
    "ReportedTakeovers": "interventions",
    "Situation": "interventions",
    "linear": "schedules",
    "interpolate": "schedules",
    "logarithmic": "schedules",
    "step": "schedules",
    "constant": "schedules",
    "RecoveryWrapper": "dialects",
    "ReportTakeovers": "dialects",
    "RobotLoop": "realtime",
}

__all__ = ["envs", *HOMES]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'safeexplorer' has no attribute {name!r}")
    return getattr(import_module(f"safeexplorer.{HOMES[name]}"), name)
