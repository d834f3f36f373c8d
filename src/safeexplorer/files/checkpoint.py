"""Checkpoints that survive a kill at any moment: atomic, pickle-free, hashed, the last two kept.

A checkpoint is a folder `<step>` under `checkpoints/` with `arrays.npz` (arrays by path), `state.json` (plain
values) and `manifest.json` (SHA-256 of both). It is written under a temporary name and renamed into place, so that
a killed process leaves the old one or the new one, never half of one.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.files.archives import read_npz
from safeexplorer.files.console import notice as tell
from safeexplorer.files.reading import read_json
from safeexplorer.files.writing import fsync

SEPARATOR = "/"
KEPT = 2
FILES = ("arrays.npz", "state.json")


class DamagedCheckpoint(ValueError):
    """A checkpoint whose content does not match its manifest."""


def state_of(owner: Any) -> dict[str, np.ndarray]:
    """A copy of what `set_state` would restore; empty where there is nothing, or no way to."""
    if not (hasattr(owner, "get_state") and hasattr(owner, "set_state")):
        return {}
    return {name: np.array(array) for name, array in owner.get_state().items()}


def flatten(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Nested dicts, lists and tuples of arrays -> {"path/to/leaf": array}."""
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list | tuple):
        items = enumerate(tree)
    else:
        return {prefix: np.asarray(tree)}
    flat: dict[str, np.ndarray] = {}
    for key, branch in items:
        flat |= flatten(branch, join(prefix, key))
    return flat


def join(prefix: str, key: Any) -> str:
    return f"{prefix}{SEPARATOR}{key}" if prefix else str(key)


def under(prefix: str, flat: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose path begins with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in flat.items() if name.startswith(prefix)}


WHY = "the file is damaged, or another version of safeexplorer wrote it (its commit is in run.json)"


def unflatten_like(template: Any, flat: dict[str, np.ndarray], prefix: str = "") -> Any:
    """Put the arrays of `flat` back into the shape of `template`; shapes and types must agree."""
    if isinstance(template, dict):
        return {k: unflatten_like(v, flat, join(prefix, k)) for k, v in template.items()}
    if isinstance(template, list | tuple):
        parts = [unflatten_like(v, flat, join(prefix, i)) for i, v in enumerate(template)]
        return type(template)(*parts) if hasattr(template, "_fields") else type(template)(parts)
    if prefix not in flat:
        raise DamagedCheckpoint(f"{prefix} is missing; {WHY}")
    wanted, got = np.asarray(template), flat[prefix]
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        expected = f"expected {wanted.dtype}{wanted.shape}"
        raise DamagedCheckpoint(f"{prefix} is {got.dtype}{got.shape}, {expected}; {WHY}")
    return got


def save_checkpoint(folder: Path, step: int, arrays: dict[str, np.ndarray], state: dict[str, Any]) -> Path:
    """Write checkpoint `step`, then drop later ones, which were undone, and all but the last two before.

    Non-finite floats are refused.
    """
    for name, array in arrays.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            raise FloatingPointError(
                f"{name} holds a non-finite number: not saved; the last checkpoint stands"
            )
    folder.mkdir(parents=True, exist_ok=True)
    target, temporary = folder / f"{step:010d}", folder / f".{step:010d}.{os.getpid()}"
    for left in folder.glob(".[0-9]*"):  # by processes that died; only one at a time holds the folder
        shutil.rmtree(left, ignore_errors=True)
    temporary.mkdir()
    with open(temporary / "arrays.npz", "wb") as file:
        np.savez(file, **arrays)
    (temporary / "state.json").write_text(json.dumps(state, allow_nan=False, indent=1), encoding="utf-8")
    manifest = {name: sha256(temporary / name) for name in FILES}
    (temporary / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for path in [*temporary.iterdir(), temporary]:
        fsync(path)
    if target.exists():  # the same step again, after falling back past it
        shutil.rmtree(target)
    os.replace(temporary, target)
    fsync(folder)
    found = checkpoints(folder)
    for other in found[found.index(target) + 1 :] + found[: found.index(target) + 1][:-KEPT]:
        shutil.rmtree(other)
    return target


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first. Temporary names start with a dot."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdecimal() and path.is_dir())


def load_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and state of one checkpoint, after comparing every hash."""
    with told_as_damage(path):
        compare_hashes(path, *FILES)
        return read_npz(path / "arrays.npz"), read_json(path / "state.json")


def load_state(path: Path) -> dict[str, Any]:
    """The plain values of one checkpoint alone."""
    with told_as_damage(path):
        compare_hashes(path, "state.json")
        return read_json(path / "state.json")


def compare_hashes(path: Path, *names: str) -> None:
    """With the manifest."""
    manifest = read_json(path / "manifest.json")
    for name in names:
        if sha256(path / name) != manifest.get(name):
            raise DamagedCheckpoint(f"{path / name}: the SHA-256 does not match the manifest")


@contextmanager
def told_as_damage(path: Path) -> Iterator[None]:
    """Whatever is wrong with the files of a checkpoint is damage."""
    try:
        yield
    except DamagedCheckpoint:
        raise
    except (OSError, ValueError) as error:
        raise DamagedCheckpoint(f"{path}: {error}") from error


def load_latest(
    folder: Path, notice: Callable[[str], None] = tell
) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """The newest checkpoint that is whole; a damaged one is named and passed over. None if there is none."""
    found = checkpoints(folder)
    for path in reversed(found):
        try:
            return load_checkpoint(path)
        except DamagedCheckpoint as error:
            notice(f"damaged checkpoint passed over: {error}")
    if found:
        raise DamagedCheckpoint(f"no whole checkpoint in {folder}: all {len(found)} are damaged")
    return None


def refuse_orphans(folder: Path, every: int) -> None:
    """Refuse to begin anew where that would wipe records whose checkpoints are gone.

    A run that was killed before its first checkpoint, due after `every` rows, has an empty `checkpoints/`.
    """
    metrics = folder / "metrics.csv"
    rows = max(0, metrics.read_bytes().count(b"\n") - 1) if metrics.is_file() else 0
    never_saved = (
        rows < every and (folder / "checkpoints").is_dir() and not (folder / "summary.json").exists()
    )
    if rows and not never_saved:
        raise ValueError(
            f"{folder} holds {rows} rows of records, but their checkpoints are gone: it cannot be continued. "
            "Choose another folder, or remove this one (`train` can also be told to --start-over)"
        )


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
