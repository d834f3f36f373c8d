"""PPO on HalfCheetah as stock has it, without falls: does it learn? `python oracles/stock_half_cheetah.py 1 2 3`."""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from safeexplorer import robots
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import open_run

STEPS = 1_000_000  # the first million of the paper's 8M-step schedule


def main() -> None:
    stock = replace(robots.ROBOTS["half_cheetah"], fallen=lambda now: np.zeros(len(now.qpos), bool))
    robots.ROBOTS["half_cheetah"] = stock
    for seed in map(int, sys.argv[1:] or ["1", "2", "3"]):
        settings = Settings(robot="half_cheetah", method="ppo", seed=seed).resolved()
        with tempfile.TemporaryDirectory() as folder:
            run = open_run(settings, Path(folder))
            for _ in range(STEPS // settings.batch_size):
                row = run.run_update()
            run.close()
        print(
            f"seed {seed}: mean return {row['return_trailing']:.0f} (100 episodes) after {row['steps']:,} steps"
        )


if __name__ == "__main__":
    main()
