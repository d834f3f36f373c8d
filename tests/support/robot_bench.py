"""A physical robot that is not there, in a time that stands still until a test lets it go on."""

import json
import time
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box

from safeexplorer.acting.interventions import NoIntervention
from safeexplorer.realtime import RobotLoop

RATE = 100.0
SAFE, HELD, LED = 0.5, -0.25, 0.125  # what the safe action, the recovery and the policy of most tests send


def read_log(path):
    """The events of a log, in order; a last line that was cut by a crash is left out."""
    lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


class Clock:
    """Sleeps end when a test allows a tick, at once while something is recorded, always once it is `free`."""

    def __init__(self):
        self.now, self.permits, self.free, self.busy = 100.0, 0, False, lambda: False
        self.waiting = False

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        while not (self.permits or self.free or self.busy()):
            self.waiting = True
            time.sleep(1e-4)
        self.waiting = False
        self.now += seconds
        self.permits = max(0, self.permits - 1)

    def settle(self):
        """Wait until the loop waits."""
        while self.permits or not self.waiting:
            time.sleep(1e-4)


class Line:
    """x moves by 0.1 of each command; `faults` maps a tick to what happens when it is read or written."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, clock):
        self.clock, self.x, self.faults, self.sent, self.moves = clock, 0.0, {}, [], 0.1
        self.tick = -2  # the rehearsal reads once
        self.buffer = np.zeros(1)

    def read(self):
        self.tick += 1
        self.buffer[:] = self.x  # one buffer for all readings, as drivers do
        fault = self.faults.get(("read", self.tick), lambda: (self.buffer, self.clock()))
        return fault()

    def write(self, action):
        self.faults.get(("write", self.tick), lambda: None)()
        self.sent.append(action)
        if self.moves:
            self.x += self.moves * float(action[0])

    def reward(self, observation, action, next_observation):
        return float(next_observation[0])

    def fallen(self, observation):
        self.faults.get(("fallen", self.tick), lambda: None)()
        return abs(observation[0]) > 5.0


class Always:
    """A recovery that gives one action, but for the ticks on which it does something else."""

    def __init__(self, robot):
        self.robot, self.seen = robot, []

    def act(self, observation):
        self.seen.append(observation[0, 0])
        return self.robot.faults.get(("recovery", self.robot.tick), lambda: [[HELD]])()


class Bench:
    """A loop around a `Line`, and what it wrote."""

    def __init__(self, folder, **changes):
        self.clock = Clock()
        self.robot = Line(self.clock)
        self.path = folder / "robot.jsonl"
        self.recovery = changes.pop("recovery", None) or Always(self.robot)
        settings = {"rate": RATE, "safe_action": [SAFE], "log": self.path, "intervention": NoIntervention()}
        settings |= {"clock": self.clock, "sleep": self.clock.sleep, "reset": lambda: None} | changes
        self.loop = RobotLoop(self.robot, recovery=self.recovery, **settings)
        self.clock.busy = lambda: (rows := self.loop.pilot.rows) is not None and not rows.full

    def hold(self, ticks):
        """Let so many ticks go by while nothing is recorded."""
        self.clock.settle()
        self.clock.permits += ticks
        self.clock.settle()

    def policy(self, observation, row):
        return self.robot.faults.get(("policy", self.robot.tick), lambda: [LED])()

    def record(self, steps=10):
        """Record, and let the tick end in which the last row was closed."""
        rows = self.loop.record(self.policy, steps)
        if not self.clock.free:
            self.clock.settle()
        return rows

    @property
    def sent(self):
        return [float(action[0]) for action in self.robot.sent]

    def events(self, kind=None):
        """The log, the loop being closed."""
        self.clock.free = True
        self.loop.close()
        return [event for event in read_log(self.path) if kind in (None, event["event"])]


def fails(error):
    def fail(*_):
        raise error

    return fail
