"""Figures over training: returns, falls, recoveries, the objective gap, importance weights."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from safeexplorer.paper.artefact import ROBOT_LABELS
from safeexplorer.paper.canvas import legend_below, panels
from safeexplorer.paper.grid import Grid
from safeexplorer.paper.palette import ROBOT_COLOURS, arm_colours
from safeexplorer.paper.series import envelope, on_grid, smooth
from safeexplorer.runs.results import Result

STEPS = "environment steps (millions)"


def curve_panel(axis: Axes, grid: Grid, robot: str, column: str) -> None:
    """Mean over seeds and the envelope from the smallest to the largest."""
    unit, name = steps_unit(grid)
    for label, colour in arm_colours(grid.artefact.arms).items():
        found = envelope(*on_grid(grid.groups[label, robot].finished, column))
        if found is None:
            continue
        steps, ours = found.steps / unit, label == "SafeExplorer"
        style = {"color": colour, "linewidth": 1.8 if ours else 1.1, "zorder": 3 + ours}
        axis.plot(steps, found.mean, label=label, **style)
        axis.fill_between(steps, found.low, found.high, color=colour, alpha=0.13, linewidth=0)
    axis.set_xlabel(f"environment steps ({name})")
    axis.grid(color="#e5e7eb", linewidth=0.6)


def steps_unit(grid: Grid) -> tuple[float, str]:
    """Of a step axis: millions, or thousands where no run is longer than 100,000 steps."""
    longest = max((spec.settings.steps for group in grid.groups.values() for spec in group.specs), default=0)
    return (1e6, "millions") if longest > 100_000 else (1e3, "thousands")


def draw_curves(grid: Grid) -> Figure:
    figure, axes = panels(grid, 2, 1.9)
    for column, robot in enumerate(grid.robots):
        curve_panel(axes[0, column], grid, robot, "return_trailing")
        axes[0, column].set_xlabel("")
        curve_panel(axes[1, column], grid, robot, "falls")
        axes[1, column].set_yscale("symlog", linthresh=1)
        axes[1, column].set_ylim(bottom=0)
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
    axes[0, 0].set_ylabel("recovery rate")
    legend_below(figure, axes[0, 0], 6)
    return figure


def robot_panel(axis: Axes, robot: str, steps: np.ndarray, rows: np.ndarray) -> None:
    """Mean of the runs and the envelope from the smallest to the largest."""
    if not rows.size:
        return
    colour, mean = ROBOT_COLOURS[robot], np.nanmean(rows, 0)
    name = f"{ROBOT_LABELS[robot]} ({len(rows)} run{'s' * (len(rows) > 1)})"
    axis.plot(steps / 1e6, mean, color=colour, label=name)
    if len(rows) > 1:
        low, high = np.nanmin(rows, 0), np.nanmax(rows, 0)
        axis.fill_between(steps / 1e6, low, high, color=colour, alpha=0.15, lw=0)


def draw_gap(grid: Grid) -> Figure:
    figure = Figure(figsize=(4.2, 2.8), layout="constrained")
    axis = figure.subplots()
    label = grid.artefact.arms[0].label
    for robot in grid.robots:
        steps, rows = on_grid(grid.groups[label, robot].finished, "gap", "evaluations")
        robot_panel(axis, robot, steps, smooth(np.abs(rows)))
    axis.set_xlabel(STEPS)
    axis.set_ylabel("|J_mix - J|")
    axis.set_ylim(bottom=0)
    axis.grid(color="#e5e7eb", linewidth=0.6)
    legend_below(figure, axis)
    return figure


def draw_importance(grid: Grid) -> Figure:
    figure = Figure(figsize=(6.4, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    label = grid.artefact.arms[0].label
    columns = ("importance_ess_share", "importance_log10_variance_ratio")
    for axis, column in zip((left, right), columns, strict=True):
        for robot in grid.robots:
            robot_panel(axis, robot, *on_grid(grid.groups[label, robot].finished, column))
        axis.set_xlabel(STEPS)
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
    if rates.size:
        count = np.nanmean(rates, 0) * runs[0].spec.settings.batch_size
        x, share = steps[count > 0] / 1e6, np.minimum(1.0 / count[count > 0], 1.0)
        axis.plot(x, share, ":", color=ROBOT_COLOURS[robot], linewidth=0.8)
