"""Four tasks that were written after the first rules of the hand-over; three led to more of them, the last to none.

Each is a page of physics with a controller that anybody would write first: a planar quadrotor, a car on a winding
road, a car behind another one, whose throttle has three positions, and a robot on two wheels.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from environments import Foreign, Rows
from gymnasium.spaces import Box, Discrete


class Quadrotor(gymnasium.Env):
    """Two rotors, each from 0 to 1; paid for forward speed. It falls where it tilts by 1.2 rad or leaves its band."""

    observation_space = Box(-np.inf, np.inf, (5,))  # height, tilt, their speeds and the forward one
    action_space = Box(0.0, 1.0, (2,))
    hover, dt, limit = 1.5, 0.02, 500

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        spread = np.array([0.3, 0.2, 0.5, 0.3, 0.3])
        self.state, self.time = (
            np.array([self.hover, 0, 0, 0, 0]) + self.np_random.uniform(-spread, spread),
            0,
        )
        return self.state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        height, tilt, forward, upward, turning = self.state
        left, right = np.clip(action, 0.0, 1.0)
        thrust = 10.0 * (left + right)
        turning += self.dt * (40.0 * (right - left) - 0.5 * turning)
        tilt += self.dt * turning
        forward += self.dt * (-thrust * np.sin(tilt) - 0.2 * forward)
        upward += self.dt * (thrust * np.cos(tilt) - 9.81 - 0.1 * upward)
        height += self.dt * upward
        self.state, self.time = np.array([height, tilt, forward, upward, turning]), self.time + 1
        fell = bool(abs(tilt) > 1.2 or not 0.2 <= height <= 4.0)
        reward = float(forward - 0.05 * ((left - 0.49) ** 2 + (right - 0.49) ** 2))
        return self.state.astype(np.float32), reward, fell, self.time >= self.limit, {}


def hover(rows: Rows) -> np.ndarray:
    """Height and speed by proportional control, tilt by a faster loop."""
    height, tilt, forward, upward, turning = rows.T
    thrust = (9.81 + 4.0 * (Quadrotor.hover - height) - 4.0 * upward) / 20.0
    torque = (30.0 * (np.clip(0.3 * forward, -0.4, 0.4) - tilt) - 8.0 * turning) / 80.0
    return np.clip(np.stack([thrust - torque, thrust + torque], 1), 0.0, 1.0)


def tilted(rows: Rows) -> np.ndarray:
    height, tilt, _, upward, turning = rows.T
    return np.sqrt(tilt**2 + (turning / 4) ** 2 + ((height - Quadrotor.hover) / 1.5) ** 2 + (upward / 3) ** 2)


class Road(gymnasium.Env):
    """Steering and throttle; paid for speed. It falls where it leaves the road, 2 m to either side; grip is limited."""

    observation_space = Box(-np.inf, np.inf, (6,))  # offset, heading, speed, curvature here, 8 and 16 m ahead
    action_space = Box(-1.0, 1.0, (2,))
    dt, limit, grip, sharpest = 0.05, 600, 8.0, 0.12

    def curvature(self, ahead: float = 0.0) -> float:
        at = self.along + ahead
        return 0.02 * np.sin(at / 15 + self.phase) + 0.015 * np.sin(at / 7 + 2 * self.phase)

    def observe(self) -> np.ndarray:
        bends = [50.0 * self.curvature(ahead) for ahead in (0.0, 8.0, 16.0)]
        return np.array([self.offset, self.heading, self.speed / 10, *bends], np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        draw = self.np_random.uniform
        self.phase, self.offset, self.heading = draw(0, 6.28), draw(-0.5, 0.5), draw(-0.1, 0.1)
        self.speed, self.along, self.time = 5 + draw(-1, 1), 0.0, 0
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        steering, throttle = np.clip(action, -1.0, 1.0)
        most = min(self.sharpest, self.grip / self.speed**2)
        bend = np.clip(self.sharpest * steering, -most, most)
        self.along += self.dt * self.speed * np.cos(self.heading)
        self.offset += self.dt * self.speed * np.sin(self.heading)
        self.heading += self.dt * self.speed * (bend - self.curvature())
        self.speed = np.clip(self.speed + 4.0 * self.dt * throttle, 1.0, 25.0)
        self.time += 1
        fell = bool(abs(self.offset) > 2.0 or abs(self.heading) > 1.0)
        return (
            self.observe(),
            float(self.speed * np.cos(self.heading) / 10),
            fell,
            self.time >= self.limit,
            {},
        )


def keep_lane(rows: Rows) -> np.ndarray:
    """Back to the middle, and to 5 m/s."""
    offset, heading, speed, bend = rows.T[:4]
    steering = (bend / 50 - 0.06 * offset - 0.35 * heading) / Road.sharpest
    return np.clip(np.stack([steering, 0.5 * (5 - 10 * speed)], 1), -1.0, 1.0)


class Following(gymnasium.Env):
    """Brake, roll or accelerate behind a car whose speed wanders; paid for speed and nearness. A fall is a crash."""

    observation_space = Box(-np.inf, np.inf, (3,))  # gap, speed, by how much the other one is faster
    action_space = Discrete(3)
    dt, limit = 0.1, 400

    def observe(self) -> np.ndarray:
        return np.array([self.gap / 20, self.speed / 10, (self.other - self.speed) / 10], np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.gap, self.speed, self.time = 20 + self.np_random.uniform(-5, 5), 8.0, 0
        self.other = 8 + self.np_random.uniform(-2, 2)
        return self.observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.speed = np.clip(self.speed + self.dt * (-5.0, 0.0, 2.0)[int(action)], 0.0, 20.0)
        wander = 4.0 * self.np_random.standard_normal() + 0.3 * (10 - self.other)
        self.other = np.clip(self.other + self.dt * wander, 0.0, 18.0)
        self.gap += self.dt * (self.other - self.speed)
        self.time += 1
        reward = float(self.speed / 10 - 0.02 * max(self.gap - 10, 0.0))
        return self.observe(), reward, bool(self.gap <= 0), self.time >= self.limit, {}


def brake(rows: Rows) -> np.ndarray:
    """Brake where the gap is less than 10 m, a second of driving and three of closing in."""
    gap, speed, faster = rows.T
    return np.where(20 * gap < 10 + 10 * speed - 30 * faster, 0, 1)


def too_near(rows: Rows) -> np.ndarray:
    gap, _, faster = rows.T
    return np.maximum(0.0, 1.5 - gap + np.maximum(0.0, -faster))


class TwoWheels(gymnasium.Env):
    """A body that balances on two driven wheels; paid for speed. It falls where it tilts by 0.7 rad."""

    observation_space = Box(-np.inf, np.inf, (3,))  # tilt, its speed, speed of the wheels
    action_space = Box(-1.0, 1.0, (1,))
    dt, limit, push, height = 0.02, 500, 12.0, 0.6

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.time = self.np_random.uniform(-0.15, 0.15, 3), 0
        return self.state.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        tilt, turning, speed = self.state
        drive = self.push * float(np.clip(action[0], -1.0, 1.0)) - 0.4 * speed
        turning += self.dt * (9.81 * np.sin(tilt) - drive * np.cos(tilt)) / self.height
        tilt += self.dt * turning
        speed += self.dt * drive
        self.state, self.time = np.array([tilt, turning, speed]), self.time + 1
        return self.state.astype(np.float32), float(speed), bool(abs(tilt) > 0.7), self.time >= self.limit, {}


def stand(rows: Rows) -> np.ndarray:
    """Drive under the body, and slowly back to a standstill."""
    tilt, turning, speed = rows.T
    return np.clip(2.0 * tilt + 0.5 * turning + 0.1 * speed, -1.0, 1.0)[:, None]


gymnasium.register("Quadrotor-v0", Quadrotor)
gymnasium.register("Road-v0", Road)
gymnasium.register("Following-v0", Following)
gymnasium.register("TwoWheels-v0", TwoWheels)

UNSEEN = {
    "quadrotor": Foreign("Quadrotor-v0", 200_000, hover, tilted, "hovering; tilt, height and their speeds"),
    "road": Foreign(
        "Road-v0",
        200_000,
        keep_lane,
        lambda rows: np.hypot(rows[:, 0], 3 * rows[:, 1]),
        "lane keeping; offset, heading",
    ),
    "following": Foreign("Following-v0", 150_000, brake, too_near, "braking; gap, closing speed"),
    "wheels": Foreign(
        "TwoWheels-v0",
        200_000,
        stand,
        lambda rows: np.hypot(rows[:, 0], rows[:, 1] / 4),
        "standing still; tilt and its speed",
    ),
}
