"""The vector environment, for every robot: actions, the ends of episodes and what is refused."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from motion import actions_of, assert_identical, every_robot

from safeexplorer.robots import make
from safeexplorer.robots.single import SingleRobot

# -- actions -----------------------------------------------------------------------------------------------


@every_robot
def test_a_nan_action_is_refused_before_the_step(name):
    simulation = make(name, 3)
    simulation.reset(seed=0)
    before = simulation.get_state()
    action = actions_of(simulation, 1)[0]
    action[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"got NaN for robots \[2\]"):
        simulation.step(action)
    for key, value in simulation.get_state().items():
        np.testing.assert_array_equal(value, before[key])


def test_a_wrongly_shaped_action_is_refused():
    simulation = make("half_cheetah", 3)
    simulation.reset(seed=0)
    for shape in ((6,), (3, 5), (2, 6), (3, 6, 1)):
        with pytest.raises(ValueError, match=r"actions must have shape \(3, 6\), got"):
            simulation.step(np.zeros(shape))


@every_robot
def test_actions_are_clipped_to_the_bounds(name):
    wild, clipped = make(name, 2), make(name, 2)
    wild.reset(seed=0)
    clipped.reset(seed=0)
    low, high = wild.model.actuator_ctrlrange.T
    for action in actions_of(wild, 20, noise=5.0):
        action[0, 0] = np.inf
        assert_identical(wild.step(action), clipped.step(np.clip(action, low, high)))


def test_action_noise_is_gaussian_reproducible_and_stays_in_bounds():
    quiet, noisy, again = (make("ant", 4, action_noise=noise) for noise in (0.0, 0.1, 0.1))
    for simulation in (quiet, noisy, again):
        simulation.reset(seed=0)
    spread = []
    for action in 0.2 * actions_of(quiet, 100):
        quiet.step(action)
        assert_identical(noisy.step(action), again.step(action))
        spread.append(noisy._action - np.clip(action, -1, 1))
        assert np.abs(noisy._action).max() <= 1
    assert np.std(spread) == pytest.approx(0.1, rel=0.05)
    assert np.mean(spread) == pytest.approx(0.0, abs=0.01)
    full = make("ant", 1, action_noise=0.5)
    full.reset(seed=0)
    full.step(np.ones((1, 8)))
    assert full._action.max() <= 1


# -- episode ends ------------------------------------------------------------------------------------------


@every_robot
def test_the_time_limit_truncates_and_is_no_fall(name):
    simulation = make(name, 2, max_episode_steps=3)
    simulation.reset(seed=0)
    hold = np.tile(simulation.robot.hold_action(), (2, 1))
    for step in (1, 2, 3):
        _, _, terminated, truncated, info = simulation.step(hold)
        assert not terminated.any()
        assert truncated.all() == (step == 3)
        assert not info["cost"].any()
    assert info["final_info"]["episode_length"].tolist() == [3, 3]
    assert info["episode_length"].tolist() == [0, 0]


def test_a_fall_on_the_last_step_is_both_terminated_and_truncated():
    simulation = make("ant", 1, max_episode_steps=1)
    simulation.reset(seed=0)
    simulation.now.qpos[0, 2] = 3.0
    _, _, terminated, truncated, info = simulation.step(np.zeros((1, 8)))
    assert terminated[0] and truncated[0]
    assert info["cost"][0] == 1


@every_robot
def test_the_limits_are_those_of_the_paper(name):
    assert make(name, 1).max_episode_steps == 1000
    assert make(name, 1, flavour="recovery").max_episode_steps == 250


@every_robot
def test_episode_ends_look_like_gymnasiums_own_same_step_autoreset(name):
    """final_obs and final_info, key by key, against SyncVectorEnv over single robots in the same states."""
    count = 3
    ours = make(name, count, max_episode_steps=9)
    ours.reset(seed=0)
    theirs = SyncVectorEnv(
        [lambda: SingleRobot(name, max_episode_steps=9) for _ in range(count)],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    theirs.reset(seed=0)
    for i, env in enumerate(theirs.envs):
        env.simulation.set_state(ours.get_state(ids=[i]))
        for _ in range(i):  # robots end at different steps
            env.simulation._length[:] += 1
    ours._length += np.arange(count)
    for action in actions_of(ours, 30):
        mine, reference = ours.step(action), theirs.step(action)
        for a, b in zip(mine[:4], reference[:4], strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
        info, expected = mine[4], reference[4]
        assert ("final_obs" in info) == ("final_obs" in expected)
        if "final_obs" not in info:
            continue
        for last, other in zip(info["final_obs"], expected["final_obs"], strict=True):
            assert (last is None) == (other is None)
            if last is not None:
                np.testing.assert_array_equal(last, other, strict=True)
        for mask in ("_final_obs", "_final_info"):
            np.testing.assert_array_equal(info[mask], expected[mask], strict=True)
        assert info["final_info"].keys() == expected["final_info"].keys()
        for key, value in expected["final_info"].items():
            np.testing.assert_array_equal(info["final_info"][key], value, err_msg=key, strict=True)
        for key in ("distance", "episode_return", "episode_length"):
            np.testing.assert_array_equal(info[key], expected[key], err_msg=key)


@every_robot
def test_distance_belongs_to_the_returned_observation(name):
    simulation = make(name, 3, max_episode_steps=4)
    _, info = simulation.reset(seed=0)
    np.testing.assert_array_equal(info["distance"], simulation.distance())
    for action in actions_of(simulation, 10):
        observation, *_, info = simulation.step(action)
        np.testing.assert_array_equal(observation, simulation.observe())
        np.testing.assert_array_equal(info["distance"], simulation.distance())


@every_robot
def test_episode_return_is_the_sum_of_rewards(name):
    simulation = make(name, 2, max_episode_steps=7)
    simulation.reset(seed=0)
    total = np.zeros(2)
    for action in actions_of(simulation, 40):
        _, reward, terminated, truncated, info = simulation.step(action)
        total += reward
        ended = terminated | truncated
        if ended.any():
            np.testing.assert_allclose(info["final_info"]["episode_return"][ended], total[ended])
        total[ended] = 0
        np.testing.assert_allclose(info["episode_return"], total)


def test_without_autoreset_robots_are_reset_by_mask():
    simulation = make("half_cheetah", 3, autoreset=False, max_episode_steps=2)
    assert simulation.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    simulation.reset(seed=0)
    action = np.zeros((3, 6))
    simulation.step(action)
    observation, _, _, truncated, info = simulation.step(action)
    assert truncated.all() and "final_obs" not in info
    after, info = simulation.reset(options={"reset_mask": np.array([False, True, False])})
    assert info["episode_length"].tolist() == [2, 0, 2]
    np.testing.assert_array_equal(after[[0, 2]], observation[[0, 2]])
    assert np.abs(after[1] - observation[1]).max() > 1e-6
    with pytest.raises(ValueError, match="reset_mask"):
        simulation.reset(options={"reset_mask": [1, 0, 1]})


# -- what is refused at construction -----------------------------------------------------------------------


def test_a_wrong_robot_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="no robot 'walker'; known: half_cheetah, ant, go1"):
        make("walker")


def test_a_wrong_flavour_lists_the_known_ones():
    with pytest.raises(ValueError, match="ant has no flavour 'fast'; known: task, recovery, recovery_strong"):
        make("ant", flavour="fast")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs must be an integer >= 1, got 0"),
        ({"num_envs": 2.5}, "num_envs must be an integer >= 1, got 2.5"),
        ({"threads": -1}, "threads must be an integer >= 1, got -1"),
        ({"max_episode_steps": 0}, "max_episode_steps must be an integer >= 1, got 0"),
        ({"action_noise": -0.1}, "action_noise must be a finite number >= 0, got -0.1"),
        ({"action_noise": float("nan")}, "action_noise must be a finite number >= 0, got nan"),
        ({"render_mode": "ascii"}, "no render_mode 'ascii'; known: rgb_array"),
    ],
)
def test_wrong_settings_are_named_with_what_is_allowed(settings, message):
    with pytest.raises(ValueError, match=message):
        make("half_cheetah", **settings)
