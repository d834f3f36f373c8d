"""Recovery policies: the protocol, scripted, learned and foreign ones, their training and their grades."""

from safeexplorer.recovery.foreign import as_recovery, load_recovery
from safeexplorer.recovery.protocol import (
    CheckedRecovery,
    Interface,
    RecoveryError,
    interface_between,
    interface_of,
)
from safeexplorer.recovery.shipped import known_recoveries, provenance

__all__ = [
    "CheckedRecovery",
    "Interface",
    "RecoveryError",
    "as_recovery",
    "interface_between",
    "interface_of",
    "known_recoveries",
    "load_recovery",
    "provenance",
]
