"""The vector environment, for every robot: what a step returns, what a state is, what is refused."""

import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from safeexplorer.envs import ROBOTS, get_robot, make
from safeexplorer.envs.single import SingleRobot

every_robot = pytest.mark.parametrize("name", ROBOTS)
every_flavour = pytest.mark.parametrize(
    ("name", "flavour"), [(name, flavour) for name, robot in ROBOTS.items() for flavour in robot.flavours]
)


def actions_of(simulation, steps, seed=0, noise=0.5):
    """Actions around the holding one, [steps, E, m]."""
    robot = simulation.robot
    shape = (steps, simulation.num_envs, robot.action_size)
    return robot.hold_action() + noise * np.random.default_rng(seed).standard_normal(shape)


def flatten(outcome):
    """All numbers of one step by name, final observations and infos included."""
    observation, reward, terminated, truncated, info = outcome
    numbers = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated}
    numbers |= {f"info {key}": value for key, value in info.items() if key not in ("final_obs", "final_info")}
    numbers |= {f"final {key}": value for key, value in info.get("final_info", {}).items()}
    for i, last in enumerate(info.get("final_obs", ())):
        numbers[f"final_obs {i}"] = last if last is not None else np.zeros(0)
    return numbers


def assert_identical(one, two):
    """Bit for bit."""
    one, two = flatten(one), flatten(two)
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key], err_msg=key, strict=True)


# -- spaces, seeds, fresh arrays ---------------------------------------------------------------------------


@every_flavour
def test_observations_lie_in_the_declared_spaces(name, flavour):
    simulation = make(name, 3, flavour=flavour)
    observation, info = simulation.reset(seed=1)
    robot = simulation.robot
    assert simulation.single_observation_space.shape == (robot.observation_size,)
    assert simulation.single_action_space.shape == (robot.action_size,)
    assert simulation.single_action_space.dtype == np.float32
    assert simulation.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert simulation.observation_space.contains(observation)
    assert info["distance"].shape == (3,)
    observation, *_ = simulation.step(actions_of(simulation, 1)[0])
    assert simulation.observation_space.contains(observation)
    assert simulation.model.nu == robot.action_size


@every_flavour
def test_a_seed_decides_everything_and_seeds_differ(name, flavour):
    first, second, other = (make(name, 2, flavour=flavour) for _ in range(3))
    starts = [sim.reset(seed=seed)[0] for sim, seed in ((first, 5), (second, 5), (other, 6))]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert np.abs(starts[0] - starts[2]).max() > 1e-3
    assert np.abs(starts[0][0] - starts[0][1]).max() > 1e-3
    for action in actions_of(first, 30):
        assert_identical(first.step(action), second.step(action))


@every_robot
def test_a_robots_stream_does_not_depend_on_how_many_others_there_are(name):
    few, many = make(name, 2), make(name, 5)
    np.testing.assert_array_equal(few.reset(seed=3)[0], many.reset(seed=3)[0][:2])


@every_robot
def test_returned_arrays_may_be_kept(name):
    simulation = make(name, 2, max_episode_steps=5)
    simulation.reset(seed=0)
    kept = []
    for action in actions_of(simulation, 12):
        outcome = simulation.step(action)
        kept.append((outcome, {key: value.copy() for key, value in flatten(outcome).items()}))
    for outcome, copy in kept:
        for key, value in flatten(outcome).items():
            np.testing.assert_array_equal(value, copy[key], err_msg=key)


@every_flavour
def test_the_reward_is_the_sum_of_its_weighted_terms(name, flavour):
    simulation = make(name, 4, flavour=flavour)
    simulation.reset(seed=0)
    for action in actions_of(simulation, 50):
        _, reward, terminated, _, info = simulation.step(action)
        total = sum(info[f"reward_{term}"] for term in simulation.robot.terms)
        if simulation.robot.floored:
            total = np.where(terminated, 0.0, np.maximum(total, 0.0))
        np.testing.assert_allclose(reward, total, atol=1e-12)


@every_flavour
def test_a_flavour_weighs_only_terms_that_exist(name, flavour):
    robot = get_robot(name)
    assert set(robot.flavours[flavour]) <= set(robot.terms)
    assert {"task", "recovery"} <= set(robot.flavours)


# -- threads and states ------------------------------------------------------------------------------------


@every_flavour
def test_one_thread_and_two_give_the_same_bits(name, flavour):
    one, two = make(name, 5, flavour=flavour, threads=1), make(name, 5, flavour=flavour, threads=2)
    np.testing.assert_array_equal(one.reset(seed=0)[0], two.reset(seed=0)[0])
    for action in actions_of(one, 150):
        assert_identical(one.step(action), two.step(action))


@every_robot
def test_stepping_on_from_a_restored_state_is_bit_identical_for_500_steps(name):
    original = make(name, 3, action_noise=0.05)
    original.reset(seed=0)
    for action in actions_of(original, 37, seed=1):
        original.step(action)
    state = original.get_state()
    restored = make(name, 3, action_noise=0.05)
    restored.set_state(state)
    np.testing.assert_array_equal(original.observe(), restored.observe())
    np.testing.assert_array_equal(original.distance(), restored.distance())
    falls = 0
    for action in actions_of(original, 500, seed=2):
        outcome = original.step(action)
        assert_identical(outcome, restored.step(action))
        falls += outcome[2].sum()
    assert falls, "the comparison should cross episode ends"


