"""Where runs are executed: processes of this machine, or tasks of a Ray cluster."""

from __future__ import annotations

from typing import Any

from safeexplorer.campaigns.campaign import Campaign, Engine, Job, make_jobs

__all__ = ["Campaign", "Engine", "Job", "make_engine", "make_jobs"]
ENGINES = ("local", "ray")


def make_engine(name: str, workers: int, address: str | None = None) -> Engine[Any]:
    """An engine by name; `workers` is for the local one, `address` for Ray."""
    if name == "local":
        from safeexplorer.campaigns.local import LocalEngine

        return LocalEngine(workers)
    if name == "ray":
        from safeexplorer.campaigns.ray import RayEngine

        return RayEngine(address)
    raise ValueError(f"engine is {name!r}; allowed: {', '.join(ENGINES)}")
