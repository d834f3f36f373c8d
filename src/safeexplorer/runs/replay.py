"""How good a recovery is from the exits that a training run logged: its operational grade."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer import robots
from safeexplorer.files.writing import write_json
from safeexplorer.pretraining.grading import NEVER, share
from safeexplorer.recovery import load_recovery
from safeexplorer.recovery.protocol import CheckedRecovery
from safeexplorer.runs.exits import exit_states, read_exits
from safeexplorer.runs.settings import stored_settings

HORIZON = 1000  # steps


def replay_run(folder: Path, threads: int = 1) -> dict[str, Any]:
    """Replay a run's own recovery from its exits and keep the result beside them, as `replay.json`."""
    settings = stored_settings(folder)
    recovery = load_recovery(settings.recovery, robots.get_robot(settings.robot))
    result = replay(folder, recovery, threads)
    write_json(folder / "replay.json", result)
    return result


def replay_missing(folders: Iterable[Path], say: Callable[[str], None]) -> None:
    """The runs among these whose exits were not replayed yet."""
    for folder in folders:
        if not (folder / "replay.json").is_file():
            say(f"{folder}: {replay_run(folder)['exits']:,} exits replayed")


def replay(folder: Path, recovery: CheckedRecovery, threads: int = 1, batch: int = 250) -> dict[str, Any]:
    """The operational grade: from every logged first exit, at the radius in force, to re-entry or a fall.

    An exit survives if no fall comes before re-entry; one that does neither within the horizon survives.
    """
    records = read_exits(folder)
    entered_at, fell = replay_exits(records, recovery, threads, batch)
    reentered = entered_at != NEVER
    return {
        "robot": recovery.robot,
        "recovery": recovery.name,
        "sha256": recovery.digest,
        "exits": len(records),
        "horizon": HORIZON,
        "survived": share(~fell)._asdict(),
        "reentered": share(reentered)._asdict(),
        "median_steps": float(np.median(entered_at[reentered])) if reentered.any() else None,
    }


def replay_exits(
    records: np.ndarray, recovery: CheckedRecovery, threads: int, batch: int
) -> tuple[np.ndarray, np.ndarray]:
    """When each exit re-entered (its step or NEVER), and whether it fell; a robot that is done takes the next exit."""
    entered_at, fell = np.full(len(records), NEVER), np.zeros(len(records), bool)
    count = min(batch, len(records))
    if count == 0:
        return entered_at, fell
    env = robots.make(recovery.robot, count, threads=threads, max_episode_steps=2 * HORIZON)
    # What each robot replays, and how long already.
    exit_of, step = np.full(count, NEVER), np.zeros(count, int)
    free, begun = np.arange(count), 0
    while begun < len(records) or len(free) < count:
        ids = free[: len(records) - begun]
        exit_of[free], step[free] = NEVER, 0
        exit_of[ids] = range(begun, begun + len(ids))
        begun += len(ids)
        env.set_state(exit_states(records[exit_of[ids]]), ids)
        _, _, terminated, _, info = env.step(recovery.act(env.observe()))
        step += 1
        busy = exit_of != NEVER
        entered = busy & ~terminated & (info["distance"] <= records["radius"][exit_of])
        entered_at[exit_of[entered]] = step[entered]
        fell[exit_of[busy & terminated]] = True
        (free,) = np.nonzero(~busy | entered | terminated | (step == HORIZON))
    env.close()
    return entered_at, fell
