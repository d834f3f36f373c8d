"""Ant: Gymnasium's own model, with the paper's healthy range, distance, bonus and recovery starts."""

from functools import cached_property

import numpy as np

from safeexplorer.recovery.scripted import Posture
from safeexplorer.robots.models import gymnasium_model
from safeexplorer.robots.robot import Bodies, Robot
from safeexplorer.robots.starts import VELOCITY_NOISE, healthy_start

DT = 0.05  # s per control step: 5 physics steps of 0.01 s
NOMINAL_HEIGHT = 0.75  # m
HEALTHY_HEIGHT = (0.3, 1.5)  # m, open interval
RESET_NOISE = 0.1
RECOVERY_HEIGHT = (0.35, 1.0)  # m
TORSO = 1  # body id
ACTUATED = (6, 7, 0, 1, 2, 3, 4, 5)  # joints in the order of the actuators, which start with the fourth leg
MAX_CONTACT = 1.0  # N and N m: contact forces are clipped to +-1 before they are squared


class Ants(Bodies):
    height = cached_property(lambda self: self.qpos[:, 2])
    quaternion = cached_property(lambda self: tuple(self.qpos[:, 3:7].T))  # w, x, y, z
    torso = cached_property(lambda self: self.xpos[:, TORSO, 0])
    forces = cached_property(lambda self: self.cfrc_ext.reshape(len(self.qpos), -1))
    observed = cached_property(lambda self: self.motion[:, 2:])


def observe(now: Ants) -> np.ndarray:
    """(z, quaternion, 8 joints, 14 velocities), [E, 27]."""
    return now.observed.copy()


def tilt(w: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """(pi/180) arccos(axis_z) phi/pi with phi = 2 arccos(q_w), [E].

    Taken at the representative with q_w >= 0, so that q and -q, one orientation, have one tilt. As arctangents, the
    arccosines need no normalised quaternion, and the identity, which has no axis, has tilt 0.
    """
    across = np.hypot(x, y)
    along = np.sign(w) * z + 0.0  # + 0.0 makes -0.0, a half turn's, positive
    half_phi = np.arctan2(np.hypot(across, z), np.abs(w))
    return np.arctan2(across, along) * half_phi / 90.0


def distance(now: Ants) -> np.ndarray:
    """D = |(z - 0.75, tilt)|."""
    return np.hypot(now.height - NOMINAL_HEIGHT, tilt(*now.quaternion))


def fallen(now: Ants) -> np.ndarray:
    """z outside (0.3, 1.5)."""
    return (now.height <= HEALTHY_HEIGHT[0]) | (now.height >= HEALTHY_HEIGHT[1])


def reward_terms(now: Ants, before: Ants, fallen: np.ndarray, distance: np.ndarray) -> dict[str, np.ndarray]:
    """Stock reads the torso's xpos, which lags one substep behind qpos: hence `torso_x`."""
    forces = np.minimum(np.maximum(now.forces, -MAX_CONTACT), MAX_CONTACT)
    return {
        "forward": (now.torso - now.torso_x) / DT,
        "survive": np.ones(len(fallen)),
        "healthy": ~fallen,
        "ctrl": np.vecdot(now.action, now.action),
        "contact": np.vecdot(forces, forces),
        "height": np.abs(now.height - NOMINAL_HEIGHT),
    }


def remember(now: Ants) -> None:
    now.torso_x[:] = now.torso


def task_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """The stock reset, nominal + U(-0.1, 0.1) and velocities 0.1 N(0, 1), with the quaternion normalised."""
    qpos = model.qpos0 + rng.uniform(-RESET_NOISE, RESET_NOISE, model.nq)
    qpos[3:7] /= np.linalg.norm(qpos[3:7])
    return {"qpos": qpos, "qvel": RESET_NOISE * rng.standard_normal(model.nv), "torso_x": qpos[0]}


def recovery_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """Joints over their whole range, any orientation whose up axis points up, z in [0.35, 1] or above the floor."""
    low, high = model.jnt_range[1:].T

    def sample() -> np.ndarray:
        quaternion = rng.standard_normal(4)
        quaternion /= np.linalg.norm(quaternion)
        w, x, y, z = quaternion
        if x * x + y * y > 0.5:  # up axis z = 1 - 2 (x^2 + y^2): turn over by half a turn about x
            quaternion = np.array([-x, w, z, -y])
        return np.concatenate(([0.0, 0.0, rng.uniform(*RECOVERY_HEIGHT)], quaternion, rng.uniform(low, high)))

    qpos = healthy_start(sample, lambda qpos: fallen(Ants(qpos=qpos[None]))[0], 2, model, data)
    return {"qpos": qpos, "qvel": VELOCITY_NOISE * rng.standard_normal(model.nv), "torso_x": qpos[0]}


ROBOT = Robot(
    name="ant",
    label="Ant",
    env_id="SafeExplorer/Ant-v0",
    fall="z outside (0.3, 1.5) m",
    distance_text="|(z - 0.75 m, tilt)|, tilt = (pi/180) arccos(axis_z) phi/pi",
    initial_radius=0.01,
    max_radius=0.4,
    budget=8_000_000,
    min_log_std=-2.0,  # the recovery acts alone for the first quarter of training, and imitation narrows the policy
    frame_skip=5,
    observation_size=27,
    action_size=8,
    terms=("forward", "survive", "healthy", "ctrl", "contact", "height"),
    flavours={
        "task": {"forward": 1.0, "survive": 1.0, "ctrl": -0.5, "contact": -5e-4},
        "recovery": {"healthy": 1.0, "ctrl": -0.5, "contact": -5e-4},
        "recovery_strong": {"survive": 1.0, "height": -2.0, "ctrl": -0.05},
    },
    posture=Posture(
        angle=[5 + joint for joint in ACTUATED],
        speed=[19 + joint for joint in ACTUATED],
        pose=(0.0, 1.2) * 2 + (0.0, -1.2) * 2,  # lower legs pointing down: it stands at z = 0.63 m
        stiffness=1.0,
        damping=0.1,
    ),
    recipe={"steps": 3_000_000, "policy_learning_rate": 1e-4, "q_learning_rate": 3e-4, "tau": 0.002},
    camera={"distance": 4.5, "azimuth": 120.0, "elevation": -25.0},
    build_model=lambda: gymnasium_model("ant.xml"),
    derived=("xpos", "cfrc_ext"),
    memory={"torso_x": ()},
    bodies=Ants,
    observe=observe,
    distance=distance,
    fallen=fallen,
    reward_terms=reward_terms,
    remember=remember,
    task_start=task_start,
    recovery_start=recovery_start,
)
