"""What the figures share: panels, a legend, the paper's own numbers."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from safeexplorer.paper.artefact import MAIN_RESULTS, ROBOT_LABELS, SOFT_VARIANTS
from safeexplorer.paper.grid import Grid

FAINT = {"color": "#9ca3af", "fontsize": 7}
LEGEND_WIDTH = 1.5  # inches of a name


def panels(grid: Grid, rows: int = 1, height: float = 2.2) -> tuple[Figure, np.ndarray]:
    """Axes [rows, robots]."""
    columns = len(grid.robots)
    figure = Figure(figsize=(0.7 + 2.6 * columns, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis, robot in zip(axes[0], grid.robots, strict=True):
        axis.set_title(ROBOT_LABELS[robot], parse_math=False)  # a name of others'
    return figure, axes


def paper_number(grid: Grid, arm: str, robot: str, measure: str) -> float | None:
    """What the paper reports for it, here or in one of its tables."""
    for artefact in (grid.artefact, MAIN_RESULTS, SOFT_VARIANTS):
        if (arm, robot, measure) in artefact.paper:
            return artefact.paper[arm, robot, measure][0]
    return None


def legend_below(figure: Figure, axis: Axes, columns: int = 5) -> None:
    """Every name once, under the panels."""
    found: dict[str, object] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        fits = max(1, int(figure.get_figwidth() / LEGEND_WIDTH))
        count = min(columns, fits, len(found))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=count)
    else:
        axis.text(0.5, 0.5, "no runs yet", ha="center", va="center", transform=axis.transAxes, **FAINT)
