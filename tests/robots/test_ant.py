"""Ant against stock Ant-v5 without contact forces in the observation, and against the paper's text."""

import mujoco
import numpy as np
import pytest
from stock import random_actions, stock_in_state

from safeexplorer.robots import ant, make
from safeexplorer.robots.starts import lowest_point


def bodies(z, quaternions):
    quaternions = np.atleast_2d(quaternions)
    qpos = np.zeros((len(quaternions), 15))
    qpos[:, 2], qpos[:, 3:7] = z, quaternions
    pose = ant.Ants(qpos=qpos)
    return pose


def about(axis, degrees):
    """The quaternion w x y z of a turn."""
    half = np.deg2rad(degrees) / 2
    return np.concatenate(([np.cos(half)], np.sin(half) * np.asarray(axis, float)))


def test_equals_stock_for_1000_random_steps():
    ours = make("ant", 1, autoreset=False, max_episode_steps=2000)
    ours.reset(seed=0)
    stock = stock_in_state("Ant-v5", ours, include_cfrc_ext_in_observation=False)
    contact = []
    for action in random_actions(8, 1000):
        observation, reward, _, _, info = ours.step(action[None])
        expected, stock_reward, _, _, stock_info = stock.step(action)
        np.testing.assert_allclose(observation[0], expected, rtol=0, atol=1e-9)
        for term in ("reward_forward", "reward_ctrl", "reward_contact"):
            assert info[term][0] == pytest.approx(stock_info[term], abs=1e-9), term
        # Stock pays its bonus only when healthy by its own bounds; ours always.
        bonus = 1.0 - stock_info["reward_survive"]
        assert reward[0] == pytest.approx(stock_reward + bonus, abs=1e-9)
        contact.append(info["reward_contact"][0])
    assert np.min(contact) < -1e-3 and np.mean(contact) < -1e-4, "the contact cost must really be computed"


def test_a_batch_leaves_the_contact_forces_at_zero_so_they_are_computed():
    """The trap: the batch's own cfrc_ext is zero in a model without force sensors."""
    simulation = make("ant", 2)
    simulation.reset(seed=0)
    for _ in range(40):
        *_, info = simulation.step(np.zeros((2, 8)))
    contacts, forces = simulation.batch.bind("ncon"), simulation.batch.bind("cfrc_ext")
    simulation.batch.step()
    assert (contacts > 0).all()
    assert not forces.any()
    assert (np.abs(simulation.now.cfrc_ext).max(axis=(1, 2)) > 0.1).all()
    assert (info["reward_contact"] < 0).all()


@pytest.mark.parametrize(
    ("quaternion", "expected"),
    [
        (about((1, 0, 0), 0), 0.0),  # the identity has no axis
        (about((1, 0, 0), 1), 0.00015),
        (about((1, 0, 0), 30), 0.00457),
        (about((0, 1, 0), 30), 0.00457),
        (about((1, 0, 0), 60), 0.00914),
        (about((1, 0, 0), 90), 0.0137),
        (about((1, 0, 0), 180), 0.0274),
        (about((0, 0, 1), 90), 0.0),
        (about((0, 0, 1), -90), 0.0274),  # the paper's formula charges negative yaw
        (about((0, 0, 1), 30), 0.0),
    ],
)
def test_tilt_is_the_papers_formula_where_that_is_defined(quaternion, expected):
    assert ant.tilt(*quaternion[:, None])[0] == pytest.approx(expected, abs=6e-5)


