"""The speed of the simulation beside its yardstick, the raw mj_step loop, in the same run."""

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
    rng, watch, times = np.random.default_rng(0), StepWatch(simulation), []
    raw = simulation.physics.raw_loop()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        actions = simulation.robot.hold_action() + NOISE * rng.standard_normal(
            (BLOCK, ROBOT_COUNT, simulation.robot.action_size)
        )
        before = simulation.batch.state.copy()
        watch.begin()
        for action in actions:
            watch.step(action)
        times.append((watch.seconds, raw.seconds(before, actions, watch.starts)))
    del times[:2]  # warming up
    steps = BLOCK * ROBOT_COUNT
    return {
        "robot": name,
        "steps_per_second": steps / statistics.median(ours for ours, _ in times),
        "raw_steps_per_second": steps / statistics.median(raw for _, raw in times),
        "ratio": statistics.median(raw / ours for ours, raw in times),
    }


class StepWatch:
    """Times the steps of a simulation, and notes off the clock where episodes began: step -> [(robot, state)]."""

    def __init__(self, simulation: Simulation):
        self.simulation, self._step = simulation, simulation.step
        self.begin()

    def begin(self) -> None:
        """Forget what was timed."""
        self.seconds, self.noting, self.count, self.starts = 0.0, 0.0, 0, {}

    def step(self, action: np.ndarray) -> tuple:
        began = time.perf_counter()
        result = self._step(action)
        ended = time.perf_counter()
        if "_final_obs" in result[4]:
            robots = np.flatnonzero(result[4]["_final_obs"])
            self.starts[self.count] = [(i, self.simulation.batch.state[i].copy()) for i in robots]
        self.count += 1
        self.seconds += ended - began
        self.noting += time.perf_counter() - ended
        return result
