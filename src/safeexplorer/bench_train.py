"""`safeexplorer bench train`: whole training runs beside the raw simulator and, if installed, Stable-Baselines3."""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

from safeexplorer.bench import ROBOT_COUNT, time_raw
from safeexplorer.envs import ROBOTS, get_robot
from safeexplorer.settings import Settings
from safeexplorer.training import Training, open_run

WARM_UP = 2  # updates: the first one compiles
PEER_ROLLOUTS = 2


def add_bench_train(parser: argparse.ArgumentParser) -> None:
    """`bench train`."""
    parser.add_argument("--robot", nargs="+", default=list(ROBOTS), metavar="ROBOT", help=", ".join(ROBOTS))
    parser.add_argument(
        "--method", nargs="+", default=["safeexplorer", "ppo"], metavar="METHOD", help="which to time"
    )
    parser.add_argument("--updates", type=int, default=30, help="length of each run in updates (default: 30)")
    parser.add_argument(
        "--recovery", default="default", help="recovery policy (default: the robot's shipped one)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=train_bench_command)


def train_bench_command(args: argparse.Namespace) -> int:
    """Time every robot with every method; the peer once per robot."""
    if args.updates <= WARM_UP:
        raise ValueError(f"--updates is {args.updates}; allowed: more than the {WARM_UP} that warm up")
    rows = []
    for name in args.robot:
        peer = bench_stable_baselines(name) if find_spec("stable_baselines3") else None
        for method in args.method:
            row = bench_training(name, method, args.updates, args.recovery)
            rows.append(row | {"sb3_steps_per_second": peer})
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        Console().print(as_table(rows))
    return 0


def bench_training(name: str, method: str, updates: int, recovery: str) -> dict[str, Any]:
    """A whole short run, its curriculum included; after every update the same physics by the raw loop."""
    get_robot(name)
    settings = Settings(robot=name, method=method, recovery=recovery).resolved()
    settings = replace(settings, steps=updates * settings.batch_size)
    with tempfile.TemporaryDirectory() as folder:
        run = open_run(settings, Path(folder))
        clock = Stopwatch(run)
        raw = [mujoco.MjData(run.env.model) for _ in range(ROBOT_COUNT)]
        total = raw_total = 0.0
        for update in range(updates):
            before = run.env.batch.state.copy()
            clock.begin()
            began = time.perf_counter()
            run.run_update()
            seconds = time.perf_counter() - began - clock.noting
            raw_seconds = time_raw(run.env, raw, before, run.collector.executed, clock.starts)
            if update >= WARM_UP:
                total, raw_total = total + seconds, raw_total + raw_seconds
                clock.keep()
        run.close()
    steps = (updates - WARM_UP) * settings.batch_size
    shares = {part: seconds / total for part, seconds in clock.shares().items()}
    return {
        "robot": name,
        "method": method,
        "steps_per_second": steps / total,
        "raw_steps_per_second": steps / raw_total,
        "ratio": raw_total / total,
        **shares,
        "rest": 1.0 - sum(shares.values()),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


class Stopwatch:
    """Time spent inside the simulation, the rest of the rollout, and the learner; and where episodes began."""

    def __init__(self, run: Training):
        self.run = run
        self.kept = {"simulate": 0.0, "collect": 0.0, "learn": 0.0}
        self._step, run.env.step = run.env.step, self._timed_step
        run.collect = self._timed("collect", run.collect)
        run.improve = self._timed("learn", run.improve)

    def begin(self) -> None:
        """Before an update."""
        self.now = dict.fromkeys(self.kept, 0.0)
        self.noting, self.step, self.starts = 0.0, 0, {}

    def keep(self) -> None:
        """Count the update just made."""
        self.now["collect"] -= self.noting
        self.kept = {part: seconds + self.now[part] for part, seconds in self.kept.items()}

    def shares(self) -> dict[str, float]:
        """Seconds by part; acting is what a rollout takes beyond the simulation."""
        kept = self.kept
        return {
            "simulate": kept["simulate"],
            "act": kept["collect"] - kept["simulate"],
            "learn": kept["learn"],
        }

    def _timed(self, part: str, function: Callable) -> Callable:
        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            result = function(*args)
            self.now[part] += time.perf_counter() - began
            return result

        return timed

    def _timed_step(self, action: np.ndarray) -> tuple:
        began = time.perf_counter()
        result = self._step(action)
        ended = time.perf_counter()
        self.now["simulate"] += ended - began
        if "_final_obs" in result[4]:
            state = self.run.env.batch.state
            self.starts[self.step] = [(i, state[i].copy()) for i in np.flatnonzero(result[4]["_final_obs"])]
        self.step += 1
        self.noting += time.perf_counter() - ended
        return result


def bench_stable_baselines(name: str) -> float:
    """Steps per second of Stable-Baselines3's PPO on the same robot, settings and single thread."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    settings = Settings(robot=name, method="ppo").resolved()
    env = make_vec_env(get_robot(name).env_id, ROBOT_COUNT)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=settings.rollout_steps,
        batch_size=256,
        n_epochs=settings.epochs,
        device="cpu",
    )
    model.learn(1)  # one rollout to warm up
    began = time.perf_counter()
    steps = PEER_ROLLOUTS * settings.batch_size
    model.learn(steps, reset_num_timesteps=True)
    return steps / (time.perf_counter() - began)


def as_table(rows: list[dict[str, Any]]) -> Table:
    """Speeds and where the time goes."""
    table = Table(title=f"Training, {ROBOT_COUNT} robots on one core, environment steps per second")
    for column in (
        "robot",
        "method",
        "steps/s",
        "raw",
        "ratio",
        "simulate",
        "act",
        "learn",
        "rest",
        "SB3 PPO",
        "MiB",
    ):
        table.add_column(column, justify="left" if column in ("robot", "method") else "right")
    for row in rows:
        peer = row["sb3_steps_per_second"]
        table.add_row(
            row["robot"],
            row["method"],
            f"{row['steps_per_second']:,.0f}",
            f"{row['raw_steps_per_second']:,.0f}",
            f"{row['ratio']:.2f}",
            *(f"{row[part]:.0%}" for part in ("simulate", "act", "learn", "rest")),
            "-" if peer is None else f"{peer:,.0f} ({row['steps_per_second'] / peer:.1f}x)",
            f"{row['peak_memory_mib']:,.0f}",
        )
    return table
