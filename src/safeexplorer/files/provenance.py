"""Where a number comes from: versions, commit, machine."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("safeexplorer", "numpy", "jax", "jaxlib", "optax", "mujoco", "gymnasium")


def provenance() -> dict[str, str | None]:
    """Versions of everything that shapes the numbers of a run."""
    return {name: installed_version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
        "commit": commit(),
    }


def installed_version(name: str) -> str | None:
    """None for a package that is on the path without being installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


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