def test_tilt_equals_the_literal_formula_on_random_orientations():
    q = np.random.default_rng(0).standard_normal((10_000, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    q *= np.sign(q[:, :1])  # w > 0
    phi = 2 * np.arccos(q[:, 0])
    axis_z = q[:, 3] / np.sqrt(1 - q[:, 0] ** 2)
    literal = np.pi / 180 * np.arccos(axis_z) * phi / np.pi
    np.testing.assert_allclose(ant.tilt(*q.T), literal, rtol=1e-6)
    np.testing.assert_allclose(ant.tilt(*3.7 * q.T), literal, rtol=1e-6)  # scale does not matter


def test_distance_is_finite_and_a_function_of_the_orientation():
    rng = np.random.default_rng(0)
    random = rng.standard_normal((100_000, 4))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    yaw = np.array([about((0, 0, 1), angle) for angle in np.linspace(-360, 360, 1441)])
    half_turns = np.concatenate((np.zeros((50, 1)), random[:50, 1:]), axis=1)
    special = np.array([[1, 0, 0, 0], [1 + 1e-16, 0, 0, 0], [1, 1e-9, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
    for q in (random, yaw, half_turns, special):
        distance = ant.distance(bodies(0.75, q))
        assert np.isfinite(distance).all()
        np.testing.assert_array_equal(distance, ant.distance(bodies(0.75, -q)))
        assert distance.max() <= 0.0549


@pytest.mark.parametrize(
    ("z", "falls"), [(0.75, False), (0.31, False), (0.3, True), (1.5, True), (1.49, False)]
)
def test_falls_outside_its_healthy_heights(z, falls):
    assert ant.fallen(bodies(z, about((1, 0, 0), 0)))[0] == falls


def test_the_healthy_bonus_is_paid_on_the_terminal_step_too():
    simulation = make("ant", 1)
    simulation.reset(seed=0)
    simulation.now.qpos[0, 2] = 3.0
    _, reward, terminated, _, info = simulation.step(np.zeros((1, 8)))
    assert terminated[0]
    assert info["reward_survive"][0] == 1.0
    assert reward[0] == pytest.approx(1.0 + info["reward_forward"][0])


@pytest.mark.parametrize("flavour", ["recovery", "recovery_strong"])
def test_recovery_flavours_reward_what_they_say(flavour):
    simulation = make("ant", 1, flavour=flavour)
    simulation.reset(seed=0)
    _, reward, _, _, info = simulation.step(np.full((1, 8), 0.5))  # |a|^2 = 2
    height = abs(simulation.now.qpos[0, 2] - 0.75)
    expected = {
        "recovery": 1.0 - 0.5 * 2 + info["reward_contact"][0],
        "recovery_strong": 1.0 - 2 * height - 0.05 * 2,
    }
    assert reward[0] == pytest.approx(expected[flavour])
    assert info["reward_forward"][0] == 0


def test_task_starts_have_unit_quaternions():
    simulation = make("ant", 200)
    simulation.reset(seed=0)
    np.testing.assert_allclose(np.linalg.norm(simulation.now.qpos[:, 3:7], axis=1), 1)
    assert np.median(simulation.distance()) < 0.06


def test_recovery_starts_are_wild_healthy_face_up_and_above_the_floor():
    simulation = make("ant", 500, flavour="recovery")
    simulation.reset(seed=0)
    qpos, model = simulation.now.qpos, simulation.model
    data = mujoco.MjData(model)
    assert not ant.fallen(simulation.now).any()
    assert min(lowest_point(model, data, pose) for pose in qpos) > -1e-9
    low, high = model.jnt_range[1:].T
    assert ((qpos[:, 7:] >= low) & (qpos[:, 7:] <= high)).all()
    assert (np.ptp(qpos[:, 7:], axis=0) / (high - low)).min() > 0.97
    np.testing.assert_allclose(np.linalg.norm(qpos[:, 3:7], axis=1), 1)
    up = 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2)
    assert up.min() >= 0 and up.min() < 0.1  # up to lying on the side
    assert qpos[:, 2].min() < 0.5 and qpos[:, 2].max() > 0.9


def test_passive_it_rests_at_0_3825():
    simulation = make("ant", 1, autoreset=False)
    simulation.reset(seed=0)
    for _ in range(200):
        simulation.step(np.zeros((1, 8)))
    assert simulation.now.qpos[0, 2] == pytest.approx(0.3825, abs=0.002)
