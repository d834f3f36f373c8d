"""Unitree Go1: velocity commands, absolute joint targets, the paper's 49-dimensional observation and reward."""

from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np

from safeexplorer.recovery.scripted import Posture
from safeexplorer.robots.attitude import euler_of, quaternion_of, rotation_of
from safeexplorer.robots.models import read_model
from safeexplorer.robots.robot import Bodies, Robot
from safeexplorer.robots.starts import VELOCITY_NOISE, healthy_start

DT = 0.01  # s per control step: 5 physics steps of 0.002 s
NOMINAL_HEIGHT = 0.3  # m
HEALTHY_HEIGHT = (0.22, 0.65)  # m, open interval
MAX_TILT = np.deg2rad(60)  # of roll and of pitch
DEFAULT_POSE = np.array([0.0, 0.8, -1.5] * 2 + [0.0, 1.0, -1.5] * 2)  # front legs, rear legs (rad)
MAX_COMMAND = 0.5  # m/s, m/s, rad/s
SIGMA = 0.25  # of both tracking rewards
MIN_COMMAND = 0.1  # m/s: slower commands pay no air time
AIR_TIME = 0.5  # s, a step that long pays nothing; shorter ones cost
CONTACT = 1.0  # N
OBSERVATION_BOUND = 100.0

TASK = {  # weights of the terms of the reward, in the order in which they are summed
    "linear_tracking": 4.0,
    "vertical_velocity": -2.0,
    "angular_velocity_xy": -0.05,
    "angular_tracking": 2.0,
    "joint_acceleration": -1.25e-9,
    "joint_deviation": -0.1,
    "action_rate": -0.001,
    "orientation": -0.4,
    "torque": -2e-4,
    "joint_limit": -0.01,
    "height": -4.0,
    "air_time": 1.0,
    "healthy": 1.0,
}

MODEL = Path(__file__).with_name("go1.xml")
# Of hip, thigh and calf.
JOINT_LOW, JOINT_HIGH = np.array([(-0.863, 0.863), (-0.686, 4.501), (-2.818, -0.888)] * 4).T
JOINT_CENTRE = (JOINT_LOW + JOINT_HIGH) / 2
SOFT_REACH = 0.9 * (JOINT_HIGH - JOINT_LOW) / 2  # the joint-limit cost begins at 90% of the range


# What is observed, times this, less the default pose of the joints.
_SCALE = np.repeat([2.0, 0.25, 1.0, 1.0, 2.0, 1.0, 0.05, 1.0], [3, 3, 1, 3, 3, 12, 12, 12])
_OFFSET = np.concatenate((np.zeros(13), DEFAULT_POSE, np.zeros(24)))


def scratch(*shape: int) -> cached_property:
    """An array [E, ...] that is written anew every step."""
    return cached_property(lambda self: np.zeros((len(self.qpos), *shape)))


class Go1s(Bodies):
    height = cached_property(lambda self: self.qpos[:, 2])
    quaternion = cached_property(lambda self: self.qpos[:, 3:7])
    joints = cached_property(lambda self: self.qpos[:, 7:])
    world_velocity = cached_property(lambda self: self.qvel[:, :3, None])
    spin = cached_property(lambda self: self.qvel[:, 3:6])  # w, in the base frame
    speeds = cached_property(lambda self: self.qvel[:, 6:])

    rotation = scratch(9)  # R, from the base frame to the world
    euler = scratch(3)  # roll, pitch, yaw
    velocity = scratch(3)  # R^T v, in the base frame
    sag = scratch()  # height - 0.3
    landed = scratch(4)  # feet that touch the floor now or did at the step before
    angles = cached_property(lambda self: tuple(self.euler.T))
    entries = cached_property(lambda self: tuple(self.rotation.T))
    matrix = cached_property(lambda self: self.rotation.reshape(-1, 3, 3))
    # A unit vector in the base frame, upside down.
    gravity = cached_property(lambda self: self.rotation[:, 6:])

    @cached_property
    def observed(self) -> tuple[np.ndarray, ...]:
        """What is observed, unscaled."""
        body = (self.velocity, self.spin, self.height[:, None], self.euler, self.command)
        return (*body, self.joints, self.speeds, self.previous_action)


