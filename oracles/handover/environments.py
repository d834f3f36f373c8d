"""Environments that nobody here wrote, each with the two things that a user brings: a recovery and a distance.

None of the recoveries is trained: three are linear-quadratic regulators about a pose of balance, found from the model,
and one is the heuristic that Gymnasium ships with its lander.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import gymnasium
import mujoco
import numpy as np
from scipy.linalg import solve_discrete_are
from scipy.optimize import least_squares

Rows = np.ndarray  # [k, n] observations


@dataclass(frozen=True)
class Foreign:
    """One environment, what a fall is there, and what the method is given."""

    env: str
    steps: int  # of training
    recovery: Callable[[Rows], np.ndarray]
    distance: Callable[[Rows], np.ndarray]
    given: str  # recovery and distance, in words
    fell: Any = None  # None: every termination
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrapper: Callable[[gymnasium.Env], gymnasium.Env] = lambda env: env

    def make(self) -> gymnasium.Env:
        return self.wrapper(gymnasium.make(self.env, **self.kwargs))


# -- a linear-quadratic regulator about a pose of balance ----------------------------------------------------


@dataclass(frozen=True)
class Regulator:
    """a = a0 - K (s - s0), and sqrt((s - s0)' P (s - s0)), the square root of its cost to go."""

    state: np.ndarray  # s0
    action: np.ndarray  # a0
    gain: np.ndarray  # K
    cost: np.ndarray  # P

    def act(self, state: Rows) -> np.ndarray:
        return np.clip(self.action - (state - self.state) @ self.gain.T, -1.0, 1.0).astype(np.float32)

    def distance(self, state: Rows) -> np.ndarray:
        error = state - self.state
        return np.sqrt(np.einsum("ki,ij,kj->k", error, self.cost, error))


def balance(model: mujoco.MjModel, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions near `pose` and small actions with which nothing accelerates; where it stands (number 0) is free."""
    data, size = mujoco.MjData(model), model.nq - 1

    def accelerations(unknown: np.ndarray) -> np.ndarray:
        data.qpos[1:], data.qvel[:], data.ctrl[:] = unknown[:size], 0.0, unknown[size:]
        mujoco.mj_forward(model, data)
        bent = unknown[1:size] - pose[2:]  # how high it is follows from the rest
        return np.concatenate([0.1 * data.qacc, 0.02 * bent, unknown[size:]])

    lowered = np.linspace(-0.3, 0.05, 36) if model.nq > 3 else [0.0]  # until the feet touch
    starts = [np.concatenate([[pose[1] + by], pose[2:], np.zeros(model.nu)]) for by in lowered]
    found = [least_squares(accelerations, start, diff_step=1e-6, max_nfev=60) for start in starts]
    best = min(found, key=lambda one: one.cost).x
    return np.concatenate([[0.0], best[:size]]), best[size:]


@cache
def regulator(env: str, bends: tuple[float, ...], whole: bool = False) -> Regulator:
    """About the pose with these joint angles; `whole`: the position along the track matters, too."""
    world = gymnasium.make(env).unwrapped
    world.reset(seed=0)
    pose = np.concatenate([world.model.qpos0[: world.model.nq - len(bends)], bends])
    position, action = balance(world.model, pose)
    first, epsilon = (0 if whole else 1), 1e-5
    size = world.model.nq - first

    def step(change: np.ndarray, push: np.ndarray) -> np.ndarray:
        moved = position.copy()
        moved[first:] += change[:size]
        world.set_state(moved, change[size:])
        world.do_simulation(action + push, world.frame_skip)
        return np.concatenate([world.data.qpos[first:], world.data.qvel])

    states, actions = np.eye(size + world.model.nv), np.eye(len(action))
    still, idle = np.zeros(len(states)), np.zeros(len(action))
    ahead = [step(epsilon * row, idle) - step(-epsilon * row, idle) for row in states]
    pushed = [step(still, epsilon * row) - step(still, -epsilon * row) for row in actions]
    A, B = np.stack(ahead, 1) / (2 * epsilon), np.stack(pushed, 1) / (2 * epsilon)
    Q = np.diag(np.concatenate([np.full(size, 10.0), np.full(world.model.nv, 0.1)]))
    P = solve_discrete_are(A, B, Q, actions)
    K = np.linalg.solve(actions + B.T @ P @ B, B.T @ P @ A)
    return Regulator(np.concatenate([position[first:], np.zeros(world.model.nv)]), action, K, P)


def poles(observation: Rows) -> Rows:
    """(x, both angles, their velocities) of InvertedDoublePendulum-v5, which shows sines and cosines."""
    angles = np.arctan2(observation[:, 1:3], observation[:, 3:5])
    return np.concatenate([observation[:, :1], angles, observation[:, 5:8]], axis=1)


def pendulum() -> Regulator:
    return regulator("InvertedDoublePendulum-v5", (0.0, 0.0), whole=True)


def hopper() -> Regulator:
    return regulator("Hopper-v5", (0.0, -0.3, 0.2))


def walker() -> Regulator:
    return regulator("Walker2d-v5", (0.1, -0.5, 0.3, -0.5, -0.5, 0.4))


# -- the cart ------------------------------------------------------------------------------------------------


def push_under(observation: Rows) -> np.ndarray:
    """The rule of docs/bring-your-own.md."""
    x, velocity, angle, spin = observation.T
    return (angle + 0.3 * spin + 0.02 * x + 0.05 * velocity > 0).astype(int)


def lean(observation: Rows) -> np.ndarray:
    """The distance of the same page."""
    x, velocity, angle, spin = observation.T
    return np.maximum(np.abs(angle + 0.3 * spin), 0.08 * np.abs(x + 0.5 * velocity))


# -- the lander ----------------------------------------------------------------------------------------------


def land(observation: Rows) -> np.ndarray:
    """Gymnasium's `lunar_lander.heuristic`, row by row."""
    from gymnasium.envs.box2d.lunar_lander import heuristic

    rows = [heuristic(LANDER, row) for row in observation]
    return np.array(rows, np.float32).reshape(-1, 2)


class LANDER:
    """What the heuristic asks the environment."""

    class unwrapped:
        continuous = True


def out_of_hand(observation: Rows) -> np.ndarray:
    """The largest of: tilt and spin, where it drifts to, and how much faster it sinks than one height per second."""
    x, y, vx, vy, angle, spin = observation.T[:6]
    return np.maximum.reduce([np.abs(angle) + np.abs(spin), np.abs(x + vx), -vy - np.maximum(y, 0.0)])


class TellCrash(gymnasium.Wrapper):
    """Says in `info` what only the lander's last reward says: -100 is a crash, 100 a landing."""

    def step(self, action: np.ndarray) -> tuple[Any, ...]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, info | {"crashed": terminated and reward == -100}


FOREIGN = {
    "cart": Foreign(
        "CartPole-v1", 150_000, push_under, lean, "a rule of one line; where pole and cart drift to"
    ),
    "pendulum": Foreign(
        "InvertedDoublePendulum-v5",
        150_000,
        lambda rows: pendulum().act(poles(rows)),
        lambda rows: pendulum().distance(poles(rows)),
        "LQR; the root of its cost to go",
    ),
    "lander": Foreign(
        "LunarLander-v3",
        300_000,
        land,
        out_of_hand,
        "Gymnasium's own heuristic; tilt, drift and sinking",
        fell="crashed",
        wrapper=TellCrash,
        kwargs={"continuous": True},
    ),
    "hopper": Foreign(
        "Hopper-v5",
        300_000,
        lambda rows: hopper().act(rows),
        lambda rows: hopper().distance(rows),
        "LQR that stands; the root of its cost to go",
    ),
    "walker": Foreign(
        "Walker2d-v5",
        300_000,
        lambda rows: walker().act(rows),
        lambda rows: walker().distance(rows),
        "LQR that stands; the root of its cost to go",
    ),
}
