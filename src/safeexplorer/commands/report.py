"""`safeexplorer report`."""

import argparse
from pathlib import Path

from safeexplorer.commands.options import add, named_path, tell
from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import Protocol
from safeexplorer.paper.grid import Library, gather
from safeexplorer.report.page import write_page
from safeexplorer.runs.results import load_results


def add_report(parser: argparse.ArgumentParser) -> None:
    add(
        parser, "runs", "run folders, result files, or folders of them", named_path, nargs="+", metavar="RUNS"
    )
    add(parser, "--out", "the page", named_path, Path("report.html"))
    parser.add_argument("--title", default="Safe exploration: runs side by side", help="heading of the page")
    add(parser, "--figures", "also draw the paper's figures, as PDF and PNG", named_path, metavar="DIR")


def report_command(args: argparse.Namespace) -> int:
    """Write the page, and the figures if asked to."""
    results = load_results(args.runs)
    if not results:
        raise ValueError(f"no run in {', '.join(map(str, args.runs))}")
    write_page(results, args.out, args.title)
    size = args.out.stat().st_size / 1024
    tell(f"{args.out}: {len(results)} runs, {size:,.0f} kB")
    if args.figures:
        draw_figures(Library(results), args.figures)
    return 0


def draw_figures(library: Library, folder: Path) -> None:
    """Every figure for which there is a run."""
    from safeexplorer.paper.drawing import draw

    for artefact in ARTEFACTS.values():
        grid = gather(artefact, library, Protocol())
        if artefact.kind == "figure" and any(group.finished for group in grid.groups.values()):
            tell(f"drawn: {', '.join(map(str, draw(grid, folder)))}")
