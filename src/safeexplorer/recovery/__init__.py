"""Who catches the robot: what a recovery policy is, and where to get one."""

from safeexplorer.recovery.library import as_recovery, known_recoveries, load_recovery, provenance
from safeexplorer.recovery.protocol import CheckedRecovery, Interface, RecoveryError, interface_between

__all__ = ["CheckedRecovery", "Interface", "RecoveryError", "as_recovery", "interface_between"]
__all__ += ["known_recoveries", "load_recovery", "provenance"]
