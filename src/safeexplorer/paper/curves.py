"""Figures over training: returns, falls, recoveries, the objective gap, importance weights."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from safeexplorer.paper.artefact import ROBOT_LABELS
from safeexplorer.paper.canvas import legend_below, panels
from safeexplorer.paper.grid import Grid
from safeexplorer.paper.palette import ROBOT_COLOURS, arm_colours
from safeexplorer.runs.results import Result

POINTS = 200  # of an averaged curve
SMOOTHING = 9  # points of the moving average of the gap


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
    axis.plot(
        steps,
        mean,
        color=ROBOT_COLOURS[robot],
        label=f"{ROBOT_LABELS[robot]} ({len(rows)} run{'s' * (len(rows) > 1)})",
    )
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
