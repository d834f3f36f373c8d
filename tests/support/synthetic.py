"""Run folders with invented but plausible records, for everything that reads runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from safeexplorer.acting.accounting import Episode
from safeexplorer.acting.schedules import make_schedule
from safeexplorer.files.tables import Table
from safeexplorer.files.writing import write_json
from safeexplorer.paper.artefact import MAIN_RESULTS, SOFT_VARIANTS
from safeexplorer.runs.record import EVALUATION_COLUMNS, METRIC_COLUMNS
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import run_spec
from safeexplorer.runs.summary import summarise_run

PPO_BATCH = 8192  # steps of an update; those of the constrained methods are a quarter of it
LENGTH = 1000  # steps of an episode without a fall
PAPER = MAIN_RESULTS.paper | SOFT_VARIANTS.paper
ARMS = {arm.method: arm.label for arm in (*MAIN_RESULTS.arms, *SOFT_VARIANTS.arms)}


def level(method: str, robot: str, measure: str) -> float:
    """What the paper reports for it; half of SafeExplorer's reward and ten times its falls otherwise."""
    known = PAPER.get((ARMS.get(method, ""), robot, measure))
    return (
        known[0]
        if known
        else PAPER["SafeExplorer", robot, measure][0] * (0.5 if measure == "final_reward" else 10)
    )


def write_run(
    root: Path,
    settings: Settings,
    *,
    name: str | None = None,
    updates: int | None = None,
    finished: bool = True,
) -> Path:
    """A whole run folder: returns rise to about the paper's number, falls stop half way."""
    spec = run_spec(settings)
    s, folder = spec.settings, root / (name or spec.name)
    folder.mkdir(parents=True)
    total, rng = s.updates, np.random.default_rng(s.seed)
    done = updates or total
    x = np.arange(1, total + 1) / total
    rise = (
        level(s.method, s.robot, "final_reward")
        * rng.uniform(0.85, 1.15)
        * (1 - np.exp(-4 * x))
        / (1 - np.exp(-4))
    )
    returns = rise + rng.normal(0, 60, total)
    most = level(s.method, s.robot, "falls") * rng.uniform(0.6, 1.4) * min(1.0, s.steps / 8e6)
    falls = np.floor(most * np.minimum(2 * x, 1) ** 0.7).astype(int)
    intervenes = s.method_row().intervenes
    alpha = np.clip(0.6 * np.exp(-6 * x) + rng.normal(0, 0.004, total), 0, 1) * intervenes
    radius = make_schedule(s.schedule, s.initial_radius, s.max_radius, s.fraction)
    facts = {
        "settings": s.as_dict(),
        "updates": total,
        "provenance": {"commit": "0" * 40, "numpy": np.__version__},
        "recovery": {"name": s.recovery, "sha256": "ab" * 32} if intervenes else None,
    }
    (folder / "run.json").write_text(json.dumps(facts))
    metrics, episodes = (
        Table(folder / "metrics.csv", METRIC_COLUMNS),
        Table(folder / "episodes.csv", list(Episode._fields)),
    )
    evaluations = Table(folder / "evaluations.csv", EVALUATION_COLUMNS)
    before = ended = 0
    metric_rows, episode_rows, evaluation_rows = [], [], []
    for u in range(1, done + 1):
        fallen, value = int(falls[u - 1]) - before, float(returns[u - 1])
        before = int(falls[u - 1])
        count = max(s.batch_size // LENGTH, 1) + fallen
        ended += count
        for i in range(count):
            episode_rows.append(
                Episode(u, i, i % s.num_envs, value, LENGTH, i < fallen, float(alpha[u - 1]))._asdict()
            )
        recovered = int(alpha[u - 1] * s.batch_size)
        known = {
            "update": u, "steps": u * s.batch_size, "radius": radius((u - 1) / total) if intervenes else None,
            "return_mean": value, "return_trailing": value, "falls": before, "episodes": ended,
            "recovery_steps": recovered, "exits": recovered // 10, "recovery_rate": float(alpha[u - 1]),
            "segment_success": 0.9, "succeeded": 0, "failed": 0,
        }  # fmt: skip
        if s.method_row().sampled_recovery and alpha[u - 1] > 0:
            known |= {
                "importance_ess_share": 0.004,
                "importance_log10_variance_ratio": float(12 * np.exp(-3 * x[u - 1])),
            }
        metric_rows.append(
            dict.fromkeys(METRIC_COLUMNS, 0) | {c: None for c in METRIC_COLUMNS if "importance" in c} | known
        )
        if s.eval_every and u % s.eval_every == 0:
            gap = 600 * float(alpha[u - 1]) + rng.normal(0, 20)
            row = {"update": u, "steps": u * s.batch_size, "deterministic": 0, "trailing_return": value,
                   "length": 900.0, "total_return": value - gap, "falls": 0.1, "beta": 0.05,
                   "mixed_return": value, "mixed_falls": 0.0, "alpha": float(alpha[u - 1]), "gap": gap}  # fmt: skip
            evaluation_rows.append(row)
    for table, rows in ((metrics, metric_rows), (episodes, episode_rows), (evaluations, evaluation_rows)):
        table.append(*(r | {"fell": int(r["fell"])} if "fell" in r else r for r in rows))
        table.close()
    if finished:
        write_json(folder / "summary.json", summarise_run(folder, done * s.batch_size / 15_000))
        (folder / "replay.json").write_text(json.dumps(
            {"exits": 400, "survived": {"count": 380, "total": 400, "low": 0.93, "high": 0.97}}))  # fmt: skip
    return folder


def write_campaign(
    root: Path, methods: list[str], robots: list[str], seeds: int, updates: int = 1000
) -> list[Path]:
    """Every method on every robot, with as many seeds."""
    runs = []
    for robot in robots:
        for method in methods:
            for seed in range(1, seeds + 1):
                settings = Settings(
                    robot=robot, method=method, seed=seed, eval_every=4 * (method == "safeexplorer")
                )
                runs.append(write_run(root, replace(settings, steps=updates * PPO_BATCH)))
    return runs
