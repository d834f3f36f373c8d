"""Before the first command: ask everyone once, send nothing, and raise what would have been a fault."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from safeexplorer.realtime.pilot import Pilot, described
from safeexplorer.realtime.rows import Policy, Rows

PATIENCE = 2.0  # s for the first good reading


def rehearse(pilot: Pilot, policy: Policy | None, wait: Callable[[float], None]) -> None:
    """Leave the pilot as fresh as new, with a first good reading."""
    down = lies(pilot, wait)
    hardware, observation, safe = pilot.hardware, pilot.observation, pilot.limits.safe_action
    if down:
        raise RuntimeError("the robot has fallen: put it upright before arming")
    reward = asked("hardware.reward", lambda: float(hardware.reward(observation, safe, observation)))
    if not np.isfinite(reward):
        raise ValueError(f"hardware.reward gave {reward}; allowed: a finite number")
    pilot.pending = []
    pilot.takes_over(Rows(lambda *_: safe, 1, (len(observation), len(safe)), 0.0), pilot.measure())
    if pilot.pending:
        raise ValueError("{} failed before arming: {}".format(*pilot.pending[0]))
    seconds = timed("recovery", lambda: pilot.checked(pilot.recovery.act(observation[None]), 2))
    if policy is not None:
        seconds += timed("policy", lambda: pilot.checked(policy(observation, 0), 1))
    if seconds > pilot.limits.period:
        raise ValueError(
            f"policy and recovery take {seconds:.6g} s; allowed: less than a tick, {pilot.limits.period:.6g} s"
        )


def lies(pilot: Pilot, wait: Callable[[float], None]) -> bool:
    """Has the robot fallen, by a first good reading?"""
    pilot.forget()
    first_reading(pilot, wait)
    return asked("hardware.fallen", lambda: bool(pilot.hardware.fallen(pilot.observation)))


def first_reading(pilot: Pilot, wait: Callable[[float], None]) -> None:
    """Wait for the first good reading."""
    began = pilot.clock()
    while True:
        pilot.pending = []
        if pilot.look() is None:
            return
        if pilot.clock() - began > PATIENCE:
            raise RuntimeError("no good reading within {} s: {}: {}".format(PATIENCE, *pilot.pending[0]))
        wait(pilot.limits.period)


def timed(name: str, call: Callable[[], Any]) -> float:
    """Seconds of the fastest of three calls: the first may compile or load something."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        asked(name, call)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def asked(name: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        raise ValueError(f"{name} failed before arming: {described(error)}") from error
