"""From a name, a path or a callable to a checked recovery policy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safeexplorer.recovery.actor import load_actor, read_provenance
from safeexplorer.recovery.protocol import CheckedRecovery, RecoveryError, interface_of
from safeexplorer.recovery.scripted import POSTURES, SCRIPTED
from safeexplorer.robot import Robot

WEIGHTS = Path(__file__).parent / "weights"
DEFAULT = "default"


def shipped() -> dict[str, dict[str, str]]:
    """name -> {"robot", "file", "sha256"} of the recoveries inside the package."""
    return json.loads((WEIGHTS / "manifest.json").read_text())


def known_recoveries(robot: str) -> list[str]:
    """The names that `load_recovery` takes for this robot; the first one is its default."""
    learned = [name for name, entry in shipped().items() if entry["robot"] == robot]
    learned.sort(key=lambda name: (name != robot, name))
    return learned + (list(SCRIPTED) if robot in POSTURES else [])


def load_recovery(spec: str | os.PathLike | Callable[..., Any], robot: Robot) -> CheckedRecovery:
    """The recovery called `spec`: "default", a name, the path of an `.npz` file, or any callable."""
    if isinstance(spec, CheckedRecovery):
        if spec.robot != robot.name:
            raise RecoveryError(f"recovery {spec.name!r} is for {spec.robot}, not for {robot.name}")
        return spec
    interface = interface_of(robot)
    if callable(spec):
        return CheckedRecovery(spec, interface, getattr(spec, "name", None) or callable_name(spec))
    known = known_recoveries(robot.name)
    name = known[0] if spec == DEFAULT and known else str(spec)
    if name in SCRIPTED and name in known:
        return CheckedRecovery(
            SCRIPTED[name](POSTURES[robot.name], interface.low, interface.high), interface, name
        )
    if name in known:
        return load_shipped(name, robot)
    if name in shipped():
        raise RecoveryError(f"recovery {name!r} is for {shipped()[name]['robot']}, not for {robot.name}")
    path = Path(spec)
    if path.suffix == "" and not path.exists():
        raise RecoveryError(f"{robot.name} has no recovery {name!r}; known: {', '.join(known)}, or a file")
    actor, _, digest = load_actor(path, interface)
    return CheckedRecovery(actor, interface, path.stem, digest)


def load_shipped(name: str, robot: Robot) -> CheckedRecovery:
    """A recovery of the package; its hash must also be the one in the manifest."""
    entry, interface = shipped()[name], interface_of(robot)
    actor, _, digest = load_actor(WEIGHTS / entry["file"], interface)
    if digest != entry["sha256"]:
        raise RecoveryError(f"{entry['file']}: not the file the package was shipped with")
    return CheckedRecovery(actor, interface, name, digest)


def provenance(name: str) -> dict[str, Any]:
    """How a shipped recovery came about: settings, steps, updates, falls, grade."""
    return read_provenance(WEIGHTS / shipped()[name]["file"])


def callable_name(function: Callable[..., Any]) -> str:
    """A name for the errors."""
    return getattr(function, "__name__", type(function).__name__)
