"""The speed of training beside the raw simulator and, if installed, Stable-Baselines3."""

from __future__ import annotations

import functools
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

from safeexplorer.robots import ROBOTS, get_robot
from safeexplorer.robots.benchmark import ROBOT_COUNT
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.training import Training, open_run

WARM_UP = 2  # updates: the first one compiles
PEER_ROLLOUTS = 2


def bench(source: Settings | Path, updates: int) -> dict[str, Any]:
    """Time a new run, or the next updates of a copy of one; the peer once per robot."""
    with tempfile.TemporaryDirectory() as folder:
        row = bench_training(open_copy(source, Path(folder), updates), updates)
    return row | {"sb3_steps_per_second": peer_speed(row["robot"])}


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
        run.learn = self._timed("learn", run.learn)

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
