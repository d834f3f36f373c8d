"""Safe exploration with recovery interventions. Importing the package registers its robots with Gymnasium."""

from importlib import import_module
from typing import Any

from safeexplorer import robots

# What a user of the library names, loaded on use: the learner's JAX takes a second to import.
MODULES = {
    "agent": ("SafeExplorer",),
    "acting.interventions": ("SafeRegion", "JumpStart", "StateShield", "ReportedTakeovers", "Situation"),
    "acting.schedules": ("linear", "interpolate", "logarithmic", "step", "constant", "auto"),
    "adapters.takeovers": ("RecoveryWrapper", "ReportTakeovers"),
    "realtime": ("RobotLoop",),
    "campaigns.own": ("compare",),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}

__all__ = ["robots", *HOMES]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'safeexplorer' has no attribute {name!r}")
    return getattr(import_module(f"safeexplorer.{HOMES[name]}"), name)
