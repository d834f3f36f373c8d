"""Figures of final numbers: methods beside each other. The paper's own are hollow diamonds."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from safeexplorer.paper.artefact import ROBOT_LABELS
from safeexplorer.paper.canvas import FAINT, legend_below, panels, paper_number
from safeexplorer.paper.grid import Cell, Grid
from safeexplorer.paper.palette import arm_colours
from safeexplorer.paper.statistics import Interval

HOLLOW = {"marker": "D", "linestyle": "none", "mfc": "none", "ms": 4, "mew": 0.8}  # the paper's numbers


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
            axis.plot(theirs, y + 0.25, mec=colours[label], **HOLLOW)
        if cell.values:
            point, low, high = cell.interval
            ours = label == "SafeExplorer"
            if low is not None:
                bar = {"color": colours[label], "linewidth": 2.2, "solid_capstyle": "butt", "alpha": 0.55}
                axis.plot([low, high], [y, y], **bar)
            axis.plot(point, y, "*" if ours else "o", color=colours[label], ms=9 if ours else 5)
        note = run_note(cell, measure)
        if note:
            axis.annotate(note, (1.02, y), xycoords=("axes fraction", "data"), va="center", **FAINT)
    axis.plot([], [], mec="#6b7280", label="the paper's", **HOLLOW)
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
        for axis, measure in zip(axes[:, column], ("final_reward", "falls"), strict=True):
            ranked(axis, grid, robot, measure)
            axis.set_xlabel(measure.replace("_", " "))
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
                axis.plot(*theirs, mec=colour, **HOLLOW)
            if reward.values and falls.values:
                x, y = falls.interval, reward.interval
                ours = label == "SafeExplorer"
                axis.errorbar(
                    x.point, y.point, xerr=reach(x), yerr=reach(y), color=colour, elinewidth=1,
                    fmt="*" if ours else "o", ms=10 if ours else 5, label=label,
                )  # fmt: skip
        axis.plot([], [], mec="#6b7280", label="the paper's", **HOLLOW)
        fall_axis(axis)
        axis.set_xlabel("training falls")
        axis.grid(color="#e5e7eb", linewidth=0.6)
    axes[0, 0].set_ylabel("final reward")
    legend_below(figure, axes[0, 0], 6)
    return figure


def reach(interval: Interval) -> list[list[float]] | None:
    """Error bars: how far an interval goes down and up."""
    if interval.low is None:
        return None
    return [[interval.point - interval.low], [interval.high - interval.point]]


def draw_bars(grid: Grid) -> Figure:
    figure = Figure(figsize=(6.4, 2.7), layout="constrained")
    axes = figure.subplots(1, 2)
    colours = arm_colours(grid.artefact.arms)
    width = 0.8 / len(colours)
    names = ("final reward", "training falls")
    for axis, measure, name in zip(axes, grid.artefact.measures, names, strict=True):
        for i, (label, colour) in enumerate(colours.items()):
            for x, robot in enumerate(grid.robots):
                place, cell = x + (i - (len(colours) - 1) / 2) * width, grid.cell(label, robot, measure)
                theirs = paper_number(grid, label, robot, measure)
                if cell.summary:
                    mean, deviation = cell.summary
                    axis.bar(place, mean, width * 0.9, yerr=deviation, color=colour, label=label, capsize=2)
                if theirs is not None:
                    axis.plot(place, theirs, mec="#111827", label="the paper's", **HOLLOW | {"mfc": "white"})
        axis.set_xticks(range(len(grid.robots)), [ROBOT_LABELS[robot] for robot in grid.robots])
        axis.set_ylabel(name)
    legend_below(figure, axes[0])
    return figure
