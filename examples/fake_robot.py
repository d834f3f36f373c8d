"""A robot that is not there: an inverted pendulum in real time, driven at 100 Hz as a physical one would be."""

import argparse
import math
import time

import numpy as np
from gymnasium.spaces import Box

from safeexplorer.interventions import SafeRegion
from safeexplorer.networks import init_actor_critic
from safeexplorer.realtime import RobotCollector, RobotLoop
from safeexplorer.schedules import constant


class FakeRobot:
    """theta'' = 9.81 sin(theta) + torque; observes (theta, theta')."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-20.0, 20.0, (1,), np.float32)
    step = 1e-3  # s
    torque, lifted = 0.0, True

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


class Catch:
    """The recovery: a spring and a damper."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.clip(observation @ [[-40.0], [-10.0]], -20.0, 20.0)


def tilt(observation: np.ndarray) -> np.ndarray:
    """D(s), [k, n] -> [k]."""
    return np.abs(observation[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--log", default="fake_robot.jsonl")
    arguments, robot = parser.parse_args(), FakeRobot()
    who = {"recovery": Catch(), "intervention": SafeRegion(constant(0.2)), "distance": tilt}
    limits = {"rate": 100.0, "safe_action": [0.0], "slew": 2000.0}
    rng, began = np.random.default_rng(1), time.monotonic()
    params = init_actor_critic(rng, 2, 1, (32,))
    with RobotLoop(robot, **who, **limits, log=arguments.log, reset=robot.set_upright) as loop:
        collector = RobotCollector(loop, rollout_steps=100)
        collector.arm(params)
        while time.monotonic() - began < arguments.seconds:
            rollout = collector.collect(params, 0.0, rng)
            print(f"reward {rollout.task_reward.sum():.1f}, recovery {rollout.recovering.mean():.0%}")
            time.sleep(0.3)  # learning: the recovery holds the robot
        print(loop.status())


if __name__ == "__main__":
    main()
