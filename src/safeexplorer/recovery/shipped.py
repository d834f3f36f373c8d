"""Recoveries by name, and from a recovery file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safeexplorer.recovery.actor import load_actor, read_provenance
from safeexplorer.recovery.protocol import CheckedRecovery, Interface, RecoveryError
from safeexplorer.recovery.scripted import POSTURES, SCRIPTED

WEIGHTS = Path(__file__).parent / "weights"
DEFAULT = "default"


def shipped() -> dict[str, dict[str, str]]:
    """name -> {"robot", "file", "sha256"} of the recoveries inside the package."""
    return json.loads((WEIGHTS / "manifest.json").read_text())


def known_recoveries(robot: str) -> list[str]:
    """The names that `named_recovery` takes for this robot; the first one is its default."""
    learned = [name for name, entry in shipped().items() if entry["robot"] == robot]
    learned.sort(key=lambda name: (name != robot, name))
    return learned + (list(SCRIPTED) if robot in POSTURES else [])


def named_recovery(spec: str | os.PathLike, interface: Interface) -> CheckedRecovery:
    """The recovery called `spec`: "default", a name, or the path of an `.npz` file."""
    robot = interface.robot
    known = known_recoveries(robot)
    name = known[0] if spec == DEFAULT and known else str(spec)
    if name in SCRIPTED and name in known:
        return CheckedRecovery(
            SCRIPTED[name](POSTURES[robot], interface.low, interface.high), interface, name
        )
    if name in known:
        return load_shipped(name, interface)
    if name in shipped():
        raise RecoveryError(f"recovery {name!r} is for {shipped()[name]['robot']}, not for {robot}")
    path = Path(spec)
    if path.suffix == "" and not path.exists():
        raise RecoveryError(f"{robot} has no recovery {name!r}; known: {', '.join([*known, 'a file'])}")
    actor, _, digest = load_actor(path, interface)
    return CheckedRecovery(actor, interface, path.stem, digest)


def load_shipped(name: str, interface: Interface) -> CheckedRecovery:
    """A recovery of the package; its hash must also be the one in the manifest."""
    entry = shipped()[name]
    actor, _, digest = load_actor(WEIGHTS / entry["file"], interface)
    if digest != entry["sha256"]:
        raise RecoveryError(f"{entry['file']}: not the file the package was shipped with")
    return CheckedRecovery(actor, interface, name, digest)


def provenance(name: str) -> dict[str, Any]:
    """How a shipped recovery came about: settings, steps, updates, falls, grade."""
    return read_provenance(WEIGHTS / shipped()[name]["file"])
