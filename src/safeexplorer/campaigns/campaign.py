"""A campaign: many runs, kept going until each has finished or has shown that it cannot.

Everything that matters is in the run folders, so a campaign can be killed at any moment and started again: finished
runs are left alone, unfinished ones continue from their checkpoints, one writer at a time.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from safeexplorer.files.checkpoint import checkpoints
from safeexplorer.files.interruption import Stopped, stop_requests
from safeexplorer.files.locks import is_held
from safeexplorer.files.writing import write_json
from safeexplorer.runs.specs import RunSpec
from safeexplorer.runs.summary import is_finished

WAITING, RUNNING, ELSEWHERE, FINISHED, FAILED = "waiting", "running", "elsewhere", "finished", "failed"
ATTEMPTS = 3  # in a row without a new checkpoint
POLL_SECONDS = 0.05
# Without a new row of metrics or a checkpoint: an update takes seconds, at most minutes.
PATIENCE_SECONDS = 1800.0
STOP_SECONDS = 300.0  # to finish the update in hand and save
ELSEWHERE_SECONDS = 1.0  # between two looks at a run that another process holds
Handle = TypeVar("Handle")


class Outcome(NamedTuple):
    """How an attempt ended."""

    error: str | None = None  # None: it says that it finished
    final: bool = False  # trying again would end the same way


class Engine(Protocol[Handle]):
    """Executes attempts. An attempt continues the run in its folder and leaves everything there."""

    slots: int | None  # attempts at a time; None: the engine has a queue of its own

    def start(self, spec: RunSpec, folder: Path) -> Handle: ...

    def outcome(self, handle: Handle) -> Outcome | None:
        """None while it goes on."""
        ...

    def stop(self, handle: Handle) -> None:
        """Ask it to save and end."""
        ...

    def kill(self, handle: Handle) -> None:
        """End it at once."""
        ...

    def close(self) -> None: ...


@dataclass
class Job:
    """One run of a campaign."""

    spec: RunSpec
    folder: Path
    state: str = WAITING
    error: str | None = None
    failures: int = 0  # attempts in a row without a new checkpoint
    attempts: int = 0
    seconds: float = 0.0  # in attempts of this campaign
    handle: Any = field(default=None, repr=False)
    began: float = 0.0
    checkpoint: int = 0
    pulse: tuple[int, int] = (0, 0)  # of the attempt, when it was seen last to have changed
    beat: float = 0.0  # when that was
    verdict: Outcome | None = None  # of an attempt that was killed from here

    @property
    def over(self) -> bool:
        return self.state in (FINISHED, FAILED)


def make_jobs(specs: Iterable[RunSpec], root: Path) -> list[Job]:
    """A job for each run, in its own folder under `root`; those finished earlier say so."""
    jobs = [Job(spec, root / spec.name) for spec in specs]
    for job in jobs:
        if is_finished(job.folder):
            job.state = FINISHED
    return jobs


class Campaign(Generic[Handle]):
    """Starts, watches and restarts the jobs on one engine."""

    def __init__(
        self,
        jobs: list[Job],
        engine: Engine[Handle],
        watch: Callable[[list[Job]], None] = lambda jobs: None,
        patience: float = PATIENCE_SECONDS,
    ):
        self.jobs, self.engine, self.watch, self.patience = jobs, engine, watch, patience

    def run(self) -> None:
        """Until every job is over. SIGINT or SIGTERM lets the runs save, then raises `Stopped`."""
        with stop_requests() as asked_to_stop:
            try:
                while not all(job.over for job in self.jobs):
                    if asked_to_stop.is_set():
                        raise Stopped("stopped; every run is saved, the same command continues")
                    self.settle()
                    self.feel_pulses()
                    self.fill()
                    self.watch(self.jobs)
                    asked_to_stop.wait(POLL_SECONDS)
                self.watch(self.jobs)
            finally:
                self.wind_down()
                self.engine.close()

    def settle(self) -> None:
        """Take note of attempts that ended."""
        for job in self.running():
            outcome = self.engine.outcome(job.handle)
            if outcome is not None:
                job.seconds += time.perf_counter() - job.began
                job.handle = None
                self.judge(job, job.verdict or outcome)

    def feel_pulses(self) -> None:
        """Kill attempts that stopped making progress; they are tried again from their checkpoints.

        Not where the engine has a queue of its own: there a run may only be waiting.
        """
        now = time.perf_counter()
        for job in self.running() if self.engine.slots is not None else []:
            pulse = pulse_of(job.folder)
            if pulse != job.pulse:
                job.pulse, job.beat = pulse, now
            elif now - job.beat > self.patience:
                self.engine.kill(job.handle)
                job.verdict, job.beat = Outcome(f"no progress in {self.patience:g} s, killed"), now

    def judge(self, job: Job, outcome: Outcome) -> None:
        """Finished, failed for good, to be tried again, or in somebody else's hands."""
        if is_finished(job.folder):
            job.state = FINISHED
            (job.folder / "failure.json").unlink(missing_ok=True)
        elif is_held(job.folder):
            job.state, job.began = ELSEWHERE, time.perf_counter()
        else:
            reached = last_checkpoint(job.folder)
            job.failures = 1 if reached > job.checkpoint else job.failures + 1
            job.checkpoint = reached
            job.error = outcome.error or "it ended without a summary"
            job.state = FAILED if outcome.final or job.failures >= ATTEMPTS else WAITING
            if job.state == FAILED:
                write_failure(job)

    def fill(self) -> None:
        """Start what can start."""
        now = time.perf_counter()
        for job in self.jobs:
            if self.engine.slots is not None and len(self.running()) >= self.engine.slots:
                return
            patient = job.state == ELSEWHERE and now - job.began > ELSEWHERE_SECONDS
            if job.state == WAITING or patient:
                self.start(job)

    def start(self, job: Job) -> None:
        if is_finished(job.folder):  # by the process that held it
            job.state = FINISHED
            return
        if is_held(job.folder):
            job.state, job.began = ELSEWHERE, time.perf_counter()
            return
        job.attempts, job.verdict, job.began = job.attempts + 1, None, time.perf_counter()
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
            (job.folder / "failure.json").unlink(missing_ok=True)
            job.checkpoint = max(job.checkpoint, last_checkpoint(job.folder))
            job.pulse, job.beat = pulse_of(job.folder), job.began
            job.handle = self.engine.start(job.spec, job.folder)
        except OSError as error:  # a full disk, no more processes: an attempt of this run, not of the others
            self.judge(job, Outcome(str(error)))
        else:
            job.state = RUNNING

    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.state == RUNNING]

    def wind_down(self) -> None:
        """Let what still runs save and end."""
        for job in self.running():
            self.engine.stop(job.handle)
        end = time.perf_counter() + STOP_SECONDS
        while left := [job for job in self.running() if self.engine.outcome(job.handle) is None]:
            time.sleep(POLL_SECONDS)
            if time.perf_counter() > end:
                for job in left:
                    self.engine.kill(job.handle)
        for job in self.running():
            job.state = FINISHED if is_finished(job.folder) else WAITING


def pulse_of(folder: Path) -> tuple[int, int]:
    """What grows with every update, and with every checkpoint."""
    metrics = folder / "metrics.csv"
    return metrics.stat().st_size if metrics.is_file() else 0, last_checkpoint(folder)


def last_checkpoint(folder: Path) -> int:
    """The update of the newest checkpoint, 0 without one."""
    found = checkpoints(folder / "checkpoints")
    return int(found[-1].name) if found else 0


def write_failure(job: Job) -> None:
    """So that every table that needed the run can say why it is missing; where the disk allows it."""
    facts = {"settings": job.spec.settings.as_dict(), "error": job.error, "attempts": job.attempts}
    with suppress(OSError):
        write_json(job.folder / "failure.json", facts)
