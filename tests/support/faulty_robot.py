"""The fake robot of the examples in real time, with a fault of every kind in each rollout and slow updates between.

`python tests/support/faulty_robot.py 60` runs it for a minute and prints what the loop and its log say; `60 50` also
gives the loop real-time priority 50.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from robot_bench import read_log

from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.schedules import constant
from safeexplorer.realtime import RobotLoop, Status

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "fake_robot.py"))
RATE = 100.0
ROWS = 130  # of a rollout
UPDATE = 1.0  # s
# What goes wrong in the tick after a row, and in the tick of the last; if the policy acts on that row.
PLAN = {20: {"late"}, 40: {"nan"}, 60: {"nan", "recovery"}, 80: {"policy"}}
# What the log then says: the fault and who acted in that tick.
HANDLED = {
    20: [("stale", "recovery")],
    40: [("nonfinite", "recovery")],
    60: [("nonfinite", "safe"), ("recovery", "safe")],
    80: [("policy", "recovery")],
}


class FaultyRobot(EXAMPLE["FakeRobot"]):
    """Counts its commands; reads late or NaN when told to."""

    def __init__(self):
        super().__init__()
        self.due, self.writes, self.expected = set(), [], []

    def happens(self, fault: str) -> bool:
        found = fault in self.due
        self.due.discard(fault)
        return found

    def read(self):
        observation, stamp = super().read()
        if self.happens("nan"):
            observation = observation * np.nan
        return observation, stamp - (1.0 if self.happens("late") else 0.0)

    def write(self, action):
        super().write(action)
        self.writes.append(time.monotonic())

    def act(self, observation):
        """The recovery."""
        if self.happens("recovery"):
            raise RuntimeError("recovery")
        return EXAMPLE["catch"](observation)

    def policy(self, observation, row):
        self.due |= PLAN.get(row, set())
        self.expected += HANDLED.get(row, [])
        if self.happens("policy"):
            raise RuntimeError("policy")
        return EXAMPLE["catch"](observation[None])[0] + 0.5


def learn(matrix: Any, multiply: Any) -> None:
    """A second of Python that holds the interpreter and XLA that does not."""
    until = time.monotonic() + UPDATE
    while time.monotonic() < until:
        sum(range(20_000))
        multiply(matrix).block_until_ready()


def run(
    seconds: float, log: Path, priority: int | None = None
) -> tuple[FaultyRobot, Status, list[dict[str, Any]], list[int]]:
    """Rollouts and updates for so long; the robot, the last status, the log, and the commands during each update."""
    matrix, multiply = jax.numpy.ones((200, 200)), jax.jit(lambda x: x @ x)
    multiply(matrix).block_until_ready()
    robot = FaultyRobot()
    who = {"recovery": robot, "intervention": SafeRegion(constant(0.3)), "distance": EXAMPLE["tilt"]}
    limits = {"rate": RATE, "safe_action": [0.0], "max_age": 0.5, "max_blind": 1.0, "max_overruns": 1000}
    with RobotLoop(robot, **who, **limits, log=log, priority=priority, reset=robot.set_upright) as loop:
        loop.arm(robot.policy)
        began, held = time.monotonic(), []
        while time.monotonic() - began < seconds:
            loop.record(robot.policy, ROWS)
            before = len(robot.writes)
            learn(matrix, multiply)
            held.append(len(robot.writes) - before)
        loop.disarm()
        status = loop.status()
    return robot, status, read_log(log), held


def handled(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["kind"], event["acted"]) for event in events if event["event"] == "fault"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seconds, *priority = sys.argv[1:]
        robot, status, events, held = run(
            float(seconds), Path(folder) / "robot.jsonl", *(int(x) for x in priority)
        )
    gaps = 1e3 * np.diff(robot.writes)
    print(status)
    print(f"{len(held)} rollouts, every fault handled in its tick: {handled(events) == robot.expected}")
    print(
        f"commands {len(robot.writes)}, ms between them: median {np.median(gaps):.2f}, most {gaps.max():.2f}"
    )
    print({kind: sum(e["event"] == kind for e in events) for kind in sorted({e["event"] for e in events})})


if __name__ == "__main__":
    main()
