"""Factories of agents that a process of their own can import."""

from __future__ import annotations

from small_agents import agent

from safeexplorer import SafeExplorer


def make(method: str, seed: int) -> SafeExplorer:
    return agent(method=method, seed=seed)


def make_broken(method: str, seed: int) -> SafeExplorer:
    """A recovery of the wrong shape, which is noticed when it acts."""
    return agent(method=method, seed=seed, recovery=lambda observation: observation)


def make_deaf(method: str, seed: int) -> SafeExplorer:
    return agent(method=method, seed=7)
