"""A robot of your own, for every command: safeexplorer train hopper --robot-file examples/hopper.py"""

import numpy as np

from safeexplorer.recovery.scripted import Posture
from safeexplorer.robots import Robot, register
from safeexplorer.robots.models import gymnasium_model
from safeexplorer.robots.robot import Bodies

DT = 0.008  # s per control step: 4 physics steps of 0.002 s
NOMINAL_HEIGHT = 1.25  # m
MIN_HEIGHT, MAX_PITCH = 0.7, 0.2  # m, rad


def observe(now: Bodies) -> np.ndarray:
    """(z, pitch, 3 joints, 6 velocities), [E, 11]."""
    return np.concatenate((now.qpos[:, 1:], np.clip(now.qvel, -10.0, 10.0)), axis=1)


def distance(now: Bodies) -> np.ndarray:
    """D = |(z - 1.25, pitch)|."""
    return np.hypot(now.qpos[:, 1] - NOMINAL_HEIGHT, now.qpos[:, 2])


def fallen(now: Bodies) -> np.ndarray:
    return (now.qpos[:, 1] < MIN_HEIGHT) | (np.abs(now.qpos[:, 2]) > MAX_PITCH)


def reward_terms(
    now: Bodies, before: Bodies, fallen: np.ndarray, distance: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        "forward": (now.qpos[:, 0] - before.qpos[:, 0]) / DT,
        "healthy": ~fallen,
        "ctrl": np.vecdot(now.action, now.action),
        "distance": distance,
    }


def start(noise: float, speed: float):
    """The nominal pose +- noise, velocities +- speed."""

    def draw(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
        qpos = model.qpos0 + rng.uniform(-noise, noise, model.nq)
        return {"qpos": qpos, "qvel": rng.uniform(-speed, speed, model.nv)}

    return draw


HOPPER = register(
    Robot(
        name="hopper",
        label="Hopper",
        env_id="SafeExplorer/Hopper-v0",
        fall="z < 0.7 m or |pitch| > 0.2 rad",
        distance_text="|(z - 1.25 m, pitch)|",
        initial_radius=0.05,
        max_radius=0.2,
        budget=1_000_000,
        frame_skip=4,
        observation_size=11,
        action_size=3,
        terms=("forward", "healthy", "ctrl", "distance"),
        flavours={
            "task": {"forward": 1.0, "healthy": 1.0, "ctrl": -1e-3},
            "recovery": {"healthy": 1.0, "distance": -1.0, "ctrl": -1e-3},
        },
        build_model=lambda: gymnasium_model("hopper.xml"),
        observe=observe,
        distance=distance,
        fallen=fallen,
        reward_terms=reward_terms,
        task_start=start(0.005, 0.005),
        recovery_start=start(0.05, 0.5),
        posture=Posture(angle=range(2, 5), speed=range(8, 11), pose=(0.0,) * 3, stiffness=2.0, damping=0.1),
        recipe={"steps": 300_000},
        camera={"distance": 4.0, "azimuth": 90.0, "elevation": -12.0},
    )
)
