"""Unitree Go1: velocity commands, absolute joint targets, the paper's 49-dimensional observation and reward."""

from __future__ import annotations

import numpy as np

from safeexplorer.envs import go1_model
from safeexplorer.envs.starts import VELOCITY_NOISE, healthy_start
from safeexplorer.robot import Bodies, Robot

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

_RANGE = np.array([span for _, span, _ in go1_model.JOINTS.values()] * 4)
JOINT_LOW, JOINT_HIGH = _RANGE.T
_CENTRE, _REACH = _RANGE.mean(1), 0.9 * (JOINT_HIGH - JOINT_LOW) / 2
SOFT_LOW, SOFT_HIGH = _CENTRE - _REACH, _CENTRE + _REACH  # 90% of the range


def prepare(now: Bodies) -> None:
    """Base rotation R [E, 3, 3], roll pitch yaw (intrinsic z-y-x) and the velocity R^T v in the base frame."""
    now.rotation = rotation = _rotation(now.qpos[:, 3:7])
    roll = np.arctan2(rotation[:, 2, 1], rotation[:, 2, 2])
    pitch = -np.arcsin(np.clip(rotation[:, 2, 0], -1.0, 1.0))
    yaw = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0])
    now.euler = np.stack((roll, pitch, yaw), axis=1)
    now.velocity = np.einsum("eij,ei->ej", rotation, now.qvel[:, :3])


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrices [E, 3, 3] of unit quaternions w x y z."""
    w, x, y, z = quaternion.T
    double = 2.0 * quaternion[:, 1:]
    wx, wy, wz = (w[:, None] * double).T
    xx, xy, xz = (x[:, None] * double).T
    _, yy, yz = (y[:, None] * double).T
    zz = z * double[:, 2]
    entries = (1 - yy - zz, xy - wz, xz + wy, xy + wz, 1 - xx - zz, yz - wx, xz - wy, yz + wx, 1 - xx - yy)
    return np.stack(entries, axis=1).reshape(-1, 3, 3)


def observe(now: Bodies) -> np.ndarray:
    """(2 v, 0.25 w, z, roll pitch yaw, 2 command, q - q0, 0.05 dq/dt, previous action), [E, 49], clipped to +-100."""
    parts = (
        2.0 * now.velocity,
        0.25 * now.qvel[:, 3:6],
        now.qpos[:, 2:3],
        now.euler,
        2.0 * now.command,
        now.qpos[:, 7:] - DEFAULT_POSE,
        0.05 * now.qvel[:, 6:],
        now.previous_action,
    )
    return np.clip(np.concatenate(parts, axis=1), -OBSERVATION_BOUND, OBSERVATION_BOUND)


def distance(now: Bodies) -> np.ndarray:
    """D = |(z - 0.3, roll, pitch)|."""
    height = now.qpos[:, 2] - NOMINAL_HEIGHT
    lean = now.euler[:, :2]
    return np.sqrt(height * height + np.vecdot(lean, lean))


def fallen(now: Bodies) -> np.ndarray:
    """z outside (0.22, 0.65), or |roll| or |pitch| above 60 degrees."""
    height = now.qpos[:, 2]
    standing = (height > HEALTHY_HEIGHT[0]) & (height < HEALTHY_HEIGHT[1])
    return ~(standing & (np.abs(now.euler[:, :2]) <= MAX_TILT).all(1))


def reward_terms(now: Bodies, before: Bodies, action, fallen, distance) -> tuple[np.ndarray, ...]:
    spin, joints, speeds = now.qvel[:, 3:6], now.qpos[:, 7:], now.qvel[:, 6:]
    drift = now.command[:, :2] - now.velocity[:, :2]
    turn = now.command[:, 2] - spin[:, 2]
    acceleration = (speeds - before.qvel[:, 6:]) / DT
    change = action - now.previous_action
    deviation = joints - DEFAULT_POSE
    gravity = now.rotation[:, 2, :2]
    return (
        np.exp(-np.vecdot(drift, drift) / SIGMA),
        np.exp(-turn * turn / SIGMA),
        ~fallen,
        _air_time(now),
        np.vecdot(now.actuator_force, now.actuator_force),
        np.square(now.velocity[:, 2]),
        np.vecdot(spin[:, :2], spin[:, :2]),
        np.vecdot(change, change),
        np.abs(joints - np.clip(joints, SOFT_LOW, SOFT_HIGH)).sum(1),
        np.vecdot(acceleration, acceleration),
        np.vecdot(gravity, gravity),
        np.abs(now.qpos[:, 2] - NOMINAL_HEIGHT),
        np.vecdot(deviation, deviation),
    )


def _landed(now: Bodies) -> np.ndarray:
    """Feet that touch the floor now or did at the step before, [E, 4]."""
    return (now.sensordata > CONTACT) | (now.last_contact > 0)


def _air_time(now: Bodies) -> np.ndarray:
    """sum over feet that just landed of (air time - 0.5 s), for commands above 0.1 m/s."""
    landing = (now.air_time > 0) & _landed(now)
    walking = np.hypot(now.command[:, 0], now.command[:, 1]) > MIN_COMMAND
    return ((now.air_time + DT - AIR_TIME) * landing).sum(1) * walking


def remember(now: Bodies, action: np.ndarray) -> None:
    now.air_time += DT
    now.air_time[_landed(now)] = 0.0
    now.last_contact[:] = now.sensordata > CONTACT
    now.previous_action[:] = action


def task_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """z = 0.32 +- 0.02 m, joints +- 0.1 rad around the default pose, roll and pitch +- 0.02 rad, at rest."""
    base = [0.0, 0.0, rng.uniform(0.30, 0.34), *_quaternion(*rng.uniform(-0.02, 0.02, 2), 0.0)]
    joints = DEFAULT_POSE + rng.uniform(-0.1, 0.1, 12)
    return _start(rng, np.concatenate((base, joints)), np.zeros(model.nv))


def recovery_start(rng: np.random.Generator, model, data) -> dict[str, np.ndarray]:
    """Joints over their whole range, z in [0.22, 0.45] or above the floor, roll and pitch +- pi/10, any yaw."""

    def sample() -> np.ndarray:
        lean, yaw = rng.uniform(-np.pi / 10, np.pi / 10, 2), rng.uniform(0.0, 2 * np.pi)
        base = [0.0, 0.0, rng.uniform(HEALTHY_HEIGHT[0], 0.45), *_quaternion(*lean, yaw)]
        return np.concatenate((base, rng.uniform(JOINT_LOW, JOINT_HIGH)))

    qpos = healthy_start(sample, _fallen_pose, 2, model, data)
    return _start(rng, qpos, VELOCITY_NOISE * rng.standard_normal(model.nv))


def _fallen_pose(pose: Bodies) -> np.ndarray:
    pose.qvel = np.zeros((len(pose.qpos), 18))
    prepare(pose)
    return fallen(pose)


def _start(rng: np.random.Generator, qpos: np.ndarray, qvel: np.ndarray) -> dict[str, np.ndarray]:
    """The command is drawn once per episode; the last action is the default pose, as if held until now."""
    command = rng.uniform(-MAX_COMMAND, MAX_COMMAND, 3)
    return {"qpos": qpos, "qvel": qvel, "command": command, "previous_action": DEFAULT_POSE}


def _quaternion(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """w x y z of the rotation by yaw about z, then pitch about y, then roll about x (body axes)."""
    (cr, cp, cy), (sr, sp, sy) = (
        np.cos([roll / 2, pitch / 2, yaw / 2]),
        np.sin([roll / 2, pitch / 2, yaw / 2]),
    )
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


ROBOT = Robot(
    name="go1",
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
    terms=(
        "linear_tracking",
        "angular_tracking",
        "healthy",
        "air_time",
        "torque",
        "vertical_velocity",
        "angular_velocity_xy",
        "action_rate",
        "joint_limit",
        "joint_acceleration",
        "orientation",
        "height",
        "joint_deviation",
    ),
    flavours={
        "task": {
            "linear_tracking": 4.0,
            "angular_tracking": 2.0,
            "healthy": 1.0,
            "air_time": 1.0,
            "torque": -2e-4,
            "vertical_velocity": -2.0,
            "angular_velocity_xy": -0.05,
            "action_rate": -0.001,
            "joint_limit": -0.01,
            "joint_acceleration": -1.25e-9,
            "orientation": -0.4,
            "height": -4.0,
            "joint_deviation": -0.1,
        },
        "recovery": {"healthy": 1.0, "orientation": -0.4, "height": -4.0, "joint_deviation": -0.1},
    },
    floored=True,
    build_model=go1_model.build,
    derived=("actuator_force", "sensordata"),
    memory={"command": (3,), "previous_action": (12,), "air_time": (4,), "last_contact": (4,)},
    prepare=prepare,
    observe=observe,
    distance=distance,
    fallen=fallen,
    reward_terms=reward_terms,
    remember=remember,
    task_start=task_start,
    recovery_start=recovery_start,
)
