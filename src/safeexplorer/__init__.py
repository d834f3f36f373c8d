"""Safe exploration with recovery interventions. Importing the package registers its robots with Gymnasium."""

from importlib import import_module
from typing import Any

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
    "auto": "acting.schedules",
    "RecoveryWrapper": "adapters.takeovers",
    "ReportTakeovers": "adapters.takeovers",
    "RobotLoop": "realtime",
    "compare": "campaigns.own",
}

__all__ = ["robots", *HOMES]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'safeexplorer' has no attribute {name!r}")
    return getattr(import_module(f"safeexplorer.{HOMES[name]}"), name)
