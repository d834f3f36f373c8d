"""Methods times seeds on an environment of one's own: parallel, continued by the same call, a table at the end."""

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.table import Table

from safeexplorer.campaigns.campaign import Campaign, make_jobs
from safeexplorer.campaigns.local import Attempt, LocalEngine
from safeexplorer.campaigns.overview import Overview
from safeexplorer.files.console import PlainConsole
from safeexplorer.files.interruption import Stopped
from safeexplorer.files.threads import use_one_thread
from safeexplorer.files.trouble import exit_code
from safeexplorer.files.writing import no_link
from safeexplorer.runs.results import Result, load_results
from safeexplorer.runs.specs import RunSpec
from safeexplorer.runs.summary import mean_and_deviation

Make = Callable[[str, int], Any]  # (method, seed) -> an agent that learns


def compare(
    make: Make,
    methods: Sequence[str],
    seeds: Iterable[int],
    steps: int,
    folder: str | os.PathLike,
    workers: int | None = None,
) -> list[Result]:
    """Let `make(method, seed)` learn for `steps`, for each method and seed, in processes of its own.

    Everything lies in run folders under `folder`: the same call goes on after any accident, and `safeexplorer report`
    reads them. `make` stands at the top of a module; a script calls this under `if __name__ == "__main__"`.
    """
    use_one_thread()  # new processes do the same
    check_importable(make)
    specs = [spec_of(make, method, seed, steps) for method in methods for seed in seeds]
    jobs = make_jobs(specs, Path(folder))
    with Overview() as overview:
        Campaign(jobs, OwnEngine(make, workers or os.cpu_count() or 1), overview).run()
    results = load_results([job.folder for job in jobs])
    PlainConsole().print(comparison(results, methods))
    return results


def check_importable(make: Make) -> None:
    """Can a new process find the function?"""
    try:
        pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ValueError(
            f"make is {make!r}; allowed: a function at the top of a module, which new processes can import"
        ) from None


def spec_of(make: Make, method: str, seed: int, steps: int) -> RunSpec:
    """The run that this agent will make; what is wrong with it is said before any process starts."""
    agent = make(method, seed)
    agent.world.env.close()
    got = (agent.settings.method, agent.settings.seed)
    if got != (method, seed):
        raise ValueError(f"make({method!r}, {seed}) gave an agent of {got}; hand both on to SafeExplorer")
    return RunSpec(replace(agent.settings, steps=steps).resolved())


class Process(get_context("spawn").Process):
    """Asked as a subprocess is."""

    def poll(self) -> int | None:
        return self.exitcode


class OwnEngine(LocalEngine):
    """An agent made and trained in a spawned process, which imports the caller's module anew."""

    def __init__(self, make: Make, workers: int):
        super().__init__(workers)
        self.make = make

    def start(self, spec: RunSpec, folder: Path) -> Attempt:
        log, settings = folder / "log.txt", spec.settings
        log.touch()
        words = (self.make, settings.method, settings.seed, settings.steps, folder, log)
        process = Process(target=attempt, args=words)
        process.start()
        return Attempt(process, log, log.stat().st_size)


def attempt(make: Make, method: str, seed: int, steps: int, folder: Path, log: Path) -> None:
    """The new process, in a session of its own: Ctrl-C reaches the campaign alone."""
    os.setsid()
    with open(log, "ab", opener=no_link) as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())
    use_one_thread()
    try:
        make(method, seed).learn(steps, folder=folder)
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, FloatingPointError) as error:
        print(error, file=sys.stderr)
        sys.exit(exit_code(error))


def comparison(results: Sequence[Result], methods: Sequence[str]) -> Table:
    """A row per method: mean and standard deviation over the finished runs."""
    table = Table(
        "method", "runs", "final reward", "falls in training", title=results[0].spec.settings.subject
    )
    for method in methods:
        runs = [run for run in results if run.spec.settings.method == method]
        done = [run for run in runs if run.finished]
        cells = [spread([run.numbers[name] for run in done]) for name in ("final_reward", "falls")]
        table.add_row(method, f"{len(done)} of {len(runs)}", *cells)
    return table


def spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    mean, deviation = mean_and_deviation(known)
    return f"{mean:,.1f}" + ("" if deviation is None else f" ± {deviation:,.1f}")
