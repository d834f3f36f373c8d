"""`safeexplorer bench train`: whole training runs beside the raw simulator and, if installed, Stable-Baselines3."""

from __future__ import annotations

import argparse
import functools
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from safeexplorer.commands.bench_sim import ROBOT_COUNT
from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.training import Training, open_run

METHODS_TIMED = ("safeexplorer", "ppo")
WARM_UP = 2  # updates: the first one compiles
PEER_ROLLOUTS = 2


def add_bench_train(parser: argparse.ArgumentParser) -> None:
    """`bench train`."""
    robots, methods = ", ".join(ROBOTS), ", ".join(METHODS_TIMED)
    parser.add_argument("--robot", nargs="+", metavar="ROBOT", help=f"which to time (default: {robots})")
    parser.add_argument("--method", nargs="+", metavar="METHOD", help=f"which to time (default: {methods})")
    parser.add_argument("--updates", type=int, default=30, help="length of each run in updates (default: 30)")
    parser.add_argument("--recovery", help="recovery policy (default: the robot's shipped one)")
    parser.add_argument(
        "--run",
        dest="run_folder",
        type=Path,
        metavar="RUN",
        help="instead of new runs, time the next updates of this one, on a copy: a policy that has learned leaves "
        "the region and falls less often than a new one",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=train_bench_command)


def train_bench_command(args: argparse.Namespace) -> int:
    """Time every robot with every method; the peer once per robot."""
    if args.updates <= WARM_UP:
        raise ValueError(f"--updates is {args.updates}; allowed: more than the {WARM_UP} that warm up")
    if args.run_folder and (args.robot or args.method or args.recovery):
        raise ValueError("--run has its own robot, method and recovery; allowed beside it: --updates, --json")
    rows = []
    for source in [args.run_folder] if args.run_folder else new_runs(args):
        with tempfile.TemporaryDirectory() as folder:
            row = bench_training(open_copy(source, Path(folder), args.updates), args.updates)
        rows.append(row | {"sb3_steps_per_second": peer_speed(row["robot"])})
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        Console().print(as_table(rows))
    return 0


def new_runs(args: argparse.Namespace) -> list[Settings]:
    """Of every robot with every method: a whole short run each, its curriculum included."""
    return [
        Settings(robot=get_robot(name).name, method=method, recovery=args.recovery or "default").resolved()
        for name in args.robot or ROBOTS
        for method in args.method or METHODS_TIMED
    ]


def open_copy(source: Settings | Path, folder: Path, updates: int) -> Training:
    """A new run in `folder`, or what the run of another folder would do next."""
    if isinstance(source, Settings):
        return open_run(replace(source, steps=updates * source.batch_size), folder)
    settings = stored_settings(source)
    if settings.robot is None:
        raise ValueError(f"{source} trains an environment of its own; allowed: runs of {', '.join(ROBOTS)}")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lock"))
    run = open_run(settings, folder)
    left = settings.updates - run.update
    if left < updates:
        run.close()
        raise ValueError(f"--updates is {updates}; allowed with {source}: up to the {left} it has left")
    return run


def bench_training(run: Training, updates: int) -> dict[str, Any]:
    """The speed of `updates` updates; after every one the same physics by the raw loop."""
    settings, clock = run.settings, Stopwatch(run)
    raw = run.env.physics.raw_loop()
    begun = run.update * settings.batch_size
    total = raw_total = 0.0
    for update in range(updates):
        before = run.env.batch.state.copy()
        clock.begin()
        began = time.perf_counter()
        run.run_update()
        seconds = time.perf_counter() - began - clock.noting
        raw_seconds = raw.seconds(before, run.collector.executed, clock.starts)
        if update >= WARM_UP:
            total, raw_total = total + seconds, raw_total + raw_seconds
            clock.keep()
    run.close()
    steps = (updates - WARM_UP) * settings.batch_size
    shares = {part: seconds / total for part, seconds in clock.shares().items()}
    return {
        "robot": settings.robot,
        "method": settings.method,
        "first_step": begun,
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


@functools.cache
def peer_speed(name: str) -> float | None:
    """Steps per second of Stable-Baselines3's PPO on the same robot, settings and single thread, if installed."""
    if not find_spec("stable_baselines3"):
        return None
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
    """Speeds and where the time goes, in 80 columns."""
    title = "Training on one core, environment steps per second"
    table = Table(title=title, box=None, pad_edge=False, padding=(0, 0, 0, 1))
    for column in ("robot", "method"):
        table.add_column(column, no_wrap=True)
    for column in ("from", "steps/s", "raw", "ratio", "sim/act/\nlearn/rest", "SB3\nPPO", "MiB"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        peer = row["sb3_steps_per_second"]
        parts = (row[part] for part in ("simulate", "act", "learn", "rest"))
        table.add_row(
            row["robot"],
            row["method"],
            f"{row['first_step'] / 1e6:.3g}M",
            f"{row['steps_per_second']:,.0f}",
            f"{row['raw_steps_per_second']:,.0f}",
            f"{row['ratio']:.2f}",
            "/".join(f"{100 * part:.0f}" for part in parts) + "%",
            "-" if peer is None else f"{row['steps_per_second'] / peer:.1f}x",
            f"{row['peak_memory_mib']:,.0f}",
        )
    return table
