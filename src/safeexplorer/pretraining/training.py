"""A pre-training run on disk: advance, record, snapshot, save.

The folder holds `run.json` (settings, versions), `metrics.csv`, `snapshots/<steps>.npz` (recovery files) and
`checkpoints/` (learner, robots and replay memory). Starting a run again in its folder continues it.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from safeexplorer import robots
from safeexplorer.files.checkpoint import load_latest, refuse_orphans, save_checkpoint
from safeexplorer.files.fields import difference
from safeexplorer.files.interruption import Stopped, stop_requests
from safeexplorer.files.locks import exclusive
from safeexplorer.files.provenance import provenance
from safeexplorer.files.tables import Mark, Table
from safeexplorer.files.writing import write_json
from safeexplorer.pretraining.settings import RecoverySettings
from safeexplorer.pretraining.trainer import METRICS, Trainer
from safeexplorer.recovery.actor import save_actor

Watch = Callable[[Trainer, dict[str, Any]], None]


def train_recovery(
    settings: RecoverySettings,
    folder: Path,
    *,
    threads: int = 1,
    checkpoint_every: int = 500_000,
    max_seconds: float = float("inf"),
    watch: Watch = lambda trainer, row: None,
) -> Trainer:
    """Train to the end, from the start or from the last checkpoint in `folder`.

    SIGTERM, SIGINT, SIGHUP and the wall-clock limit finish the step in hand, save and raise `Stopped`; they leave
    no snapshot that an undisturbed run would not have. What is not in `settings` has no influence on the result.
    """
    end = time.monotonic() + max_seconds
    with exclusive(folder), stop_requests() as asked_to_stop:
        rows = max(1, checkpoint_every // settings.record_every)
        trainer, metrics = open_run(settings, folder, threads, rows)
        try:
            while trainer.steps < settings.steps:
                trainer.advance()
                if passed(trainer, settings.record_every):
                    row = trainer.metrics()
                    metrics.append(row)
                    watch(trainer, row)
                stop = asked_to_stop.is_set() or time.monotonic() > end
                if passed(trainer, settings.snapshot_every) or trainer.steps >= settings.steps:
                    snapshot(trainer, folder)
                if passed(trainer, checkpoint_every) or trainer.steps >= settings.steps or stop:
                    save(trainer, folder, metrics)
                if stop and trainer.steps < settings.steps:
                    done = f"{trainer.steps:,} of {settings.steps:,} steps"
                    raise Stopped(f"stopped after {done}, saved in {folder}; the same command continues it")
        finally:
            metrics.close()
            trainer.env.close()
    return trainer


def passed(trainer: Trainer, every: int) -> bool:
    """Did the last step batch reach or pass a multiple of `every` environment steps?"""
    return trainer.steps // every > (trainer.steps - trainer.env.num_envs) // every


def open_run(settings: RecoverySettings, folder: Path, threads: int, rows: int) -> tuple[Trainer, Table]:
    """A new run, or the one in `folder` as its last whole checkpoint left it; the first is due after `rows` rows."""
    env = robots.make(settings.robot, settings.num_envs, flavour=settings.flavour, threads=threads)
    trainer = Trainer(env, settings)
    found = load_latest(folder / "checkpoints")
    if found is None:
        refuse_orphans(folder, rows)
        (folder / "checkpoints").mkdir(exist_ok=True)
        facts = {"settings": settings.as_dict(), "provenance": provenance()}
        write_json(folder / "run.json", facts | {"device": jax.devices()[0].device_kind})
        return trainer, Table(folder / "metrics.csv", METRICS)
    arrays, state = found
    changed = difference(state["settings"], settings.as_dict())
    if changed:
        raise ValueError(f"{folder} was started with other settings: " + "; ".join(changed))
    trainer.set_state(arrays, state["counters"])
    mark = Mark(state["metrics_offset"], state.get("metrics_digest"))
    return trainer, Table(folder / "metrics.csv", METRICS, mark)


def snapshot(trainer: Trainer, folder: Path) -> Path:
    """The present actor as a recovery file."""
    path = folder / "snapshots" / f"{trainer.steps:010d}.npz"
    path.parent.mkdir(exist_ok=True)
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts = trainer.provenance() | {"versions": run["provenance"]}
    save_actor(path, jax.device_get(trainer.learner.actor), trainer.low, trainer.high, facts)
    return path


def save(trainer: Trainer, folder: Path, metrics: Table) -> None:
    """A checkpoint from which the run continues bit for bit."""
    arrays, counters = trainer.get_state()
    state = {"settings": trainer.settings.as_dict(), "counters": counters}
    state |= {"metrics_offset": metrics.offset(), "metrics_digest": metrics.digest()}
    save_checkpoint(folder / "checkpoints", trainer.steps, arrays, state)