def prepare(now: Go1s) -> None:
    rotation_of(now.quaternion, out=now.rotation)
    euler_of(now.entries, out=now.angles)
    np.add.reduce(now.world_velocity * now.matrix, 1, out=now.velocity)
    np.subtract(now.height, NOMINAL_HEIGHT, out=now.sag)


def observe(now: Go1s) -> np.ndarray:
    """(2 v, 0.25 w, z, roll pitch yaw, 2 command, q - q0, 0.05 dq/dt, previous action), [E, 49], clipped to +-100."""
    observation = np.concatenate(now.observed, axis=1)
    observation *= _SCALE
    observation -= _OFFSET
    np.minimum(observation, OBSERVATION_BOUND, out=observation)
    return np.maximum(observation, -OBSERVATION_BOUND, out=observation)


def distance(now: Go1s) -> np.ndarray:
    """D = |(z - 0.3, roll, pitch)|."""
    roll, pitch, _ = now.angles
    return np.hypot(now.sag, np.hypot(roll, pitch))


def fallen(now: Go1s) -> np.ndarray:
    """z outside (0.22, 0.65), or |roll| or |pitch| above 60 degrees."""
    roll, pitch, _ = now.angles
    tilt = np.maximum(np.abs(roll), np.abs(pitch))
    return (now.height <= HEALTHY_HEIGHT[0]) | (now.height >= HEALTHY_HEIGHT[1]) | (tilt > MAX_TILT)


def squares(*errors: np.ndarray) -> np.ndarray:
    """|x|^2 of every row of every x, [len(errors), E]; all at once, as numpy is slow to start."""
    joined = np.concatenate(errors, axis=1)
    joined *= joined
    starts = [0, *accumulate(error.shape[1] for error in errors[:-1])]
    return np.add.reduceat(joined, starts, axis=1).T


def reward_terms(now: Go1s, before: Go1s, fallen: np.ndarray, distance: np.ndarray) -> dict[str, np.ndarray]:
    linear, vertical, angular_xy, angular, acceleration, deviation, rate, tilt, torque = squares(
        now.velocity[:, :2] - now.command[:, :2],
        now.velocity[:, 2:],
        now.spin[:, :2],
        now.spin[:, 2:] - now.command[:, 2:],
        now.speeds - before.speeds,
        now.joints - DEFAULT_POSE,
        now.action - now.previous_action,
        now.gravity[:, :2],
        now.actuator_force,
    )
    overshoot = np.maximum(np.abs(now.joints - JOINT_CENTRE) - SOFT_REACH, 0.0)
    return {
        "linear_tracking": np.exp(-linear / SIGMA),
        "vertical_velocity": vertical,
        "angular_velocity_xy": angular_xy,
        "angular_tracking": np.exp(-angular / SIGMA),
        "joint_acceleration": acceleration / DT**2,
        "joint_deviation": deviation,
        "action_rate": rate,
        "orientation": tilt,
        "torque": torque,
        "joint_limit": np.add.reduce(overshoot, 1),
        "height": np.abs(now.sag),
        "air_time": _air_time(now),
        "healthy": ~fallen,
        "distance": distance,
    }


def _air_time(now: Go1s) -> np.ndarray:
    """sum over feet that just landed of (air time - 0.5 s), for commands above 0.1 m/s."""
    np.logical_or(now.sensordata > CONTACT, now.last_contact, out=now.landed)
    landing = now.air_time * now.landed
    if not np.count_nonzero(landing):
        return np.zeros(len(landing))
    walking = np.hypot(now.command[:, 0], now.command[:, 1]) > MIN_COMMAND
    return np.add.reduce((now.air_time + (DT - AIR_TIME)) * (landing > 0), 1) * walking


