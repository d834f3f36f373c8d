"""A grid as text: for a terminal, Markdown, CSV, LaTeX and JSON. Ours stands above the paper's."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from safeexplorer.paper.artefact import ROBOT_LABELS, Number
from safeexplorer.paper.claims import verdicts
from safeexplorer.paper.grid import Cell, Grid, millions
from safeexplorer.paper.measures import MEASURES

RANKED = ("success", "intervals", "pareto")  # figures of interquartile means
NOTHING = "-"
ARROWS = {1: " ↑", -1: " ↓", 0: ""}
LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
         "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "↑": r"$\uparrow$",
         "↓": r"$\downarrow$"}  # fmt: skip


class Row(NamedTuple):
    """A line of a table: its cells, and what they say of ours and of the paper's numbers, where it has any."""

    label: str
    cells: list[Cell]
    ours: list[str]
    theirs: list[str] | None


@dataclass(frozen=True)
class Sheet:
    """A grid as rows and columns; `best` marks columns' best cells."""

    grid: Grid
    columns: list[tuple[str, str, str]]  # (arm or "", robot or "", measure), what the row does not say
    rows: list[Row]
    best: set[tuple[int, int]]

    @property
    def headings(self) -> list[str]:
        return [
            f"{arm or ROBOT_LABELS[robot]} {MEASURES[m].heading}{ARROWS[MEASURES[m].better]}".strip()
            for arm, robot, m in self.columns
        ]

    @property
    def notes(self) -> list[str]:
        """Verdicts on the paper's claims, then what a reader must know beside the numbers."""
        return [*verdicts(self.grid), *self.grid.notes()]


def lay_out(grid: Grid) -> Sheet:
    """Rows and columns as the paper has them."""
    artefact = grid.artefact
    arms, robots = [arm.label for arm in artefact.arms], grid.robots
    if artefact.rows == "arms":
        columns = [("", robot, measure) for robot in robots for measure in artefact.measures]
        found = {arm: [grid.cell(arm, robot, m) for _, robot, m in columns] for arm in arms}
    else:
        heads = arms if len(arms) > 1 else [""]
        columns = [(head, "", measure) for measure in artefact.measures for head in heads]
        cells = {robot: [grid.cell(head or arms[0], robot, m) for head, _, m in columns] for robot in robots}
        found = {ROBOT_LABELS[robot]: row for robot, row in cells.items()}
    measures, ranked = [measure for *_, measure in columns], artefact.drawing in RANKED
    rows = [make_row(label, cells, measures, ranked) for label, cells in found.items()]
    return Sheet(grid, columns, rows, best_cells(measures, rows) if artefact.rows == "arms" else set())


def make_row(label: str, cells: list[Cell], measures: list[str], ranked: bool) -> Row:
    pairs = list(zip(cells, measures, strict=True))
    theirs = [number_text(cell.paper, MEASURES[measure].form) for cell, measure in pairs]
    ours = [cell_text(cell, measure, ranked) for cell, measure in pairs]
    return Row(label, cells, ours, theirs if any(cell.paper for cell in cells) else None)


def best_cells(measures: list[str], rows: list[Row]) -> set[tuple[int, int]]:
    """(row, column) of the best of each column that has a better side and two numbers; one run is no best."""
    best = set()
    for j, measure in enumerate(measures):
        sign, column = MEASURES[measure].better, [row.cells[j] for row in rows]
        means = {i: sign * cell.summary[0] for i, cell in enumerate(column) if cell.summary}
        if sign and len(means) > 1:
            winners = {i for i, value in means.items() if value == max(means.values())}
            best |= {(i, j) for i in winners if len(column[i].values) > 1}
    return best


def cell_text(cell: Cell, measure: str, ranked: bool) -> str:
    """The number, its spread, and how many of the wanted runs it stands on."""
    form = MEASURES[measure].form
    if measure == "falls_to_success" and cell.finished and not cell.values:
        return f"never ({0}/{cell.finished})"
    if not cell.values:
        return NOTHING
    if ranked:
        point, low, high = cell.interval
        text = form.format(point) + ("" if low is None else f" [{form.format(low)}, {form.format(high)}]")
    else:
        text = number_text(cell.summary, form)
    if measure == "falls_to_success":
        return f"{text} ({len(cell.values)}/{cell.finished})"
    marks = [f"{len(cell.values)}/{cell.wanted}"] if len(cell.values) < cell.wanted else []
    marks += [millions(cell.steps)] if cell.steps else []
    return f"{text} ({', '.join(marks)})" if marks else text


def number_text(number: Number | None, form: str) -> str:
    if number is None:
        return NOTHING
    mean, deviation = number
    return form.format(mean) + ("" if deviation is None else f" ± {form.format(deviation)}")


def caption_lines(sheet: Sheet) -> list[str]:
    artefact, legend = sheet.grid.artefact, "Mean ± standard deviation over seeds (n - 1)"
    if artefact.drawing in RANKED:
        legend = "Interquartile mean [95% interval, from three runs on]"
    reached = "falls_to_success" in artefact.measures
    marks = "(k/n): k of n reached it" if reached else "(n/N): n of N runs are there"
    return [artefact.caption, f"{legend}; {marks}."]


# -- formats -----------------------------------------------------------------------------------------------


