"""The record of one run: which tables it writes, with which columns, and where each stands."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.acting.accounting import Counts, Episode
from safeexplorer.acting.evaluation import Evaluation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.tables import BEGINNING, Mark, Table
from safeexplorer.learning import diagnostics
from safeexplorer.runs.black_box import BlackBox
from safeexplorer.runs.exits import ExitLog
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import World

LEARNER_COLUMNS = [
    *("recovery_rate", "segments", "segment_length", "segment_success", "policy_loss", "value_loss"),
    *("compat_loss", "gradient_policy", "gradient_value", "gradient_compat", "approx_kl", "clip_share"),
    *("entropy", "explained_variance", *diagnostics.COLUMNS),
]
METRIC_COLUMNS = [
    *("update", "steps", "radius", "learning_rate", "return_mean", "return_trailing"),
    *Counts._fields,
    "open",
    *LEARNER_COLUMNS,
]
# J alone; J_mix of the last 100 training episodes, and measured with the policy and from the starts that J is.
EVALUATION_COLUMNS = [
    *("update", "steps", "deterministic", "trailing_return", *Evaluation._fields),
    *("mixed_return", "mixed_falls", "alpha", "gap"),
]


class RunRecord:
    """A row per update, per episode and per evaluation; the states of first exits; the seconds before falls.

    `marks` cut each file back to where a checkpoint left it; without, all begin anew. During a rollout it looks
    on as the collector's observer, and tells `note` of first exits.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        world: World,
        learner_columns: Sequence[str],
        marks: dict[str, Mark],
        note: Callable[[int, np.ndarray], None] | None = None,
    ):
        with ExitStack() as opened:  # if one of them is refused, the others are closed

            def table(name: str, columns: list[str]) -> Table:
                mark = marks.get(name, BEGINNING)
                return opened.enter_context(closing(Table(folder / f"{name}.csv", columns, mark)))

            self.metrics = table("metrics", [*METRIC_COLUMNS, *learner_columns])
            self.episodes = table("episodes", list(Episode._fields))
            self.evaluations = table("evaluations", EVALUATION_COLUMNS)
            self.exits = ExitLog(folder, world.env, settings.exits_per_update, marks.get("exits", BEGINNING))
            opened.pop_all()
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

    def add_evaluation(
        self,
        row: dict[str, Any],
        alone: Evaluation,
        mixed: Evaluation | None = None,
        deterministic: bool = False,
    ) -> None:
        """How the policy of this row of metrics did alone, and with its recovery."""
        record = {"update": row["update"], "steps": row["steps"], "trailing_return": row["return_trailing"]}
        record |= alone._asdict() | {"deterministic": int(deterministic)}
        if mixed is not None:
            record |= {"mixed_return": mixed.total_return, "mixed_falls": mixed.falls, "alpha": mixed.beta}
            record["gap"] = mixed.total_return - alone.total_return
        self.evaluations.append(dict.fromkeys(EVALUATION_COLUMNS) | record)

    def offsets(self) -> dict[str, int]:
        """The length of every file, safely on disk."""
        return {name: file.offset() for name, file in self._files.items()}

    def digests(self) -> dict[str, str]:
        """SHA-256 of every file as it is now."""
        return {name: file.digest() for name, file in self._files.items()}

    def close(self) -> None:
        """Close every file."""
        for file in self._files.values():
            file.close()