def remember(now: Go1s) -> None:
    now.air_time += DT
    now.air_time *= 1.0 - now.landed
    now.last_contact[:] = now.sensordata > CONTACT
    now.previous_action[:] = now.action


def task_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """z = 0.32 +- 0.02 m, joints +- 0.1 rad around the default pose, roll and pitch +- 0.02 rad, at rest."""
    base = [0.0, 0.0, rng.uniform(0.30, 0.34), *quaternion_of(*rng.uniform(-0.02, 0.02, 2), 0.0)]
    joints = DEFAULT_POSE + rng.uniform(-0.1, 0.1, 12)
    return _start(rng, np.concatenate((base, joints)), np.zeros(model.nv))


def recovery_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """Joints over their whole range, z in [0.22, 0.45] or above the floor, roll and pitch +- pi/10, any yaw."""

    def sample() -> np.ndarray:
        lean, yaw = rng.uniform(-np.pi / 10, np.pi / 10, 2), rng.uniform(0.0, 2 * np.pi)
        base = [0.0, 0.0, rng.uniform(HEALTHY_HEIGHT[0], 0.45), *quaternion_of(*lean, yaw)]
        return np.concatenate((base, rng.uniform(JOINT_LOW, JOINT_HIGH)))

    qpos = healthy_start(sample, _fallen_pose, 2, model, data)
    return _start(rng, qpos, VELOCITY_NOISE * rng.standard_normal(model.nv))


def _fallen_pose(qpos: np.ndarray) -> bool:
    pose = Go1s(qpos=qpos[None], qvel=np.zeros((1, 18)))
    prepare(pose)
    return fallen(pose)[0]


def _start(rng: np.random.Generator, qpos: np.ndarray, qvel: np.ndarray) -> dict[str, np.ndarray]:
    """The command is drawn once per episode; the last action is the default pose, as if held until now."""
    command = rng.uniform(-MAX_COMMAND, MAX_COMMAND, 3)
    return {"qpos": qpos, "qvel": qvel, "command": command, "previous_action": DEFAULT_POSE}


ROBOT = Robot(
    name="go1",
    label="Go1",
    env_id="SafeExplorer/Go1-v0",
    fall="z outside (0.22, 0.65) m, or |roll| or |pitch| > 60 degrees",
    distance_text="|(z - 0.3 m, roll, pitch)|",
    initial_radius=0.05,
    max_radius=0.15,
    budget=16_000_000,
    frame_skip=5,
    observation_size=49,
    action_size=12,
    observation_bound=OBSERVATION_BOUND,
    terms=(*TASK, "distance"),
    flavours={
        "task": TASK,
        "recovery": {"healthy": 1.0, "orientation": -0.4, "height": -4.0, "joint_deviation": -0.1},
        "recovery_tight": {"healthy": 1.0, "distance": -5.0, "joint_deviation": -0.1},
    },
    floored=True,
    posture=Posture(range(13, 25), range(25, 37), pose=tuple(DEFAULT_POSE), offset=tuple(DEFAULT_POSE)),
    recipe={"steps": 10_000_000, "flavour": "recovery_tight", "q_learning_rate": 3e-4},
    camera={"distance": 1.25, "azimuth": 130.0, "elevation": -18.0},
    build_model=lambda: read_model(MODEL),
    build_picture=lambda: read_model(MODEL, drawn=True),
    derived=("actuator_force", "sensordata"),
    memory={"command": (3,), "previous_action": (12,), "air_time": (4,), "last_contact": (4,)},
    bodies=Go1s,
    prepare=prepare,
    observe=observe,
    distance=distance,
    fallen=fallen,
    reward_terms=reward_terms,
    remember=remember,
    task_start=task_start,
    recovery_start=recovery_start,
)
