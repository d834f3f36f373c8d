"""A robot that is not there: an inverted pendulum in real time, driven at 100 Hz as a physical one would be.

    python examples/fake_robot.py --seconds 60

While an update is computed the recovery holds the robot; every takeover, fault and fall is a line of the log.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from gymnasium.spaces import Box

from safeexplorer import RobotLoop, SafeExplorer, SafeRegion, linear

RATE = 100  # Hz


class FakeRobot:
    """theta'' = 9.81 sin(theta) + torque; observes (theta, theta')."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-20.0, 20.0, (1,), np.float32)
    step, torque, lifted = 1e-3, 0.0, True

    def set_upright(self) -> None:
        self.lifted = True  # and let go when it is next read

    def read(self) -> tuple[np.ndarray, float]:
        now = time.monotonic()
        if self.lifted:
            self.angle, self.speed, self.time, self.lifted = 0.05, 0.0, now, False
        while now - self.time >= self.step:  # it moves when it is read, up to now
            self.speed += self.step * (9.81 * math.sin(self.angle) + self.torque)
            self.angle += self.step * self.speed
            self.time += self.step
        return np.array([self.angle, self.speed]), now

    def write(self, action: np.ndarray) -> None:
        self.torque = float(action[0])

    def reward(self, observation: np.ndarray, action: np.ndarray, next_observation: np.ndarray) -> float:
        return 1.0 - float(next_observation[0]) ** 2

    def fallen(self, observation: np.ndarray) -> bool:
        return abs(observation[0]) > 1.0


def catch(observation: np.ndarray) -> np.ndarray:
    """The recovery: a spring and a damper, [k, 2] -> [k, 1]."""
    return np.clip(observation @ [[-40.0], [-10.0]], -20.0, 20.0)


def tilt(observation: np.ndarray) -> np.ndarray:
    """D(s), [k, 2] -> [k]."""
    return np.abs(observation[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="of the robot's time, learning not counted")
    parser.add_argument("--log", default="fake_robot.jsonl", help="where the loop writes what happened")
    args, robot = parser.parse_args(), FakeRobot()
    region = SafeRegion(distance=tilt, radius=linear(0.1, 0.5))
    limits = {"rate": RATE, "safe_action": [0.0], "slew": 2000.0, "reset": robot.set_upright}
    with RobotLoop(robot, recovery=catch, intervention=region, log=args.log, **limits) as loop:
        agent = SafeExplorer(loop, rollout_steps=RATE, minibatches=4, learning_rate=1e-3, gamma=0.95)
        agent.learn(RATE * args.seconds, progress_bar=True)
        print(
            f"{agent.summary['falls']} falls, recovery {agent.summary['recovery_rate']:.0%}; {loop.status()}"
        )


if __name__ == "__main__":
    main()