@every_robot
def test_a_saved_state_is_not_touched_by_stepping_on(name):
    simulation = make(name, 2)
    simulation.reset(seed=0)
    state = simulation.get_state()
    copy = {key: value.copy() for key, value in state.items()}
    for action in actions_of(simulation, 10):
        simulation.step(action)
    for key, value in state.items():
        np.testing.assert_array_equal(value, copy[key])
        assert value.dtype.kind in "fiu"
        assert len(value) == 2


@every_robot
def test_robots_move_to_a_batch_of_another_size(name):
    here, there = make(name, 3), make(name, 7)
    here.reset(seed=0)
    there.reset(seed=1)
    for action in actions_of(here, 25):
        here.step(action)
    there.set_state(here.get_state(ids=[2, 0]), ids=[3, 5])
    for action in actions_of(there, 60):
        mine = here.step(action[[5, 1, 3]])
        theirs = there.step(action)
        for key, value in flatten(mine).items():
            if not key.startswith("final"):
                np.testing.assert_array_equal(value[[2, 0]], flatten(theirs)[key][[3, 5]], err_msg=key)


def test_qpos_and_qvel_alone_would_not_resume_exactly():
    """The reason why the whole integration state is stored: the solver's warm start is part of it."""
    original, restored = make("go1", 2, autoreset=False), make("go1", 2, autoreset=False)
    original.reset(seed=0)
    for action in actions_of(original, 40):
        original.step(action)
    state = original.get_state()
    nq_nv = 1 + original.model.nq + original.model.nv
    state["physics"][:, nq_nv:] = 0.0
    restored.set_state(state)
    gaps = [
        np.abs(original.step(a)[0] - restored.step(a)[0]).max() for a in actions_of(original, 200, seed=9)
    ]
    assert max(gaps) > 0


def test_a_state_of_the_wrong_shape_is_refused():
    simulation = make("go1", 2)
    state = simulation.get_state()
    with pytest.raises(ValueError, match=r"state\['command'\] must have shape \(2, 3\), got \(1, 3\)"):
        simulation.set_state(state | {"command": state["command"][:1]})
    with pytest.raises(ValueError, match=r"state\['rng'\] must have shape \(2, 6\), got nothing"):
        simulation.set_state({key: value for key, value in state.items() if key != "rng"})
    with pytest.raises(ValueError, match=r"must have shape \(1, "):
        simulation.set_state(state, ids=[0])


# -- divergence --------------------------------------------------------------------------------------------


def push_forward(simulation):
    """A force of 1e14 on the root's first axis: the blow-up happens inside the step."""
    simulation.batch.bind("qfrc_applied")[1, 0] = 1e14


def plant_speed(simulation):
    simulation.now.qvel[1, :] = 1e12


def plant_nan(simulation):
    simulation.now.qpos[1, 0] = np.nan


@every_robot
@pytest.mark.parametrize("plant", [push_forward, plant_speed, plant_nan])
def test_a_diverged_simulation_is_a_fall_and_never_a_silent_reset(name, plant, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # MuJoCo logs the blow-up into the working folder
    diverging, calm = make(name, 3), make(name, 3)
    for simulation in (diverging, calm):
        simulation.reset(seed=0)
        for action in actions_of(simulation, 3, noise=0.1):
            simulation.step(action)
    plant(diverging)
    action = actions_of(calm, 1, seed=4, noise=0.1)[0]
    observation, reward, terminated, truncated, info = diverging.step(action)
    undisturbed = calm.step(action)

    assert terminated.tolist() == [False, True, False]
    assert info["cost"].tolist() == [0, 1, 0]
    assert info["simulation_error"].tolist() == [False, True, False]
    assert diverging.simulation_errors == 1
    assert not truncated.any()
    for key, value in flatten((observation, reward, terminated, truncated, info)).items():
        assert np.isfinite(value).all(), key
    assert np.abs(reward[1]) < 100
    assert info["final_info"]["simulation_error"].tolist() == [False, True, False]
    assert info["episode_length"].tolist() == [4, 0, 4]
    np.testing.assert_array_equal(observation[[0, 2]], undisturbed[0][[0, 2]])

    *_, info = diverging.step(action)
    assert not info["simulation_error"].any()
    assert diverging.simulation_errors == 1


def test_mujoco_itself_would_have_hidden_the_divergence(monkeypatch, tmp_path):
    """The trap: after a blow-up the batch reports status 0 and a robot in its nominal pose."""
    monkeypatch.chdir(tmp_path)
    simulation = make("ant", 1)
    simulation.reset(seed=0)
    simulation.now.qvel[:] = 1e12
    simulation.batch.step(nstep=5)
    assert simulation.batch.status.tolist() == [0]
    assert simulation.distance()[0] < 0.05
    assert not simulation.robot.fallen(simulation.now).any()
    assert simulation.batch.warning[0, mujoco.mjtWarning.mjWARN_BADQVEL, 1] > 0


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
