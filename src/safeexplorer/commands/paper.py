"""`safeexplorer paper`, `reproduce`, `render` and `collect`."""

import argparse
import os
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from safeexplorer.campaigns import ENGINES, Job, make_jobs, run_jobs
from safeexplorer.campaigns.campaign import FINISHED
from safeexplorer.commands.options import STEPS, add, add_json, between, emit, named_path, tell
from safeexplorer.files.console import PlainConsole, visible
from safeexplorer.files.extras import load
from safeexplorer.files.writing import write_text
from safeexplorer.paper import ARTEFACTS, GROUPS, get_artefacts
from safeexplorer.paper.artefact import ALL, PAPER_SEEDS, Protocol
from safeexplorer.paper.cost import work_left
from safeexplorer.paper.grid import Grid, Library, gather
from safeexplorer.paper.pages import fill_page
from safeexplorer.paper.sheet import FORMATS, Sheet, lay_out, terminal, under_a_picture
from safeexplorer.report.groups import own_grids
from safeexplorer.runs.replay import replay_missing
from safeexplorer.runs.results import collect_all, load_results

RESULTS, RUNS = Path("results"), Path("runs")
OWN = "own"  # instead of an artefact: every environment that is no robot of the package


def add_paper(parser: argparse.ArgumentParser) -> None:
    add_protocol(parser)
    add_sources(parser)
    add_json(parser)


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    add(parser, "names", ", ".join([*ARTEFACTS, *GROUPS]), nargs="+", metavar="NAME")
    add_protocol(parser)
    ray = "with the engine ray: the cluster (default: a new one on this machine)"
    parser.add_argument(
        "--runs", type=named_path, default=RUNS, metavar="DIR", help="where the run folders go"
    )
    known = "result files of finished runs, which are not run again (default: results, where there is one)"
    add(parser, "--results", known, named_path, nargs="+", metavar="DIR")
    add(parser, "--workers", "runs at a time (default: the cores)", between(int, 1, 1024))
    add(parser, "--engine", "who executes the runs", default="local", choices=ENGINES)
    parser.add_argument("--ray-address", help=ray)
    parser.set_defaults(workers=os.cpu_count())


def add_render(parser: argparse.ArgumentParser) -> None:
    names = ", ".join([*ARTEFACTS, *GROUPS, f"or {OWN}: environments of your own"])
    page = "fill the blocks `<!-- render NAME ... -->` to `<!-- end -->` of a Markdown page"
    add(parser, "names", names, nargs="*", metavar="NAME")
    add(parser, "--into", page, named_path, metavar="PAGE")
    add_protocol(parser)
    add_sources(parser)
    parser.add_argument("--format", choices=list(FORMATS), help="print as this instead of a table for people")
    add(parser, "--figures", "where figures go, as PDF and PNG", named_path, Path("figures"), metavar="DIR")


def add_collect(parser: argparse.ArgumentParser) -> None:
    add(parser, "runs", "run folders, or folders of them", named_path, nargs="+", metavar="RUNS")
    add(parser, "--out", "folder to write to", named_path, Path("results"))
    parser.add_argument("--unfinished", action="store_true", help="take runs that have not finished, too")


def add_protocol(parser: argparse.ArgumentParser) -> None:
    """What of an artefact, and how long."""
    only, recovery = f"only these (default: {', '.join(ALL)})", "recovery policy of every run"
    add(parser, "--robot", only, nargs="+", choices=ALL, metavar="ROBOT")
    add(parser, "--seeds", "seeds 1 to N (default: the paper's 5; 1 with --smoke)", between(int, 1, 1000))
    add(parser, "--steps", "environment steps of a run (default: the paper's)", STEPS)
    parser.add_argument("--recovery", default="default", help=f"{recovery} (default: the robot's own)")
    parser.add_argument("--smoke", action="store_true", help="runs of seconds: does it work at all?")


def add_sources(parser: argparse.ArgumentParser) -> None:
    text = "run folders and result files (default: results and runs)"
    add(parser, "--runs", text, named_path, nargs="+", metavar="DIR")


def protocol_from(args: argparse.Namespace) -> Protocol:
    seeds = (1 if args.smoke else PAPER_SEEDS) if args.seeds is None else args.seeds
    if args.smoke and args.steps:
        raise ValueError("--smoke has steps of its own; leave out --steps")
    return Protocol(seeds=seeds, steps=args.steps, recovery=args.recovery, smoke=args.smoke)


def library_from(args: argparse.Namespace) -> Library:
    paths = args.runs or [path for path in (RESULTS, RUNS) if path.is_dir()]
    return Library(load_results(paths))


def paper_command(args: argparse.Namespace) -> int:
    """List every artefact: what it shows, how many of its runs are done, how much work is left."""
    robots = tuple(args.robot) if args.robot else None
    rows, everything = work_left(ARTEFACTS.values(), library_from(args), protocol_from(args), robots)
    table = Table("name", "what it shows", "runs done", "core-hours\nleft", box=SIMPLE_HEAD, pad_edge=False)
    table.columns[0].no_wrap = True
    for row in rows:
        hours = f"{row['core_hours_left']:,.1f}"
        table.add_row(row["name"], f"{row['kind']}: {row['title']}", f"{row['done']} of {row['runs']}", hours)
    text = (
        f"All together, shared runs counted once: {everything['runs_left']} runs and "
        f"{everything['core_hours_left']:,.1f} core-hours left. Start with: safeexplorer reproduce NAME"
    )
    return emit(args, {"artefacts": rows, "all": everything}, table, text)


