"""The vector environment, for every robot: seeds, threads, states and divergence."""

import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from motion import actions_of, assert_identical, every_flavour, every_robot, flatten

from safeexplorer.robots import get_robot, make

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


def hurl(simulation):
    """A state that MuJoCo accepts; it blows up inside the step."""
    simulation.now.qvel[1, :] = 1e3


def plant_speed(simulation):
    simulation.now.qvel[1, :] = 1e12


def plant_nan(simulation):
    simulation.now.qpos[1, 0] = np.nan


@every_robot
@pytest.mark.parametrize("plant", [hurl, plant_speed, plant_nan])
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


@every_robot
def test_a_diverged_robot_is_put_back_to_where_it_was(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    simulation = make(name, 3, autoreset=False)
    simulation.reset(seed=0)
    hurl(simulation)
    physics = simulation.get_state()["physics"]
    hold = np.tile(simulation.robot.hold_action(), (3, 1))
    *_, info = simulation.step(hold)
    assert info["simulation_error"].tolist() == [False, True, False]
    np.testing.assert_array_equal(simulation.get_state()["physics"][1], physics[1])


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


def test_an_error_inside_mujoco_is_a_fall_of_that_ant_alone(monkeypatch):
    """Ant is stepped outside the batch, for its contact forces: errors there must count as in the batch."""
    simulation, calm = make("ant", 3), make("ant", 3)
    for world in (simulation, calm):
        world.reset(seed=0)
    undisturbed = calm.step(np.zeros((3, 8)))
    step, calls = mujoco.mj_step, []

    def failing(model, data, nstep):
        calls.append(nstep)
        if len(calls) == 2:
            raise mujoco.FatalError("planted")
        step(model, data, nstep)

    monkeypatch.setattr(mujoco, "mj_step", failing)
    observation, _, terminated, _, info = simulation.step(np.zeros((3, 8)))
    assert terminated.tolist() == info["simulation_error"].tolist() == [False, True, False]
    np.testing.assert_array_equal(observation[[0, 2]], undisturbed[0][[0, 2]])
    assert simulation.simulation_errors == 1
