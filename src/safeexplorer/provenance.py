"""Where a number comes from: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("safeexplorer", "numpy", "jax", "jaxlib", "optax", "mujoco", "gymnasium")


def provenance() -> dict[str, str | None]:
    """Versions of everything that shapes the numbers of a run."""
    facts = {name: version(name) for name in PACKAGES}
    return facts | {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "commit": commit(),
    }


def commit() -> str | None:
    """The commit of the source tree, marked if files differ from it; None outside a checkout."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", here, *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        if not git("ls-files", "--", here):
            return None  # installed inside somebody else's checkout
        changed = git("status", "--porcelain", "--untracked-files=no", "--", here)
        return git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
