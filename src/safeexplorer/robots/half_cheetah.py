"""HalfCheetah: Gymnasium's own model, with the paper's fall, distance and recovery starts.

The height qpos[1] is measured from the nominal 0.7 m, the pitch is qpos[2] in radians, not wrapped.
"""

from functools import cached_property

import numpy as np

from safeexplorer.recovery.scripted import Posture
from safeexplorer.robots.models import gymnasium_model
from safeexplorer.robots.robot import Bodies, Robot
from safeexplorer.robots.starts import VELOCITY_NOISE, healthy_start

DT = 0.05  # s per control step: 5 physics steps of 0.01 s
MAX_HEIGHT = 0.5  # m, of |z|; the bounds themselves are healthy
MAX_PITCH = 1.57  # rad, of |pitch|
RESET_NOISE = 0.1
RECOVERY_HEIGHT = 0.3  # m
RECOVERY_PITCH = 1.2  # rad


class HalfCheetahs(Bodies):
    x = cached_property(lambda self: self.qpos[:, 0])
    z = cached_property(lambda self: self.qpos[:, 1])
    pitch = cached_property(lambda self: self.qpos[:, 2])
    observed = cached_property(lambda self: self.motion[:, 1:])


def observe(now: HalfCheetahs) -> np.ndarray:
    """(z, pitch, 6 joints, 9 velocities), [E, 17]."""
    return now.observed.copy()


def distance(now: HalfCheetahs) -> np.ndarray:
    """D = |(z, pitch)|."""
    return np.hypot(now.z, now.pitch)


def fallen(now: HalfCheetahs) -> np.ndarray:
    """|z| > 0.5 or |pitch| > 1.57."""
    return (np.abs(now.z) > MAX_HEIGHT) | (np.abs(now.pitch) > MAX_PITCH)


def reward_terms(
    now: HalfCheetahs, before: HalfCheetahs, fallen: np.ndarray, distance: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        "forward": (now.x - before.x) / DT,
        "ctrl": np.vecdot(now.action, now.action),
        "fall": fallen,
        "healthy": ~fallen,
        "distance": distance,
    }


def task_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """The stock reset: nominal + U(-0.1, 0.1), velocities 0.1 N(0, 1)."""
    qpos = model.qpos0 + rng.uniform(-RESET_NOISE, RESET_NOISE, model.nq)
    return {"qpos": qpos, "qvel": RESET_NOISE * rng.standard_normal(model.nv)}


def recovery_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """Joints over their whole range, z in +-0.3 m or just above the floor, pitch in +-1.2 rad."""
    low, high = model.jnt_range[3:].T

    def sample() -> np.ndarray:
        root = rng.uniform([0.0, -RECOVERY_HEIGHT, -RECOVERY_PITCH], [0.0, RECOVERY_HEIGHT, RECOVERY_PITCH])
        return np.concatenate((root, rng.uniform(low, high)))

    qpos = healthy_start(sample, lambda qpos: fallen(HalfCheetahs(qpos=qpos[None]))[0], 1, model, data)
    return {"qpos": qpos, "qvel": VELOCITY_NOISE * rng.standard_normal(model.nv)}


ROBOT = Robot(
    name="half_cheetah",
    label="HalfCheetah",
    env_id="SafeExplorer/HalfCheetah-v0",
    fall="|z| > 0.5 m or |pitch| > 1.57 rad",
    distance_text="|(z, pitch)|, z from the nominal 0.7 m",
    initial_radius=0.01,
    max_radius=2.0,
    budget=8_000_000,
    frame_skip=5,
    observation_size=17,
    action_size=6,
    terms=("forward", "ctrl", "fall", "healthy", "distance"),
    flavours={
        "task": {"forward": 1.0, "ctrl": -0.1, "fall": -1.0},
        "recovery": {"healthy": 1.0, "distance": -1.0, "ctrl": -0.1, "fall": -1.0},
    },
    posture=Posture(
        angle=range(2, 8),
        speed=range(11, 17),
        pose=(0.0,) * 6,
        stiffness=2.0,
        damping=0.02,  # at 0.1 the torques chatter between their bounds
    ),
    recipe={"steps": 5_000_000},
    camera={"distance": 4.0, "azimuth": 90.0, "elevation": -12.0},
    build_model=lambda: gymnasium_model("half_cheetah.xml"),
    bodies=HalfCheetahs,
    observe=observe,
    distance=distance,
    fallen=fallen,
    reward_terms=reward_terms,
    task_start=task_start,
    recovery_start=recovery_start,
)