def reproduce_command(args: argparse.Namespace) -> int:
    """Launch the runs that are missing; the same command after any accident goes on."""
    artefacts, protocol = get_artefacts(args.names), protocol_from(args)
    robots = tuple(args.robot) if args.robot else None
    asked = [(spec, a.needs) for a in artefacts for spec in a.specs(protocol, robots)]
    if not asked:
        raise ValueError(f"{', '.join(args.names)} has no runs on {', '.join(args.robot or ALL)}")
    results = args.results or ([RESULTS] if RESULTS.is_dir() else [])
    collected = Library(load_results(results))
    missing = [(spec, needs) for spec, needs in asked if not collected.done(spec.key, needs)]
    jobs = make_jobs({spec.key: spec for spec, _ in missing}.values(), args.runs)
    failed = run_jobs(jobs, args.engine, args.workers, args.ray_address) if jobs else []
    graded = {spec.key for spec, needs in missing if needs == "replay"}
    replay_missing([j.folder for j in jobs if j.spec.key in graded and j.state == FINISHED], tell)
    known = len({spec.key for spec, _ in asked}) - len(jobs)
    return say_how_it_went(jobs, failed, known, results, args)


def say_how_it_went(
    jobs: list[Job], failed: list[Job], known: int, results: list[Path], args: argparse.Namespace
) -> int:
    if known:
        tell(f"{known} of {known + len(jobs)} runs were finished before, in {' '.join(map(str, results))}")
    if jobs:
        tell(f"{len(jobs) - len(failed)} of {len(jobs)} runs are done, in {args.runs}")
    tell(*(f"  failed: {job.spec.label}: {job.error}" for job in failed))
    places = (results if known else []) + ([args.runs] if jobs else [])
    where = " ".join(map(str, places))
    tell(f"Look at it with: safeexplorer render {' '.join(args.names)}{same_flags(args)} --runs {where}")
    return 1 if failed else 0


def same_flags(args: argparse.Namespace) -> str:
    """What of the artefact was asked for, as it was said."""
    said = {
        "--robot": " ".join(args.robot) if args.robot else None,
        "--seeds": args.seeds,
        "--steps": args.steps,
        "--recovery": args.recovery if args.recovery != "default" else None,
    }
    words = [f" {name} {value}" for name, value in said.items() if value is not None]
    return "".join(words) + (" --smoke" if args.smoke else "")


def render_command(args: argparse.Namespace) -> int:
    """Print each artefact from whatever runs exist."""
    if args.into is not None:
        return render_into(args)
    if not args.names:
        raise ValueError(f"nothing to render; known: {', '.join([*ARTEFACTS, *GROUPS, OWN])}")
    for grid in grids_from(args):
        sheet = lay_out(grid)
        if grid.artefact.kind == "figure":
            load("matplotlib", "plots", "a figure")
            from safeexplorer.paper.drawing import draw

            tell(f"drawn: {', '.join(map(str, draw(grid, args.figures)))}")
        if args.format:
            print(visible(FORMATS[args.format](sheet)), end="")
            continue
        console = PlainConsole()
        console.print(*terminal(sheet, console.width))
        for note in sheet.notes:
            console.print(f"  {note}", style="dim")
    return 0


def grids_from(args: argparse.Namespace) -> list[Grid]:
    """What was named, from the runs that exist."""
    library, protocol = library_from(args), protocol_from(args)
    artefacts = get_artefacts([name for name in args.names if name != OWN])
    grids = [gather(artefact, library, protocol, args.robot) for artefact in artefacts]
    if OWN in args.names:
        found = own_grids(list(library.by_key.values()))
        if not found:
            raise ValueError("there is no run on an environment of your own; say where they lie: --runs DIR")
        grids += found
    return grids


def render_into(args: argparse.Namespace) -> int:
    """Make the tables of a page anew, each with the words of its block and the runs of this command."""
    if args.names:
        raise ValueError(f"--into takes its names from the page, got {', '.join(args.names)}")
    library = library_from(args)

    def render(words: list[str]) -> str:
        parser = argparse.ArgumentParser(prog=f"a block of {args.into}", exit_on_error=False)
        add_render(parser)
        block = parser.parse_args(words)
        texts = []
        for artefact in get_artefacts(block.names):
            sheet = lay_out(gather(artefact, library, protocol_from(block), block.robot))
            as_text = artefact.kind == "table" or block.format
            texts.append(FORMATS["md"](sheet) if as_text else picture(sheet, args.into))
        return "\n".join(texts)

    write_text(args.into, fill_page(args.into.read_text(encoding="utf-8"), render))
    return 0


def picture(sheet: Sheet, page: Path) -> str:
    """A figure beside its page, and the words under it."""
    from safeexplorer.paper.drawing import draw

    (path,) = draw(sheet.grid, page.parent / "figures", (".png",))
    return under_a_picture(sheet, f"figures/{path.name}")


def collect_command(args: argparse.Namespace) -> int:
    """Write a small result file for every run."""
    collect_all(args.runs, args.out, args.unfinished, tell)
    return 0
