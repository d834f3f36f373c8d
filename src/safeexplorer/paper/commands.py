"""`safeexplorer paper`, `reproduce`, `render` and `collect`."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from safeexplorer.paper import ARTEFACTS, GROUPS, get_artefacts
from safeexplorer.paper.artefact import ALL, Protocol
from safeexplorer.paper.grid import Library, gather
from safeexplorer.paper.sheet import FORMATS, lay_out, terminal
from safeexplorer.results import collect_run, expand, load_results, write_result

SOURCES = (Path("results"), Path("runs"))


def add_render(parser: argparse.ArgumentParser) -> None:
    """`render NAME...`."""
    add_names(parser)
    add_protocol(parser)
    add_sources(parser)
    parser.add_argument("--format", choices=list(FORMATS), help="print as this instead of a table for people")
    parser.set_defaults(run=render_command)


def add_collect(parser: argparse.ArgumentParser) -> None:
    """`collect RUNS...`."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS", help="run folders, or folders of them")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder to write to (default: results)"
    )
    parser.add_argument("--unfinished", action="store_true", help="take runs that have not finished, too")
    parser.set_defaults(run=collect_command)


def add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join([*ARTEFACTS, *GROUPS]))


def add_protocol(parser: argparse.ArgumentParser) -> None:
    """What of an artefact, and how long."""
    parser.add_argument(
        "--robot", nargs="+", choices=ALL, metavar="ROBOT", help=f"only these (default: {', '.join(ALL)})"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to N (default: 5, the paper's)")
    parser.add_argument("--steps", type=int, help="environment steps of a run (default: the paper's)")
    parser.add_argument(
        "--recovery", default="default", help="recovery policy of every run (default: the robot's own)"
    )
    parser.add_argument("--smoke", action="store_true", help="runs of seconds: does it work at all?")


def add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="run folders and result files (default: results and runs)",
    )


def protocol_from(args: argparse.Namespace) -> Protocol:
    if args.seeds < 1:
        raise ValueError(f"--seeds is {args.seeds}; allowed: a whole number of at least 1")
    return Protocol(seeds=args.seeds, steps=args.steps, recovery=args.recovery, smoke=args.smoke)


def library_from(args: argparse.Namespace) -> Library:
    paths = args.runs or [path for path in SOURCES if path.is_dir()]
    return Library(load_results(paths))


def render_command(args: argparse.Namespace) -> int:
    """Print each artefact from whatever runs exist."""
    library, protocol = library_from(args), protocol_from(args)
    for artefact in get_artefacts(args.names):
        sheet = lay_out(gather(artefact, library, protocol, args.robot))
        if args.format:
            print(FORMATS[args.format](sheet), end="")
            continue
        console = Console()
        console.print(terminal(sheet))
        for note in sheet.grid.notes():
            console.print(f"  {note}", highlight=False, markup=False, style="dim")
    return 0


def collect_command(args: argparse.Namespace) -> int:
    """Write a small result file for every run."""
    console = Console(stderr=True)
    written = 0
    for folder in sorted(path for path in set(expand(args.runs)) if path.is_dir()):
        result = collect_run(folder)
        if not result.finished and not args.unfinished:
            console.print(f"{folder}: {result.status}, left out", highlight=False, markup=False)
            continue
        path = write_result(result, args.out)
        written += 1
        console.print(f"{path}: {path.stat().st_size / 1024:.0f} kB", highlight=False, markup=False)
    if not written:
        raise ValueError(f"no finished run in {', '.join(map(str, args.runs))}")
    return 0
