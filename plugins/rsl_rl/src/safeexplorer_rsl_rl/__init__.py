"""SafeExplorer's corrected PPO update for rsl_rl: a recovery acts outside a safe region, the update knows it."""

from safeexplorer_rsl_rl.ppo import SafeExplorerPPO
from safeexplorer_rsl_rl.settings import RecoverySettings, with_recovery

__all__ = ["RecoverySettings", "SafeExplorerPPO", "with_recovery"]
