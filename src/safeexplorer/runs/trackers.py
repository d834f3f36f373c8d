"""Other people's dashboards, fed with the rows of metrics; each is imported only when it is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from safeexplorer.files.extras import load
from safeexplorer.runs.training import Training

Watch = Callable[[Training, dict[str, Any]], None]


def tensorboard(folder: Path) -> Watch:
    """Scalars against environment steps, in `<run folder>/tensorboard`."""
    writer = load("tensorboardX", "tensorboard", "the dashboard").SummaryWriter(str(folder / "tensorboard"))

    def watch(run: Training, row: dict[str, Any]) -> None:
        for name, number in numbers(row).items():
            writer.add_scalar(name, number, row["steps"])
        writer.flush()

    return watch


def wandb(folder: Path) -> Watch:
    """One W&B run per run folder, named like it; account and project as W&B's own environment variables say."""
    wandb = load("wandb", "wandb", "the dashboard")
    session = wandb.init(name=folder.name, id=folder.name, dir=str(folder), resume="allow")

    def watch(run: Training, row: dict[str, Any]) -> None:
        if run.update == 1:
            session.config.update(run.settings.as_dict())
        session.log(numbers(row), step=int(row["steps"]))

    return watch


TRACKERS: dict[str, Callable[[Path], Watch]] = {"tensorboard": tensorboard, "wandb": wandb}


def numbers(row: dict[str, Any]) -> dict[str, float]:
    """What of a row of metrics is there."""
    return {name: value for name, value in row.items() if value is not None}
