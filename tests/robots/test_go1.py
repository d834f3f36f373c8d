"""The Go1: what it observes, what it is paid for and where it starts."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from safeexplorer.robots import go1, make
from safeexplorer.robots.attitude import euler_of, quaternion_of, rotation_of
from safeexplorer.robots.starts import lowest_point

MODEL = go1.ROBOT.build_model()


# -- observation -------------------------------------------------------------------------------------------


def test_the_observation_is_the_papers_49_numbers_in_order():
    simulation = make("go1", 2)
    simulation.reset(seed=0)
    rng = np.random.default_rng(0)
    action = go1.DEFAULT_POSE + 0.1 * rng.standard_normal((2, 12))
    for _ in range(20):
        observation, *_ = simulation.step(action)
    qpos, qvel = simulation.now.qpos, simulation.now.qvel
    turn = Rotation.from_quat(np.roll(qpos[:, 3:7], -1, axis=1))
    yaw, pitch, roll = turn.as_euler("ZYX").T
    expected = np.concatenate(
        (
            2.0 * turn.inv().apply(qvel[:, :3]),
            0.25 * qvel[:, 3:6],  # MuJoCo's angular velocity of a free joint is in the body frame
            qpos[:, 2:3],
            np.stack((roll, pitch, yaw), axis=1),
            2.0 * simulation.now.command,
            qpos[:, 7:] - go1.DEFAULT_POSE,
            0.05 * qvel[:, 6:],
            action,
        ),
        axis=1,
    )
    np.testing.assert_allclose(observation, expected, atol=1e-12)


def test_the_observation_is_clipped_to_100():
    simulation = make("go1", 1)
    simulation.reset(seed=0)
    simulation.now.qvel[0, 0] = 1e6
    assert np.abs(simulation.observe()).max() == 100


def test_the_last_action_is_the_executed_one_and_the_default_pose_at_first():
    simulation = make("go1", 1)
    observation, _ = simulation.reset(seed=0)
    np.testing.assert_array_equal(observation[0, -12:], go1.DEFAULT_POSE)
    observation, *_ = simulation.step(np.full((1, 12), 100.0))
    np.testing.assert_array_equal(observation[0, -12:], MODEL.actuator_ctrlrange[:, 1])


def attitude(q):
    """Rotation matrices and Euler angles of unit quaternions."""
    rotation, euler = np.empty((len(q), 9)), np.empty((len(q), 3))
    rotation_of(q, out=rotation)
    euler_of(rotation.T, out=euler.T)
    return rotation, euler


@given(arrays(float, (3, 4), elements=st.floats(-1, 1)).filter(lambda q: (np.abs(q).max(1) > 0.1).all()))
def test_euler_angles_depend_on_the_orientation_alone(q):
    q = q / np.linalg.norm(q, axis=1, keepdims=True)
    rotation, euler = attitude(q)
    reference = Rotation.from_quat(np.roll(q, -1, axis=1)).as_matrix().reshape(3, 9)
    np.testing.assert_allclose(rotation, reference, atol=1e-12)
    np.testing.assert_array_equal(euler, attitude(-q)[1])
    split = np.cos(euler[:, 1]) > 1e-3  # nose straight up or down, roll and yaw are one angle
    again = [Rotation.from_quat(np.roll(quaternion_of(*angles), -1)).as_matrix().ravel() for angles in euler]
    np.testing.assert_allclose(np.array(again)[split], reference[split], atol=1e-6)


def test_distance_is_finite_and_equal_for_q_and_minus_q_on_1e5_orientations():
    q = np.random.default_rng(0).standard_normal((100_000, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    q[:3] = [1, 0, 0, 0], [0, 0, 0, 1], [np.sqrt(0.5), 0, 0, -np.sqrt(0.5)]  # identity and pure yaw
    distances = []
    for sign in (1, -1):
        pose = go1.Go1s(qpos=np.zeros((len(q), 19)), qvel=np.zeros((len(q), 18)))
        pose.qpos[:, 2], pose.qpos[:, 3:7] = 0.3, sign * q
        go1.prepare(pose)
        distances.append(go1.distance(pose))
    assert np.isfinite(distances).all()
    np.testing.assert_array_equal(*distances)
    np.testing.assert_array_equal(distances[0][:3], 0)


@pytest.mark.parametrize(
    ("z", "roll", "pitch", "falls"),
    [
        (0.3, 0, 0, False),
        (0.22, 0, 0, True),
        (0.221, 0, 0, False),
        (0.65, 0, 0, True),
        (0.3, 59, 0, False),
        (0.3, 61, 0, True),
        (0.3, 0, -61, True),
        (0.3, 50, 50, False),  # each angle on its own
    ],
)
def test_falls_by_height_or_by_60_degrees(z, roll, pitch, falls):
    pose = go1.Go1s(qpos=np.zeros((1, 19)), qvel=np.zeros((1, 18)))
    pose.qpos[0, 2], pose.qpos[0, 3:7] = z, quaternion_of(*np.deg2rad([roll, pitch, 170.0]))
    go1.prepare(pose)
    assert go1.fallen(pose)[0] == falls


# -- reward ------------------------------------------------------------------------------------------------


def test_every_reward_term_is_its_formula():
    simulation = make("go1", 3, autoreset=False)
    simulation.reset(seed=0)
    rng = np.random.default_rng(0)
    previous = np.tile(go1.DEFAULT_POSE, (3, 1))
    for _ in range(30):
        before = simulation.now.qvel[:, 6:].copy()
        action = go1.DEFAULT_POSE + 0.2 * rng.standard_normal((3, 12))
        *_, info = simulation.step(action)
        qpos, qvel = simulation.now.qpos, simulation.now.qvel
        turn = Rotation.from_quat(np.roll(qpos[:, 3:7], -1, axis=1))
        v, w, command = turn.inv().apply(qvel[:, :3]), qvel[:, 3:6], simulation.now.command
        gravity = turn.inv().apply((0, 0, -1))
        low, high = np.array([(-0.7767, 0.7767), (-0.42665, 4.24165), (-2.7215, -0.9845)] * 4).T
        joints = qpos[:, 7:]
        expected = {
            "linear_tracking": 4.0 * np.exp(-((command[:, :2] - v[:, :2]) ** 2).sum(1) / 0.25),
            "angular_tracking": 2.0 * np.exp(-((command[:, 2] - w[:, 2]) ** 2) / 0.25),
            "healthy": 1.0 * (info["cost"] == 0),
            "torque": -2e-4 * (simulation.now.actuator_force**2).sum(1),
            "vertical_velocity": -2.0 * v[:, 2] ** 2,
            "angular_velocity_xy": -0.05 * (w[:, :2] ** 2).sum(1),
            "action_rate": -0.001 * ((action - previous) ** 2).sum(1),
            "joint_limit": -0.01 * (np.maximum(low - joints, 0) + np.maximum(joints - high, 0)).sum(1),
            "joint_acceleration": -1.25e-9 * (((qvel[:, 6:] - before) / 0.01) ** 2).sum(1),
            "orientation": -0.4 * (gravity[:, :2] ** 2).sum(1),
            "height": -4.0 * np.abs(qpos[:, 2] - 0.3),
            "joint_deviation": -0.1 * ((joints - go1.DEFAULT_POSE) ** 2).sum(1),
        }
        for term, value in expected.items():
            np.testing.assert_allclose(info[f"reward_{term}"], value, atol=1e-12, err_msg=term)
        previous = action
    assert set(expected) | {"air_time"} == set(simulation.robot.flavours["task"])


def air_time_after(contacts, command=(0.5, 0.0, 0.0)):
    """The air-time reward of each step of one robot whose first foot touches as given, the others always."""
    now = go1.Go1s(
        qpos=np.zeros((1, 19)),
        air_time=np.zeros((1, 4)),
        last_contact=np.zeros((1, 4)),
        previous_action=np.zeros((1, 12)),
        action=np.zeros((1, 12)),
        command=np.array([command]),
    )
    rewards = []
    for touches in contacts:
        now.sensordata = np.array([[5.0 * touches, 30.0, 30.0, 30.0]])  # N
        rewards.append(go1._air_time(now)[0])
        go1.remember(now)
    return rewards


def test_air_time_pays_on_landing_for_steps_longer_than_half_a_second():
    # Touching, then 62 steps without contact; the first of these still counts as touching (contact filter), so the
    # foot is in the air for 61 steps = 0.61 s before it lands: 0.61 + 0.01 - 0.5 = 0.12.
    rewards = air_time_after([True] * 3 + [False] * 62 + [True] * 3)
    assert rewards[65] == pytest.approx(0.12)
    assert np.count_nonzero(rewards) == 1


def test_air_time_charges_short_steps_and_ignores_slow_commands():
    # 10 steps in the air after the filtered one: 0.10 + 0.01 - 0.5 = -0.39
    assert air_time_after([True] + [False] * 11 + [True])[-1] == pytest.approx(-0.39)
    assert not np.any(air_time_after([True] + [False] * 11 + [True], command=(0.05, 0.05, 0.5)))


def test_the_reward_is_never_negative_and_zero_on_a_fall():
    simulation = make("go1", 4)
    simulation.reset(seed=0)
    rng = np.random.default_rng(0)
    low, high = MODEL.actuator_ctrlrange.T
    rewards, falls = [], []
    for _ in range(200):
        _, reward, terminated, _, _ = simulation.step(rng.uniform(low, high, (4, 12)))
        rewards.append(reward)
        falls.append(terminated)
    rewards, falls = np.array(rewards), np.array(falls)
    assert falls.sum() > 10
    assert rewards.min() == 0
    assert not rewards[falls].any()


def test_recovery_pays_for_health_and_pose_alone():
    simulation = make("go1", 4, flavour="recovery", autoreset=False)
    simulation.reset(seed=0)
    _, reward, terminated, _, info = simulation.step(np.tile(go1.DEFAULT_POSE, (4, 1)))
    paid = {"healthy", "orientation", "height", "joint_deviation"}
    for term in set(simulation.robot.terms) - paid:
        assert not info[f"reward_{term}"].any()
    total = sum(info[f"reward_{term}"] for term in paid)
    np.testing.assert_allclose(reward, np.where(terminated, 0, np.maximum(total, 0)))


# -- starts ------------------------------------------------------------------------------------------------


def test_task_starts_lie_inside_the_first_safe_region():
    simulation = make("go1", 500)
    _, info = simulation.reset(seed=0)
    assert info["distance"].max() <= simulation.robot.initial_radius
    assert not simulation.now.qvel.any()
    command = simulation.now.command
    assert np.abs(command).max() <= 0.5
    assert command.std(axis=0) == pytest.approx(1 / np.sqrt(12), rel=0.1)  # U(-0.5, 0.5)


def test_the_command_stays_for_an_episode_and_changes_with_the_next():
    simulation = make("go1", 2, max_episode_steps=5)
    simulation.reset(seed=0)
    hold = np.tile(go1.DEFAULT_POSE, (2, 1))
    first = simulation.now.command.copy()
    for _ in range(4):
        simulation.step(hold)
    np.testing.assert_array_equal(simulation.now.command, first)
    simulation.step(hold)
    assert (simulation.now.command != first).all()


def test_recovery_starts_are_wild_healthy_and_above_the_floor():
    simulation = make("go1", 500, flavour="recovery")
    simulation.reset(seed=0)
    qpos = simulation.now.qpos
    data = mujoco.MjData(MODEL)
    simulation.robot.prepare(simulation.now)
    assert not go1.fallen(simulation.now).any()
    assert min(lowest_point(MODEL, data, pose) for pose in qpos) > -1e-9
    low, high = MODEL.jnt_range[1:].T
    assert ((qpos[:, 7:] >= low) & (qpos[:, 7:] <= high)).all()
    assert (np.ptp(qpos[:, 7:], axis=0) / (high - low)).min() > 0.97
    roll, pitch, yaw = simulation.now.euler.T
    assert max(np.abs(roll).max(), np.abs(pitch).max()) <= np.pi / 10 + 1e-9
    assert np.ptp(yaw) > 6
    assert qpos[:, 2].min() < 0.25
    assert np.abs(simulation.now.qvel).max() < 0.6


def test_the_lowest_point_agrees_with_the_engines_contacts():
    """Lowered until the lowest point is 1 mm under the floor, something touches; raised 2 cm, nothing does."""
    data = mujoco.MjData(MODEL)
    simulation = make("go1", 30, flavour="recovery")
    simulation.reset(seed=1)
    floor = MODEL.geom("floor").id

    def touches(pose):
        data.qpos[:] = pose
        mujoco.mj_forward(MODEL, data)
        return any(floor in pair for pair in data.contact.geom[: data.ncon])

    for pose in simulation.now.qpos.copy():
        pose[2] -= lowest_point(MODEL, data, pose) + 0.001
        assert touches(pose)
        pose[2] += 0.02
        assert not touches(pose)
