"""The speed of training beside the raw simulator and, if installed, Stable-Baselines3."""

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
from safeexplorer.robots.benchmark import ROBOT_COUNT, StepWatch
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
    """The speed of `updates` updates, and where the time goes; after every one the same physics by the raw loop."""
    settings, watch, seconds, times = run.settings, StepWatch(run.env), {}, []
    run.env.step = watch.step
    run.collect, run.learn = timed(run.collect, "collect", seconds), timed(run.learn, "learn", seconds)
    raw = run.env.physics.raw_loop()
    begun = run.update * settings.batch_size
    for _ in range(updates):
        before = run.env.batch.state.copy()
        watch.begin()
        timed(run.run_update, "update", seconds)()
        own = (watch.seconds, seconds["collect"] - watch.noting, seconds["learn"])
        raw_seconds = raw.seconds(before, run.collector.executed, watch.starts)
        times.append((seconds["update"] - watch.noting, raw_seconds, *own))
    run.close()
    total, raw_total, simulate, collect, learn = np.sum(times[WARM_UP:], axis=0).tolist()
    steps = (updates - WARM_UP) * settings.batch_size
    return {
        "robot": settings.robot,
        "method": settings.method,
        "first_step": begun,
        "steps_per_second": steps / total,
        "raw_steps_per_second": steps / raw_total,
        "ratio": raw_total / total,
        "simulate": simulate / total,
        "act": (collect - simulate) / total,
        "learn": learn / total,
        "rest": 1.0 - (collect + learn) / total,
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def timed(function: Callable, part: str, seconds: dict[str, float]) -> Callable:
    """The same function, which leaves in `seconds[part]` how long it took."""

    def watched(*args: Any) -> Any:
        began = time.perf_counter()
        result = function(*args)
        seconds[part] = time.perf_counter() - began
        return result

    return watched


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
    sizes = {"n_steps": settings.rollout_steps, "batch_size": 256, "n_epochs": settings.epochs}
    model = PPO("MlpPolicy", env, device="cpu", **sizes)
    model.learn(1)  # one rollout to warm up
    began = time.perf_counter()
    steps = PEER_ROLLOUTS * settings.batch_size
    model.learn(steps, reset_num_timesteps=True)
    return steps / (time.perf_counter() - began)
