"""Which snapshot of a pre-training run to keep: the best by grade, as the paper deploys a mid-run one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.pretraining.grading import Share, grade
from safeexplorer.recovery.actor import load_actor, read_provenance, save_actor
from safeexplorer.recovery.protocol import CheckedRecovery, RecoveryError
from safeexplorer.robots import get_robot


def score(graded: dict[str, Any]) -> float:
    """Half the share of resets that survive, half the share that re-enter, averaged over the radii."""
    reentry = np.mean([Share(**row["of_all"]).value for row in graded["reentry"]])
    return float(0.5 * Share(**graded["survived"]).value + 0.5 * reentry)


def select(
    folder: Path,
    out: Path,
    *,
    steps: int | None = None,
    resets: tuple[int, int] = (500, 2000),
    threads: int = 1,
    commit: str | None = None,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write the best snapshot (or the one at `steps`) to `out` and return its provenance.

    Snapshots are compared on `resets[0]` starts; the grade in the file comes from `resets[1]` others.
    """
    paths = sorted((folder / "snapshots").glob("*.npz"))
    if steps is not None:
        paths = [path for path in paths if int(path.stem) == steps]
    if not paths:
        wanted = "no snapshot" if steps is None else f"no snapshot at {steps} steps"
        raise RecoveryError(f"{folder} holds {wanted}")
    robot = get_robot(read_provenance(paths[0])["robot"])
    interface = robot.interface()
    trials = {}
    for path in paths if len(paths) > 1 else []:
        actor, _, digest = load_actor(path, interface)
        result = grade(robot, CheckedRecovery(actor, interface, path.stem, digest), resets[0], 1, threads)
        trials[path] = score(result)
        say(f"{path.stem}  survived {Share(**result['survived'])}  score {trials[path]:.4f}")
    best = max(trials, key=trials.get) if trials else paths[0]
    actor, facts, digest = load_actor(best, interface)
    final = grade(robot, CheckedRecovery(actor, interface, out.stem, digest), resets[1], 0, threads)
    final.pop("sha256")  # of the snapshot; the file written here has its own
    facts |= {"snapshot_scores": {path.stem: value for path, value in trials.items()}, "grade": final}
    facts["commit"] = commit or facts["versions"]["commit"]
    save_actor(out, actor.params, interface.low, interface.high, facts)
    return facts
