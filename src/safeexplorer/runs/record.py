"""The record of one run: which tables it writes, with which columns, and where each stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.acting.accounting import Counts, Episode
from safeexplorer.acting.evaluation import Evaluation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.tables import Table
from safeexplorer.learning import diagnostics
from safeexplorer.runs.black_box import BlackBox
from safeexplorer.runs.exits import ExitLog
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import World

LEARNER_COLUMNS = [
    "recovery_rate",
    "segments",
    "segment_length",
    "segment_success",
    "policy_loss",
    "value_loss",
    "compat_loss",
    "gradient_policy",
    "gradient_value",
    "gradient_compat",
    "approx_kl",
    "clip_share",
    "entropy",
    "explained_variance",
    *diagnostics.COLUMNS,
]
METRIC_COLUMNS = [
    *("update", "steps", "radius", "learning_rate", "return_mean", "return_trailing"),
    *Counts._fields,
    "open",
    *LEARNER_COLUMNS,
]
EVALUATION_COLUMNS = ["update", "steps", "deterministic", "mixed_return", *Evaluation._fields, "gap"]


class RunRecord:
    """A row per update, per episode and per evaluation; the states of first exits; the seconds before falls.

    `offsets` cuts each file back to where a checkpoint left it; without, all begin anew. During a rollout it looks
    on as the collector's observer, and tells `note` of first exits.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        world: World,
        learner_columns: Sequence[str],
        offsets: dict[str, int],
        note: Callable[[int, np.ndarray], None] | None = None,
    ):
        def table(name: str, columns: list[str]) -> Table:
            return Table(folder / f"{name}.csv", columns, offsets.get(name, 0))

        self.metrics = table("metrics", [*METRIC_COLUMNS, *learner_columns])
        self.episodes = table("episodes", list(Episode._fields))
        self.evaluations = table("evaluations", EVALUATION_COLUMNS)
        self.exits = ExitLog(folder, world.env, settings.exits_per_update, offsets.get("exits", 0))
        self.black_box = BlackBox(
            folder / "falls", world.env, world.sizes.action, settings.rollout_steps, settings.falls_kept
        )
        self.before_step, self.note = self.black_box.before_step, note
        self._files = {name: getattr(self, name) for name in ("metrics", "episodes", "evaluations", "exits")}

    def on_exit(self, step: int, robots: np.ndarray) -> None:
        """These robots left the region at this step of the rollout."""
        self.exits.on_exit(step, robots)
        if self.note is not None:
            self.note(step, robots)

    def add_update(self, row: dict[str, Any], episodes: list[Episode], rollout: Rollout) -> None:
        """What happened in one update."""
        self.exits.finish()
        self.black_box.finish(rollout, episodes, row["radius"])
        self.metrics.append(row)
        self.episodes.append(*(e._asdict() | {"fell": int(e.fell)} for e in episodes))

    def add_evaluation(self, row: dict[str, Any], result: Evaluation, deterministic: bool) -> None:
        """How the policy did alone after the update of this row of metrics."""
        mixed = row["return_trailing"]
        head = {"update": row["update"], "steps": row["steps"], "deterministic": int(deterministic)}
        numbers = {name: float(x) for name, x in result._asdict().items()}
        gap = None if mixed is None else mixed - result.total_return
        self.evaluations.append({**head, "mixed_return": mixed, **numbers, "gap": gap})

    def offsets(self) -> dict[str, int]:
        """The length of every file, safely on disk."""
        return {name: file.offset() for name, file in self._files.items()}

    def close(self) -> None:
        """Close every file."""
        for file in self._files.values():
            file.close()
