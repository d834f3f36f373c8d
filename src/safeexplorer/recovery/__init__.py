"""Recovery policies: the protocol, scripted and learned ones, their training and their grades."""

from safeexplorer.recovery.protocol import CheckedRecovery, Interface, RecoveryError, interface_of
from safeexplorer.recovery.shipped import known_recoveries, load_recovery, provenance

__all__ = [
    "CheckedRecovery",
    "Interface",
    "RecoveryError",
    "interface_of",
    "known_recoveries",
    "load_recovery",
    "provenance",
]
