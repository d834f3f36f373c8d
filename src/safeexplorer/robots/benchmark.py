"""The speed of the simulation beside its yardstick, the raw mj_step loop, in the same run."""

from __future__ import annotations

import statistics
import time

import numpy as np

from safeexplorer.robots import make
from safeexplorer.robots.simulation import Simulation

ROBOT_COUNT = 4
BLOCK = 50  # control steps between two looks at the clock
NOISE = 0.3  # standard deviation of the actions around the holding action


def bench_simulation(name: str, seconds: float) -> dict[str, str | float]:
    """Alternate blocks of ours and of raw mj_step through the same states and actions; medians over blocks."""
    simulation = make(name, ROBOT_COUNT)
    simulation.reset(seed=0)
    rng = np.random.default_rng(0)
    raw = simulation.physics.raw_loop()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        actions = simulation.robot.hold_action() + NOISE * rng.standard_normal(
            (BLOCK, ROBOT_COUNT, simulation.robot.action_size)
        )
        before = simulation.batch.state.copy()
        ours, starts = _time_ours(simulation, actions)
        times.append((ours, raw.seconds(before, actions, starts)))
    del times[:2]  # warming up
    steps = BLOCK * ROBOT_COUNT
    return {
        "robot": name,
        "steps_per_second": steps / statistics.median(ours for ours, _ in times),
        "raw_steps_per_second": steps / statistics.median(raw for _, raw in times),
        "ratio": statistics.median(raw / ours for ours, raw in times),
    }


def _time_ours(simulation: Simulation, actions: np.ndarray) -> tuple[float, dict[int, list]]:
    """Seconds, and the states in which new episodes began: step -> [(robot, state)]."""
    starts, noting = {}, 0.0
    begin = time.perf_counter()
    for step, action in enumerate(actions):
        info = simulation.step(action)[4]
        if "_final_obs" in info:
            pause = time.perf_counter()
            starts[step] = [(i, simulation.batch.state[i].copy()) for i in np.flatnonzero(info["_final_obs"])]
            noting += time.perf_counter() - pause
    return time.perf_counter() - begin - noting, starts
