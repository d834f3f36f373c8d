"""A run in a checkpoint, and back: what the next update depends on, so that it comes out bit for bit the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from safeexplorer.files.checkpoint import flatten, save_checkpoint, under, unflatten_like
from safeexplorer.files.console import notice
from safeexplorer.files.fields import difference
from safeexplorer.files.tables import Mark
from safeexplorer.runs.facts import read_facts
from safeexplorer.runs.likeness import changes, not_comparable
from safeexplorer.runs.settings import from_dict
from safeexplorer.runs.stretches import go_on

if TYPE_CHECKING:
    from safeexplorer.runs.training import Training


def save_run(run: Training) -> None:
    """Learner, robots, counts, the last seconds of the black box, and where every file stands."""
    arrays = {
        "learner": run.learner.get_state(),
        "collector": run.collector.get_state(),
        "ledger": run.ledger.get_state(),
        "black_box": run.records.black_box.get_state(),
        "trailing": np.array(run.trailing, np.float64),
    }
    state = {
        "update": run.update,
        "seconds": run.seconds,
        "settings": run.settings.as_dict(),
        "recovery_digest": run.recovery.digest if run.recovery is not None else "",
        "streams": {k: rng.bit_generator.state for k, rng in run.streams._asdict().items()},
        "offsets": run.records.offsets(),
        "digests": run.records.digests(),
    }
    save_checkpoint(run.folder / "checkpoints", run.update, flatten(arrays), state)


def restore_run(
    run: Training, arrays: dict[str, np.ndarray], state: dict[str, Any], exact: bool = False
) -> None:
    """Continue a run that has just been made."""
    refuse_changes(run, state)
    go_on(run.folder, state["update"], exact)
    digests = state.get("digests", {})
    run.open_records({name: Mark(offset, digests.get(name)) for name, offset in state["offsets"].items()})
    parts = {"learner": run.learner, "ledger": run.ledger, "black_box": run.records.black_box}
    for name, part in parts.items():
        part.set_state(unflatten_like(part.get_state(), under(f"{name}/", arrays)))
    run.trailing.extend(arrays["trailing"].tolist())
    if not run.collector.set_state(under("collector/", arrays)):
        begin_anew(run, state["update"])
    for name, rng in run.streams._asdict().items():
        rng.bit_generator.state = state["streams"][name]
    run.update, run.seconds = state["update"], state["seconds"]
    run.saved = run.update


def refuse_changes(run: Training, state: dict[str, Any]) -> None:
    """A run goes on with the settings, the region and the recovery that it began with."""
    # Settings that an older release did not know are filled in.
    stored = from_dict(state["settings"]).resolved()
    changed = difference(stored.as_dict(), run.settings.as_dict())
    before, now = state["recovery_digest"], run.recovery.digest if run.recovery is not None else None
    if now is not None and before != now:
        changed.append(f"recovery weights: {before[:12]} -> {now[:12]}")
    began = read_facts(run.folder).get("world")  # older runs did not write it down
    if began is not None and not changed:
        changed = changes(began, run.world)
    if changed:
        raise ValueError(f"{run.folder} was started with other settings: " + "; ".join(changed))
    if run.settings.robot is None:
        unknown = " and ".join(not_comparable(run.world))
        notice(f"{unknown} cannot be compared with what the run began with: taken to be the same")


def begin_anew(run: Training, update: int) -> None:
    """Where an environment cannot be put back into the middle of its episodes, new ones begin."""
    run.collector.reset(run.env_seed + update)
    run.ledger.cut()
    run.learner.cut()
    notice(
        "the environment cannot be put back where it was: the run goes on with new episodes, "
        "not bit for bit as it would have"
    )
