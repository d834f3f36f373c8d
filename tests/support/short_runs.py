"""Runs of a few seconds, for tests of whatever starts, stops and resumes runs."""

from __future__ import annotations

from dataclasses import replace

from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import RunSpec, run_spec

UPDATES = 30
SHORT = Settings(
    recovery="hold",
    num_envs=2,
    rollout_steps=128,
    epochs=2,
    minibatches=4,
    steps=UPDATES * 256,
    checkpoint_every=3,
)


def short_runs(count: int) -> list[RunSpec]:
    """The same run with seeds from 1 on."""
    return [run_spec(replace(SHORT, seed=seed)) for seed in range(1, count + 1)]
