"""Where runs are executed: processes of this machine, or tasks of a Ray cluster."""

from typing import Any

from safeexplorer.campaigns.campaign import FAILED, Campaign, Engine, Job, make_jobs
from safeexplorer.campaigns.overview import Overview

__all__ = ["Campaign", "Engine", "Job", "make_engine", "make_jobs", "run_jobs"]
ENGINES = ("local", "ray")


def run_jobs(jobs: list[Job], engine: str, workers: int, address: str | None = None) -> list[Job]:
    """Run them to the end while a person watches; those that failed. SIGINT and SIGTERM raise `Stopped`."""
    with Overview() as overview:
        Campaign(jobs, make_engine(engine, workers, address), overview).run()
    return [job for job in jobs if job.state == FAILED]


def make_engine(name: str, workers: int, address: str | None = None) -> Engine[Any]:
    """An engine by name; `workers` is for the local one, `address` for Ray."""
    if name == "local":
        from safeexplorer.campaigns.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from safeexplorer.campaigns.ray import RayEngine

        return RayEngine(address)
    raise ValueError(f"engine is {name!r}; allowed: {', '.join(ENGINES)}")
