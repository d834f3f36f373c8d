"""The paper's figures with matplotlib, as PDF and PNG. The paper's own numbers are hollow diamonds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from safeexplorer.paper.artefact import ROBOT_LABELS
from safeexplorer.paper.grid import Cell, Grid
from safeexplorer.paper.palette import ROBOT_COLOURS, arm_colours
from safeexplorer.paper.tables import MAIN_RESULTS, SOFT_VARIANTS
from safeexplorer.results import Result

POINTS = 200  # of an averaged curve
SMOOTHING = 9  # points of the moving average of the gap
STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 9,
         "axes.titleweight": "bold", "legend.frameon": False, "pdf.fonttype": 42, "axes.axisbelow": True}  # fmt: skip
FAINT = {"color": "#9ca3af", "fontsize": 7}


def draw(grid: Grid, folder: Path) -> list[Path]:
    """Draw the figure of `grid` into `folder`."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = DRAWINGS[grid.artefact.drawing](grid)
        FigureCanvasAgg(figure)
        paths = [folder / f"{grid.artefact.name}{suffix}" for suffix in (".pdf", ".png")]
        for path in paths:
            figure.savefig(path, dpi=200)
    return paths


def panels(grid: Grid, rows: int = 1, height: float = 2.2) -> tuple[Figure, np.ndarray]:
    """Axes [rows, robots]."""
    columns = len(grid.robots)
    figure = Figure(figsize=(0.7 + 2.6 * columns, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis, robot in zip(axes[0], grid.robots, strict=True):
        axis.set_title(ROBOT_LABELS[robot])
    return figure, axes


def paper_number(grid: Grid, arm: str, robot: str, measure: str) -> float | None:
    """What the paper reports for it, here or in one of its tables."""
    for artefact in (grid.artefact, MAIN_RESULTS, SOFT_VARIANTS):
        if (arm, robot, measure) in artefact.paper:
            return artefact.paper[arm, robot, measure][0]
    return None


LEGEND_WIDTH = 1.5  # inches of a name


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


# -- ranked intervals --------------------------------------------------------------------------------------


def ranked(axis: Axes, grid: Grid, robot: str, measure: str) -> None:
    """Interquartile means with intervals, one line per arm."""
    colours, labels = arm_colours(grid.artefact.arms), [arm.label for arm in grid.artefact.arms]
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.grid(axis="x", color="#e5e7eb", linewidth=0.6)
    for y, label in enumerate(labels):
        cell = grid.cell(label, robot, measure)
        theirs = paper_number(grid, label, robot, measure)
        if theirs is not None:
            axis.plot(theirs, y + 0.25, "D", mfc="none", mec=colours[label], ms=4, mew=0.8)
        if cell.values:
            point, low, high = cell.interval
            ours = label == "SafeExplorer"
            axis.plot(
                [low, high], [y, y], color=colours[label], linewidth=2.2, solid_capstyle="butt", alpha=0.55
            )
            axis.plot(point, y, "*" if ours else "o", color=colours[label], ms=9 if ours else 5)
        note = run_note(cell, measure)
        if note:
            axis.annotate(note, (1.02, y), xycoords=("axes fraction", "data"), va="center", **FAINT)
    axis.plot([], [], "D", mfc="none", mec="#6b7280", ms=4, mew=0.8, linestyle="none", label="the paper's")
    axis.plot([], [], "o", color="#6b7280", ms=5, label="ours")


def fall_axis(axis: Axes) -> None:
    """Falls on a logarithmic axis; one that reaches 0 is linear below 1."""
    drawn = [x for line in axis.lines for x in np.atleast_1d(line.get_xdata())]
    if drawn and min(drawn) >= 1:
        axis.set_xscale("log")
        axis.set_xlim(min(drawn) / 2, max(drawn) * 2)
    else:
        axis.set_xscale("symlog", linthresh=1)
        axis.set_xlim(-0.15, max([*drawn, 10]) * 2)  # room for a marker at no falls


def run_note(cell: Cell, measure: str) -> str:
    """k of n, never, or nothing there."""
    if not cell.finished:
        return "no run"
    if measure == "falls_to_success":
        return f"{len(cell.values)}/{cell.finished}" if cell.values else f"never, 0/{cell.finished}"
    return "" if cell.finished == cell.wanted else f"{cell.finished}/{cell.wanted}"


def draw_success(grid: Grid) -> Figure:
    figure, axes = panels(grid, height=2.6)
    for column, robot in enumerate(grid.robots):
        axis = axes[0, column]
        ranked(axis, grid, robot, "falls_to_success")
        fall_axis(axis)
        bar = grid.bars.get(robot)
        axis.set_xlabel("falls to success" + (f" (return {bar[0]:,.0f})" if bar else ""))
        if column:
            axis.set_yticklabels([])
    legend_below(figure, axes[0, 0])
    return figure


def draw_intervals(grid: Grid) -> Figure:
    figure, axes = panels(grid, 2, 1.9)
    for column, robot in enumerate(grid.robots):
        for axis, measure, name in zip(
            axes[:, column], ("final_reward", "falls"), ("final reward", "falls"), strict=True
        ):
            ranked(axis, grid, robot, measure)
            axis.set_xlabel(name)
            if column:
                axis.set_yticklabels([])
        fall_axis(axes[1, column])
    legend_below(figure, axes[0, 0])
    return figure


def draw_pareto(grid: Grid) -> Figure:
    figure, axes = panels(grid, height=2.6)
    colours = arm_colours(grid.artefact.arms)
    for axis, robot in zip(axes[0], grid.robots, strict=True):
        for label, colour in colours.items():
            reward, falls = (grid.cell(label, robot, m) for m in ("final_reward", "falls"))
            theirs = [paper_number(grid, label, robot, m) for m in ("falls", "final_reward")]
            if None not in theirs:
                axis.plot(*theirs, "D", mfc="none", mec=colour, ms=4, mew=0.8)
            if reward.values and falls.values:
                x, y = falls.interval, reward.interval
                axis.errorbar(
                    x.point, y.point, xerr=[[x.point - x.low], [x.high - x.point]],
                    yerr=[[y.point - y.low], [y.high - y.point]], color=colour, elinewidth=1,
                    fmt="*" if label == "SafeExplorer" else "o", ms=10 if label == "SafeExplorer" else 5, label=label,
                )  # fmt: skip
        axis.plot(
            [], [], "D", mfc="none", mec="#6b7280", ms=4, mew=0.8, linestyle="none", label="the paper's"
        )
        fall_axis(axis)
        axis.set_xlabel("training falls")
        axis.grid(color="#e5e7eb", linewidth=0.6)
    axes[0, 0].set_ylabel("final reward")
    legend_below(figure, axes[0, 0], 6)
    return figure


# -- curves ------------------------------------------------------------------------------------------------


def on_grid(runs: list[Result], column: str, source: str = "curve") -> tuple[np.ndarray, np.ndarray]:
    """Steps [P] and the runs' values [runs, P] on them; nan where a run has none."""
    tables = [getattr(run, source) for run in runs if getattr(run, source).get("steps")]
    most = max((table["steps"][-1] for table in tables), default=0)
    steps = np.linspace(0, most, POINTS + 1)[1:]
    rows = []
    for table in tables:
        x, y = np.array(table["steps"], float), np.array(table[column], float)
        known = ~np.isnan(y)
        if known.any():
            rows.append(np.interp(steps, x[known], y[known], left=np.nan, right=np.nan))
    return steps, np.array(rows).reshape(-1, len(steps))


def curve_panel(axis: Axes, grid: Grid, robot: str, column: str) -> None:
    """Mean over seeds and the envelope from the smallest to the largest."""
    for label, colour in arm_colours(grid.artefact.arms).items():
        steps, rows = on_grid(grid.groups[label, robot].finished, column)
        known = ~np.isnan(rows).all(axis=0) if len(rows) else np.zeros(0, bool)
        if not known.any():
            continue
        steps, rows = steps[known] / 1e6, rows[:, known]
        ours = label == "SafeExplorer"
        axis.plot(
            steps,
            np.nanmean(rows, 0),
            color=colour,
            linewidth=1.8 if ours else 1.1,
            label=label,
            zorder=3 + ours,
        )
        if len(rows) > 1:
            axis.fill_between(
                steps, np.nanmin(rows, 0), np.nanmax(rows, 0), color=colour, alpha=0.13, linewidth=0
            )
    axis.grid(color="#e5e7eb", linewidth=0.6)


def draw_curves(grid: Grid) -> Figure:
    figure, axes = panels(grid, 2, 1.9)
    for column, robot in enumerate(grid.robots):
        curve_panel(axes[0, column], grid, robot, "return_trailing")
        curve_panel(axes[1, column], grid, robot, "falls")
        axes[1, column].set_yscale("symlog", linthresh=1)
        axes[1, column].set_ylim(bottom=0)
        axes[1, column].set_xlabel("environment steps (millions)")
    axes[0, 0].set_ylabel("return")
    axes[1, 0].set_ylabel("cumulative falls")
    legend_below(figure, axes[0, 0], 6)
    return figure


def draw_recovery_rate(grid: Grid) -> Figure:
    figure, axes = panels(grid)
    for axis, robot in zip(axes[0], grid.robots, strict=True):
        curve_panel(axis, grid, robot, "recovery_rate")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
        axis.set_ylim(bottom=0)
        axis.set_xlabel("environment steps (millions)")
    axes[0, 0].set_ylabel("recovery rate")
    legend_below(figure, axes[0, 0], 6)
    return figure


def draw_gap(grid: Grid) -> Figure:
    figure = Figure(figsize=(4.2, 2.8), layout="constrained")
    axis = figure.subplots()
    label = grid.artefact.arms[0].label
    for robot in grid.robots:
        steps, rows = on_grid(grid.groups[label, robot].finished, "gap", "evaluations")
        if len(rows):
            plot_mean_and_deviation(axis, steps, smooth(np.abs(rows)), robot)
    axis.set_xlabel("environment steps (millions)")
    axis.set_ylabel("|J_mix - J|")
    axis.set_ylim(bottom=0)
    axis.grid(color="#e5e7eb", linewidth=0.6)
    legend_below(figure, axis)
    return figure


def smooth(rows: np.ndarray) -> np.ndarray:
    """A moving average that shrinks at the ends and passes over what is missing."""
    half = SMOOTHING // 2
    padded = np.pad(rows, ((0, 0), (half, half)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHING, axis=1)
    counts = (~np.isnan(windows)).sum(-1)
    return np.where(counts > 0, np.nansum(windows, -1) / np.maximum(counts, 1), np.nan)


def plot_mean_and_deviation(axis: Axes, steps: np.ndarray, rows: np.ndarray, robot: str) -> None:
    known = ~np.isnan(rows).all(axis=0)
    steps, rows = steps[known] / 1e6, rows[:, known]
    mean, deviation = np.nanmean(rows, 0), np.nanstd(rows, 0)
    axis.plot(steps, mean, color=ROBOT_COLOURS[robot], label=f"{ROBOT_LABELS[robot]} ({len(rows)} runs)")
    if len(rows) > 1:
        axis.fill_between(
            steps, mean - deviation, mean + deviation, color=ROBOT_COLOURS[robot], alpha=0.15, lw=0
        )


def draw_importance(grid: Grid) -> Figure:
    figure = Figure(figsize=(6.4, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    label = grid.artefact.arms[0].label
    columns = ("importance_ess_share", "importance_log10_variance_ratio")
    for axis, column in zip((left, right), columns, strict=True):
        for robot in grid.robots:
            steps, rows = on_grid(grid.groups[label, robot].finished, column)
            if len(rows):
                plot_mean_and_deviation(axis, steps, rows, robot)
        axis.set_xlabel("environment steps (millions)")
        axis.grid(color="#e5e7eb", linewidth=0.6)
    for robot in grid.robots:
        draw_one_step(left, grid.groups[label, robot].finished, robot)
    left.set_ylabel("effective sample size, share")
    left.set_yscale("log")
    right.set_ylabel("log10 of the variance ratio")
    right.axhline(0, color="#6b7280", linestyle="--", linewidth=0.8)
    legend_below(figure, left)
    return figure


def draw_one_step(axis: Axes, runs: list[Result], robot: str) -> None:
    """The share that a single effective step of the update's recovery steps would be."""
    steps, rates = on_grid(runs, "recovery_rate")
    if len(rates):
        count = rates.mean(0) * runs[0].spec.settings.batch_size
        known = count > 0
        axis.plot(
            steps[known] / 1e6,
            np.minimum(1.0 / count[known], 1.0),
            ":",
            color=ROBOT_COLOURS[robot],
            linewidth=0.8,
        )


def draw_bars(grid: Grid) -> Figure:
    figure = Figure(figsize=(6.4, 2.7), layout="constrained")
    axes = figure.subplots(1, 2)
    colours = arm_colours(grid.artefact.arms)
    width = 0.8 / len(colours)
    for axis, measure, name in zip(
        axes, grid.artefact.measures, ("final reward", "training falls"), strict=True
    ):
        for i, (label, colour) in enumerate(colours.items()):
            for x, robot in enumerate(grid.robots):
                place, cell = x + (i - (len(colours) - 1) / 2) * width, grid.cell(label, robot, measure)
                theirs = paper_number(grid, label, robot, measure)
                if cell.summary:
                    mean, deviation = cell.summary
                    axis.bar(place, mean, width * 0.9, yerr=deviation, color=colour, label=label, capsize=2)
                if theirs is not None:
                    axis.plot(
                        place, theirs, "D", mfc="white", mec="#111827", ms=4, mew=0.8, label="the paper's"
                    )
        axis.set_xticks(range(len(grid.robots)), [ROBOT_LABELS[robot] for robot in grid.robots])
        axis.set_ylabel(name)
    legend_below(figure, axes[0])
    return figure


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
