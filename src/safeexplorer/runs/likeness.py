"""Are region and recovery those that a run began with? Functions have no hash: their answers are compared."""

from typing import Any

import numpy as np

from safeexplorer.acting.interventions import (
    LAST,
    Intervention,
    JumpStart,
    NoIntervention,
    SafeRegion,
    Situation,
    StateShield,
)
from safeexplorer.acting.schedules import Auto
from safeexplorer.recovery import CheckedRecovery
from safeexplorer.runs.world import World

PROGRESS = (0.0, 0.25, 0.5, 0.75, LAST)
ROWS = 8  # observations that the answers are for
NAMES = {
    "intervention": "who decides who acts",
    "radius": "radius at the start, 1/4, 1/2, 3/4 and the end of training",
    "largest": "largest radius",
    "handoff": "hand-off step at the start, 1/4, 1/2, 3/4 and the end of training",
    "distance": "D",
    "engages": "where the shield engages",
    "recovery": "the recovery's actions",
}
SHOWN = ("intervention", "radius", "largest", "handoff")  # in full; of the others only that they differ


def answers(world: World, observation: np.ndarray) -> dict[str, Any]:
    """What region and recovery answer to these observations [k, n], as plain values."""
    found = {"observation": observation.tolist(), "intervention": type(world.intervention).__name__}
    found |= of_intervention(world.intervention, observation)
    if comparable(world.recovery):
        found["recovery"] = world.recovery.tried(observation).tolist()
    return found


def of_intervention(intervention: Intervention, observation: np.ndarray) -> dict[str, Any]:
    """Its schedule, and what it makes of the observations."""
    if isinstance(intervention, JumpStart):
        return {"handoff": plain([intervention.handoff(progress) for progress in PROGRESS])}
    if isinstance(intervention, StateShield):
        situation = Situation(observation, np.full(len(observation), np.nan), np.zeros(len(observation)))
        return {"engages": intervention.takes_over(situation, 0.0).tolist()}
    if not isinstance(intervention, SafeRegion):
        return {}
    radius, distance = intervention.radius, intervention.distance
    found = {"distance": distance if isinstance(distance, str) else plain(distance(observation))}
    if isinstance(radius, Auto):
        return found | {"largest": plain([radius.largest])}
    return found | {"radius": plain([radius(progress) for progress in PROGRESS])}


def comparable(recovery: CheckedRecovery | None) -> bool:
    """By its answers: one from a file has a hash, one that draws lots never answers the same."""
    return recovery is not None and not recovery.digest and recovery.deterministic


def changes(before: dict[str, Any], world: World) -> list[str]:
    """What answers otherwise now than at the beginning of the run."""
    now = answers(world, np.array(before["observation"], np.float32))
    found = []
    for name, words in NAMES.items():
        old, new = before.get(name), now.get(name)
        if not alike(old, new):
            detail = f"{old} -> {new}" if name in SHOWN else "other answers to the observations it began with"
            found.append(f"{words}: {detail}")
    return found


def alike(old: Any, new: Any) -> bool:
    """Equal, numbers up to rounding."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return old == new
    try:
        one, other = np.array(old, float), np.array(new, float)  # None becomes NaN
    except (TypeError, ValueError):  # a file that was changed
        return False
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)


def not_comparable(world: World) -> list[str]:
    """What nobody can tell from its answers."""
    found = ["the environment"]
    if not isinstance(world.intervention, NoIntervention | SafeRegion | JumpStart | StateShield):
        found.append(f"the intervention {type(world.intervention).__name__}")
    if world.recovery is not None and not world.recovery.digest and not world.recovery.deterministic:
        found.append(f"the recovery {world.recovery.name}")
    return found


def plain(values: Any) -> list[float | None]:
    """Numbers for JSON and for people, None for what is not finite."""
    return [float(f"{x:.7g}") if np.isfinite(x) else None for x in np.asarray(values, float).reshape(-1)]