def under_a_picture(sheet: Sheet, path: str) -> str:
    """Markdown of a figure: the picture and its caption."""
    artefact = sheet.grid.artefact
    return f"![{escape_markdown(artefact.title)}]({path})\n\n*{escape_markdown(artefact.caption)}*\n"


def markdown(sheet: Sheet) -> str:
    lines = [f"### {escape_markdown(sheet.grid.artefact.title)}", ""]
    lines.append("| |" + "|".join(map(escape_markdown, sheet.headings)) + "|")
    lines.append("|:--|" + "--:|" * len(sheet.columns))
    for i, row in enumerate(sheet.rows):
        cells = [f"**{t}**" if (i, j) in sheet.best else t for j, t in enumerate(row.ours)]
        lines.append(f"|{escape_markdown(row.label)}|" + "|".join(cells) + "|")
        if row.theirs:
            lines.append("|*paper*|" + "|".join(f"*{t}*" if t != NOTHING else t for t in row.theirs) + "|")
    lines += ["", *(escape_markdown(line) for line in caption_lines(sheet))]
    notes = [f"- {escape_markdown(note)}" for note in sheet.notes]
    return "\n".join(lines + (["", *notes] if notes else [])) + "\n"


def escape_markdown(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace("\n", " ")


def latex(sheet: Sheet) -> str:
    head = " & ".join(["", *map(escape_latex, sheet.headings)])
    lines = [r"\begin{tabular}{l" + "r" * len(sheet.columns) + "}", r"\toprule", head + r" \\", r"\midrule"]
    for i, row in enumerate(sheet.rows):
        cells = [escape_latex(t) for t in row.ours]
        cells = [rf"\textbf{{{t}}}" if (i, j) in sheet.best else t for j, t in enumerate(cells)]
        lines.append(" & ".join([escape_latex(row.label), *cells]) + r" \\")
        if row.theirs:
            lines.append(" & ".join([r"\emph{paper}", *map(escape_latex, row.theirs)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escape_latex(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def records(sheet: Sheet) -> list[dict[str, Any]]:
    """One record per cell, with its runs' values."""
    artefact, grid = sheet.grid.artefact, sheet.grid
    found = []
    for (arm, robot), group in grid.groups.items():
        for measure in artefact.measures:
            cell = grid.cell(arm, robot, measure)
            mean, deviation = cell.summary or (None, None)
            iqm, low, high = cell.interval or (None, None, None)
            paper, paper_deviation = cell.paper or (None, None)
            found.append(
                {"artefact": artefact.name, "arm": arm, "robot": robot, "measure": measure, "mean": mean,
                 "deviation": deviation, "iqm": iqm, "iqm_low": low, "iqm_high": high, "runs": len(cell.values),
                 "finished": cell.finished, "wanted": cell.wanted,
                 "steps": cell.steps or (group.specs[0].settings.steps if group.specs else None),
                 "paper_mean": paper, "paper_deviation": paper_deviation, "values": list(cell.values)}
            )  # fmt: skip
    return found


def as_csv(sheet: Sheet) -> str:
    text, rows = io.StringIO(), [r | {"values": " ".join(map(str, r["values"]))} for r in records(sheet)]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(sheet: Sheet) -> str:
    artefact = sheet.grid.artefact
    facts = {"artefact": artefact.name, "title": artefact.title, "caption": artefact.caption}
    return json.dumps(facts | {"notes": sheet.notes, "cells": records(sheet)}, indent=1) + "\n"


def terminal(sheet: Sheet, width: int) -> list[Table]:
    """For rich: one table, or as many as it takes to keep each within `width` letters."""
    parts = split_columns(sheet, width)
    tables = [part_table(sheet, part) for part in parts]
    tables[0].title, tables[-1].caption = sheet.grid.artefact.title, "\n".join(caption_lines(sheet))
    return tables


def split_columns(sheet: Sheet, width: int) -> list[list[int]]:
    """Columns side by side as far as they fit; those of one robot or one arm stay together."""
    left = width - max(len(row.label) for row in sheet.rows) - 4
    units: dict[str, list[int]] = {}
    for j, (arm, robot, measure) in enumerate(sheet.columns):
        units.setdefault(arm or robot or measure, []).append(j)
    parts: list[list[int]] = [[]]
    for unit in units.values():
        if parts[-1] and sum(column_width(sheet, j) + 3 for j in parts[-1] + unit) > left:
            parts.append([])
        parts[-1] += unit
    return parts


def column_width(sheet: Sheet, column: int) -> int:
    """Of its cells and of the words of its heading."""
    cells = [texts[column] for row in sheet.rows for texts in (row.ours, row.theirs) if texts]
    return max(map(len, [*cells, *sheet.headings[column].split()]))


def part_table(sheet: Sheet, part: list[int]) -> Table:
    table = Table(title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for j in part:
        table.add_column(Text(sheet.headings[j]), justify="right", width=column_width(sheet, j))
    for i, row in enumerate(sheet.rows):
        cells = [Text(row.ours[j], "bold green" if (i, j) in sheet.best else "") for j in part]
        table.add_row(Text(row.label), *cells, end_section=not row.theirs)
        if row.theirs:
            paper = (Text(row.theirs[j], "dim") for j in part)
            table.add_row(Text("  paper", "dim"), *paper, end_section=True)
    return table


FORMATS: dict[str, Callable[[Sheet], str]] = {"md": markdown, "csv": as_csv, "latex": latex, "json": as_json}
