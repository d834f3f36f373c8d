"""`run.json`: what a run is, and under which versions each stretch of it was computed."""

from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.adapters.spaces import describe_space
from safeexplorer.files.console import notice
from safeexplorer.files.fields import difference
from safeexplorer.files.provenance import provenance
from safeexplorer.files.writing import write_json
from safeexplorer.runs.facts import read_facts
from safeexplorer.runs.likeness import ROWS, answers
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import World


def write_facts(folder: Path, settings: Settings, world: World, observation: np.ndarray) -> None:
    """At the start of a run, from these observations; spaces of one's own are known from nowhere else."""
    recovery = world.recovery
    who = None if recovery is None else {"name": recovery.name, "sha256": recovery.digest}
    versions = provenance()
    facts = {"settings": settings.as_dict(), "updates": settings.updates, "provenance": versions}
    facts |= {"recovery": who, "stretches": [{"update": 0, "provenance": versions}]}
    if settings.robot is None:
        facts["spaces"] = [describe_space(space) for space in world.spaces]
    facts["world"] = answers(world, observation[:ROWS])
    write_json(folder / "run.json", facts)


def stretches_of(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """After how many updates each stretch began, and its versions; older runs wrote down their first alone."""
    return facts.get("stretches") or [{"update": 0, "provenance": facts.get("provenance", {})}]


def go_on(folder: Path, update: int, exact: bool) -> None:
    """A run that continues after `update` updates: other versions are said and written down, or refused."""
    facts, now = read_facts(folder), provenance()
    stretches = stretches_of(facts)
    kept = [s for s in stretches if s["update"] < update] or stretches[:1]  # what came later was undone
    changed = difference(kept[-1]["provenance"], now)
    if changed and exact:
        raise ValueError(
            f"{folder} was computed under other versions ({'; '.join(changed)}); --exact allows none"
        )
    if changed:
        notice(
            f"the run goes on under other versions, its numbers may differ from here on: {'; '.join(changed)}"
        )
        kept.append({"update": update, "provenance": now})
    if kept != facts.get("stretches"):
        write_json(folder / "run.json", facts | {"stretches": kept})
