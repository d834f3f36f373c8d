"""HalfCheetah against stock HalfCheetah-v5 and against the paper's text."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stock import random_actions, stock_in_state

from safeexplorer.robots import half_cheetah, make
from safeexplorer.robots.models import gymnasium_model
from safeexplorer.robots.starts import lowest_point


def bodies(z, pitch):
    qpos = np.zeros((1, 9))
    qpos[0, 1:3] = z, pitch
    return half_cheetah.HalfCheetahs(qpos=qpos)


def test_equals_stock_for_1000_random_steps(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the stock model's deprecation notice goes into a log file there
    ours = make("half_cheetah", 1, autoreset=False, max_episode_steps=2000)
    ours.reset(seed=0)
    stock = stock_in_state("HalfCheetah-v5", ours)
    for action in random_actions(6, 1000):
        observation, reward, _, _, info = ours.step(action[None])
        expected, stock_reward, _, _, stock_info = stock.step(action)
        np.testing.assert_allclose(observation[0], expected, rtol=0, atol=1e-9)
        assert reward[0] == pytest.approx(stock_reward - info["cost"][0], abs=1e-9)
        for term in ("reward_forward", "reward_ctrl"):
            assert info[term][0] == pytest.approx(stock_info[term], abs=1e-9)


def test_the_model_is_gymnasiums_bit_for_bit(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    stock = stock_in_state("HalfCheetah-v5", make("half_cheetah", 1)).model
    ours = gymnasium_model("half_cheetah.xml")
    for field in ("body_mass", "body_inertia", "dof_armature", "jnt_stiffness", "jnt_range", "actuator_gear"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(stock, field), err_msg=field)
    assert ours.body_mass.sum() == pytest.approx(14)


@pytest.mark.parametrize(
    ("z", "pitch", "falls"),
    [
        (0, 0, False),
        (0.5, 1.57, False),  # the bounds are healthy
        (-0.5, -1.57, False),
        (0.501, 0, True),
        (-0.501, 0, True),
        (0, 1.571, True),
        (0, -1.571, True),
    ],
)
def test_falls_outside_half_a_metre_or_a_quarter_turn(z, pitch, falls):
    assert half_cheetah.fallen(bodies(z, pitch))[0] == falls


@given(st.floats(-1, 1), st.floats(-4, 4))
def test_distance_is_the_norm_of_height_and_pitch(z, pitch):
    assert half_cheetah.distance(bodies(z, pitch))[0] == pytest.approx(np.sqrt(z**2 + pitch**2))


def test_a_fall_costs_one_on_top_of_the_normal_reward():
    simulation = make("half_cheetah", 1)
    simulation.reset(seed=0)
    simulation.now.qpos[0, 1] = 2.0
    action = np.full((1, 6), 0.5)
    _, reward, terminated, _, info = simulation.step(action)
    forward = info["reward_forward"][0]
    assert terminated[0]
    assert abs(forward) > 1e-6
    # -0.1 * 6 * 0.5^2 = -0.15
    assert reward[0] == pytest.approx(forward - 0.15 - 1.0)


def test_recovery_pays_for_standing_close_and_charges_effort_and_falls():
    simulation = make("half_cheetah", 2, flavour="recovery")
    simulation.reset(seed=0)
    simulation.now.qpos[1, 1] = 2.0
    _, reward, terminated, _, info = simulation.step(np.full((2, 6), 0.5))
    assert terminated.tolist() == [False, True]
    distance = np.array([info["distance"][0], info["final_info"]["distance"][1]])
    # healthy 1 - D - 0.15; fallen 0 - D - 0.15 - 1
    np.testing.assert_allclose(reward, np.array([0.85, -1.15]) - distance)
    assert not info["reward_forward"].any()


def test_passive_it_rests_0_142_from_nominal():
    simulation = make("half_cheetah", 1, autoreset=False)
    simulation.reset(seed=0)
    for _ in range(200):
        *_, info = simulation.step(np.zeros((1, 6)))
    assert info["distance"][0] == pytest.approx(0.142, abs=0.002)


def test_task_starts_carry_the_stock_noise():
    simulation = make("half_cheetah", 500)
    simulation.reset(seed=0)
    assert np.abs(simulation.now.qpos).max() <= 0.1
    assert simulation.now.qpos.std() == pytest.approx(0.2 / np.sqrt(12), rel=0.05)  # U(-0.1, 0.1)
    assert simulation.now.qvel.std() == pytest.approx(0.1, rel=0.05)


def test_recovery_starts_are_wild_healthy_and_above_the_floor():
    simulation = make("half_cheetah", 500, flavour="recovery")
    simulation.reset(seed=0)
    qpos, model = simulation.now.qpos, simulation.model
    data = mujoco.MjData(model)
    assert not half_cheetah.fallen(simulation.now).any()
    assert min(lowest_point(model, data, pose) for pose in qpos) > -1e-9
    low, high = model.jnt_range[3:].T
    assert ((qpos[:, 3:] >= low) & (qpos[:, 3:] <= high)).all()
    spread = np.ptp(qpos[:, 3:], axis=0) / (high - low)
    assert spread.min() > 0.97
    assert np.ptp(qpos[:, 2]) > 2.0  # pitch over most of +-1.2
    assert np.abs(simulation.now.qvel).max() < 0.6
