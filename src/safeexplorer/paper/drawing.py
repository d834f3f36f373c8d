"""The paper's figures with matplotlib, as PDF and PNG."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from safeexplorer.paper.curves import draw_curves, draw_gap, draw_importance, draw_recovery_rate
from safeexplorer.paper.grid import Grid
from safeexplorer.paper.rankings import draw_bars, draw_intervals, draw_pareto, draw_success

STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 9,
         "axes.titleweight": "bold", "legend.frameon": False, "pdf.fonttype": 42, "axes.axisbelow": True}  # fmt: skip

DRAWINGS: dict[str, Callable[[Grid], Figure]] = {
    "success": draw_success,
    "intervals": draw_intervals,
    "curves": draw_curves,
    "pareto": draw_pareto,
    "gap": draw_gap,
    "recovery_rate": draw_recovery_rate,
    "importance": draw_importance,
    "bars": draw_bars,
}


def draw(grid: Grid, folder: Path, kinds: tuple[str, ...] = (".pdf", ".png")) -> list[Path]:
    """Draw the figure of `grid` into `folder`."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = DRAWINGS[grid.artefact.drawing](grid)
        FigureCanvasAgg(figure)
        paths = [folder / f"{grid.artefact.name}{suffix}" for suffix in kinds]
        for path in paths:
            figure.savefig(path, dpi=200)
    return paths
