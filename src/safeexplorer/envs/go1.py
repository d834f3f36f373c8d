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

JOINT_LOW, JOINT_HIGH = np.array([span for _, span, _ in go1_model.JOINTS.values()] * 4).T
JOINT_CENTRE = (JOINT_LOW + JOINT_HIGH) / 2
SOFT_REACH = 0.9 * (JOINT_HIGH - JOINT_LOW) / 2  # the joint-limit cost begins at 90% of the range


def prepare(now: Bodies) -> None:
    """Base rotation R [E, 9], roll pitch yaw (intrinsic z-y-x) [E, 3], the velocity R^T v in the base frame, and
    the feet that touch the floor (now, or now or at the step before) [E, 4]."""
    now.rotation = rotation = _rotation(now.qpos[:, 3:7])
    now.euler = _euler(rotation)
    now.velocity = np.vecmat(now.qvel[:, :3], rotation.reshape(-1, 3, 3))
    now.contact = now.sensordata > CONTACT
    now.landed = now.contact | (now.last_contact > 0)


# Entry by entry R = I + s_1 2 q_i q_j + s_2 2 q_k q_l; the products of w x y z are numbered 4 i + j.
_PRODUCTS = np.array([10, 6, 7, 6, 5, 11, 7, 11, 5] + [15, 3, 2, 3, 15, 1, 2, 1, 10])
_SIGNS = 2.0 * np.array([-1, 1, 1, 1, -1, 1, 1, 1, -1] + [-1, -1, 1, 1, -1, -1, -1, 1, -1])
_IDENTITY = np.eye(3).ravel()


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrices of unit quaternions w x y z, row by row, [E, 9]."""
    products = (quaternion[:, :, None] * quaternion[:, None, :]).reshape(-1, 16)
    parts = products.take(_PRODUCTS, 1)
    parts *= _SIGNS
    return _IDENTITY + parts[:, :9] + parts[:, 9:]


def _euler(rotation: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw of R = Rz(yaw) Ry(pitch) Rx(roll), [E, 3]."""
    r00, r10, r20, r21, r22 = rotation.take((0, 3, 6, 7, 8), 1).T
    euler = np.empty((len(rotation), 3))
    np.arctan2(r21, r22, out=euler[:, 0])
    np.arctan2(-r20, np.hypot(r21, r22), out=euler[:, 1])
    np.arctan2(r10, r00, out=euler[:, 2])
    return euler


_SCALE = np.repeat([2.0, 0.25, 1.0, 1.0, 2.0, 1.0, 0.05, 1.0], [3, 3, 1, 3, 3, 12, 12, 12])
_OFFSET = np.concatenate((np.zeros(13), DEFAULT_POSE, np.zeros(24)))


def observe(now: Bodies) -> np.ndarray:
    """(2 v, 0.25 w, z, roll pitch yaw, 2 command, q - q0, 0.05 dq/dt, previous action), [E, 49], clipped to +-100."""
    qpos, qvel = now.qpos, now.qvel
    parts = (
        now.velocity,
        qvel[:, 3:6],
        qpos[:, 2:3],
        now.euler,
        now.command,
        qpos[:, 7:],
        qvel[:, 6:],
        now.previous_action,
    )
    observation = np.concatenate(parts, axis=1)
    observation *= _SCALE
    observation -= _OFFSET
    np.minimum(observation, OBSERVATION_BOUND, out=observation)
    return np.maximum(observation, -OBSERVATION_BOUND, out=observation)


def distance(now: Bodies) -> np.ndarray:
    """D = |(z - 0.3, roll, pitch)|."""
    lean = np.hypot(now.euler[:, 0], now.euler[:, 1])
    return np.hypot(now.qpos[:, 2] - NOMINAL_HEIGHT, lean)


def fallen(now: Bodies) -> np.ndarray:
    """z outside (0.22, 0.65), or |roll| or |pitch| above 60 degrees."""
    height = now.qpos[:, 2]
    upright = np.abs(now.euler) <= MAX_TILT
    return ~((height > HEALTHY_HEIGHT[0]) & (height < HEALTHY_HEIGHT[1]) & upright[:, 0] & upright[:, 1])


# Terms that are squared errors, in the order of the errors in `_errors`, and how many errors make up each.
_SQUARED = {
    "linear_tracking": 2,
    "vertical_velocity": 1,
    "angular_velocity_xy": 2,
    "angular_tracking": 1,
    "joint_acceleration": 12,
    "joint_deviation": 12,
    "action_rate": 12,
    "orientation": 2,
    "torque": 12,
}
_TRACKING = slice(0, 4, 3)  # exp(-error / sigma)
_ACCELERATION = 4
_SQUARED_STARTS = np.cumsum([0, *_SQUARED.values()])[:-1]
TERMS = (*_SQUARED, "joint_limit", "height", "air_time", "healthy")


def _errors(now: Bodies, before: Bodies, action: np.ndarray) -> np.ndarray:
    """What is squared, [E, 56]: (v, w, dq/dt, q, a, gravity xy in the base frame, torque) minus its targets."""
    count = len(action)
    actual = (
        now.velocity,
        now.qvel[:, 3:],
        now.qpos[:, 7:],
        action,
        now.rotation[:, 6:8],
        now.actuator_force,
    )
    targets = (
        now.command[:, :2],
        np.zeros((count, 3)),
        now.command[:, 2:],
        before.qvel[:, 6:],
        np.broadcast_to(DEFAULT_POSE, (count, 12)),
        now.previous_action,
        np.zeros((count, 14)),
    )
    return np.concatenate(actual, axis=1) - np.concatenate(targets, axis=1)


def reward_terms(now: Bodies, before: Bodies, action, fallen, distance) -> np.ndarray:
    terms = np.empty((len(action), len(TERMS)))
    errors = _errors(now, before, action)
    np.square(errors, out=errors)
    np.add.reduceat(errors, _SQUARED_STARTS, axis=1, out=terms[:, :9])
    terms[:, _TRACKING] = np.exp(terms[:, _TRACKING] / -SIGMA)
    terms[:, _ACCELERATION] /= DT**2
    excess = np.abs(now.qpos[:, 7:] - JOINT_CENTRE) - SOFT_REACH
    terms[:, 9] = np.add.reduce(np.maximum(excess, 0.0), 1)
    terms[:, 10] = np.abs(now.qpos[:, 2] - NOMINAL_HEIGHT)
    terms[:, 11] = _air_time(now)
    terms[:, 12] = ~fallen
    return terms


def _air_time(now: Bodies) -> np.ndarray:
    """sum over feet that just landed of (air time - 0.5 s), for commands above 0.1 m/s."""
    landing = (now.air_time > 0) & now.landed
    walking = np.hypot(now.command[:, 0], now.command[:, 1]) > MIN_COMMAND
    return np.vecdot(now.air_time + (DT - AIR_TIME), landing) * walking


def remember(now: Bodies, action: np.ndarray) -> None:
    now.air_time += DT
    now.air_time *= ~now.landed
    now.last_contact[:] = now.contact
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
    pose.euler = _euler(_rotation(pose.qpos[:, 3:7]))
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
    terms=TERMS,
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
    hold=tuple(DEFAULT_POSE),
    camera={"distance": 1.25, "azimuth": 130.0, "elevation": -18.0},
    build_model=go1_model.build,
    build_picture=lambda: go1_model.build(dressed=True),
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
