"""The recovery protocol: what is accepted, and one clear error for everything that must not be."""

import json
import pickle
import shutil

import numpy as np
import pytest

from safeexplorer.learning.networks import init_squashed
from safeexplorer.recovery import RecoveryError, known_recoveries, load_recovery, provenance
from safeexplorer.recovery.actor import save_actor
from safeexplorer.recovery.library import WEIGHTS, shipped
from safeexplorer.robots import ROBOTS, get_robot, make

CHEETAH = get_robot("half_cheetah")
OBSERVATION = np.random.default_rng(0).standard_normal((3, 17))


def write_actor(path, robot=CHEETAH, hidden=(16,), seed=0, **facts):
    interface = robot.interface()
    params = init_squashed(
        np.random.default_rng(seed), interface.observation_size, interface.low.size, hidden
    )
    save_actor(path, params, interface.low, interface.high, {"robot": robot.name} | facts)
    return params


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=list(ROBOTS))
def test_every_named_recovery_acts_within_bounds_on_any_number_of_rows(robot):
    world = make(robot.name, 4, flavour="recovery")
    observation, _ = world.reset(seed=0)
    for name in known_recoveries(robot.name, robot.posture):
        recovery = load_recovery(name, robot)
        for rows in (slice(0, 4), slice(1, 2), [0, 3], slice(0, 0)):
            action = recovery.act(observation[rows])
            assert action.dtype == np.float32
            assert action.shape == (len(observation[rows]), *world.single_action_space.shape)
        np.testing.assert_allclose(recovery.act(observation)[2], recovery.act(observation[2:3])[0], atol=1e-5)
        assert recovery.get_state() == {}
        assert (recovery.name, recovery.robot) == (name, robot.name)
    world.close()


@pytest.mark.parametrize("robot", ["half_cheetah", "ant", "go1"])
def test_default_is_the_learned_recovery_of_the_robots_name(robot):
    recovery = load_recovery("default", get_robot(robot))
    assert recovery.name == robot and recovery.has_density


@pytest.mark.parametrize(("robot", "rest"), [("half_cheetah", 0.13), ("ant", 0.13), ("go1", 0.05)])
def test_hold_brings_a_standing_robot_to_rest_near_its_nominal_pose(robot, rest):
    world = make(robot, 8)
    observation, _ = world.reset(seed=1)
    recovery = load_recovery("hold", world.robot)
    for _ in range(150):
        observation, _, terminated, *_ = world.step(recovery.act(observation))
        assert not terminated.any()
    assert np.median(world.distance()) < rest
    world.close()


def test_passive_is_no_effort():
    assert not load_recovery("passive", CHEETAH).act(OBSERVATION).any()
    go1 = make("go1", 3, flavour="recovery")
    observation, _ = go1.reset(seed=0)
    angles = go1.now.qpos[:, 7:]
    np.testing.assert_allclose(load_recovery("passive", go1.robot).act(observation), angles, atol=1e-6)
    go1.close()


def test_observations_are_handed_over_read_only_and_stay_writable_outside():
    def scribble(observation):
        observation[:] = 0.0
        return np.zeros((len(observation), 6))

    observation = OBSERVATION.copy()
    with pytest.raises(RecoveryError, match=r"'scribble' of half_cheetah raised ValueError: .*read-only"):
        load_recovery(scribble, CHEETAH).act(observation)
    observation[0, 0] = 1.0


def nan_action(observation):
    action = np.zeros((len(observation), 6))
    action[1, 2] = np.nan
    return action


def broken(observation):
    raise ZeroDivisionError("gait phase")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            lambda o: np.zeros((len(o), 5)),
            r"of half_cheetah gave actions of shape \(3, 5\), expected \(3, 6\)",
        ),
        (lambda o: np.zeros(6), r"gave actions of shape \(6,\), expected \(3, 6\)"),
        (lambda o: "left", "gave an action that is no array of numbers"),
        (nan_action, r"'nan_action' of half_cheetah gave action\[1, 2\] = nan, allowed: \[-1, 1\]"),
        (lambda o: np.full((len(o), 6), np.inf), r"gave action\[0, 0\] = inf"),
        (lambda o: np.full((len(o), 6), 1.01), r"gave action\[0, 0\] = 1.01, allowed: \[-1, 1\]"),
        (broken, "'broken' of half_cheetah raised ZeroDivisionError: gait phase"),
    ],
)
def test_a_bad_answer_is_refused_by_name(policy, message):
    with pytest.raises(RecoveryError, match=message):
        load_recovery(policy, CHEETAH).act(OBSERVATION)


class Stepper:
    """A controller with memory and noise of its own."""

    deterministic = False
    name = "stepper"

    def __init__(self):
        self.phase = np.zeros(1)

    def __call__(self, observation):
        self.phase += 0.25
        return np.full((len(observation), 6), np.sin(self.phase[0]))

    def sample(self, observation, rng):
        return rng.uniform(-1, 1, (len(observation), 6)).astype(np.float32)

    def log_density(self, observation, action):
        return np.full(len(observation), 6 * np.log(0.5))

    def get_state(self):
        return {"phase": self.phase.copy()}

    def set_state(self, state):
        self.phase = state["phase"].copy()


def test_memory_density_and_randomness_are_honoured():
    recovery = load_recovery(Stepper(), CHEETAH)
    assert (recovery.name, recovery.deterministic, recovery.has_density) == ("stepper", False, True)
    recovery.act(OBSERVATION)
    state = recovery.get_state()
    second = recovery.act(OBSERVATION)
    recovery.set_state(state)
    np.testing.assert_array_equal(recovery.act(OBSERVATION), second)
    action, log_density = recovery.sample(OBSERVATION, np.random.default_rng(1))
    np.testing.assert_allclose(log_density, 6 * np.log(0.5), rtol=1e-6)
    np.testing.assert_array_equal(action, recovery.sample(OBSERVATION, np.random.default_rng(1))[0])


def test_a_plain_callable_has_no_density_and_no_memory():
    recovery = load_recovery(lambda o: np.zeros((len(o), 6)), CHEETAH)
    assert recovery.deterministic and not recovery.has_density
    with pytest.raises(RecoveryError, match="has no density"):
        recovery.sample(OBSERVATION, np.random.default_rng(0))
    with pytest.raises(RecoveryError, match="has no memory, but was given a state with phase"):
        recovery.set_state({"phase": np.zeros(1)})


def test_an_actor_file_comes_back_as_it_was(tmp_path):
    write_actor(tmp_path / "mine.npz", hidden=(256, 256))
    recovery = load_recovery(tmp_path / "mine.npz", CHEETAH)
    assert recovery.name == "mine" and recovery.deterministic and recovery.has_density
    assert len(recovery.digest) == 64
    drawn, density = recovery.sample(OBSERVATION, np.random.default_rng(0))
    assert np.isfinite(density).all() and (drawn != recovery.act(OBSERVATION)).all()
    again = load_recovery(str(tmp_path / "mine.npz"), CHEETAH)
    np.testing.assert_array_equal(again.act(OBSERVATION), recovery.act(OBSERVATION))
    assert (tmp_path / "mine.npz").stat().st_size < 2**20


def test_another_robots_weights_are_refused(tmp_path):
    write_actor(tmp_path / "ant.npz", get_robot("ant"))
    with pytest.raises(RecoveryError, match="trained for ant, not for half_cheetah"):
        load_recovery(tmp_path / "ant.npz", CHEETAH)
    with pytest.raises(RecoveryError, match="'hold' is for half_cheetah, not for ant"):
        load_recovery(load_recovery("hold", CHEETAH), get_robot("ant"))


def test_wrong_shapes_are_refused(tmp_path):
    params = init_squashed(np.random.default_rng(0), 18, 6, (16,))
    save_actor(tmp_path / "wide.npz", params, -np.ones(6), np.ones(6), {"robot": "half_cheetah"})
    with pytest.raises(
        RecoveryError, match=r"wide.npz: the network's layers are .*half_cheetah needs \(17, 12\)"
    ):
        load_recovery(tmp_path / "wide.npz", CHEETAH)
    params = init_squashed(np.random.default_rng(0), 17, 6, (16,))
    save_actor(tmp_path / "strong.npz", params, -2 * np.ones(6), 2 * np.ones(6), {"robot": "half_cheetah"})
    with pytest.raises(RecoveryError, match="trained on another action range"):
        load_recovery(tmp_path / "strong.npz", CHEETAH)


def test_a_tampered_file_is_refused(tmp_path):
    write_actor(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["actor/0/weight"][0, 0] += 1e-3
    np.savez(tmp_path / "touched.npz", **arrays)
    with pytest.raises(RecoveryError, match="SHA-256 does not match; the file was altered or damaged"):
        load_recovery(tmp_path / "touched.npz", CHEETAH)
    content = bytearray((tmp_path / "good.npz").read_bytes())
    for place in range(60, len(content), 997):
        content[place] ^= 0xFF
    (tmp_path / "rotten.npz").write_bytes(content)
    with pytest.raises(RecoveryError, match=r"rotten.npz"):
        load_recovery(tmp_path / "rotten.npz", CHEETAH)
    np.savez(tmp_path / "else.npz", a=np.zeros(3))
    with pytest.raises(RecoveryError, match=r"else.npz: not a recovery file"):
        load_recovery(tmp_path / "else.npz", CHEETAH)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_a_pickle_is_refused_without_being_executed(tmp_path):
    mark = tmp_path / "executed"
    for name in ("bomb.pkl", "bomb.npz"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb(str(mark))))
        with pytest.raises(RecoveryError, match=r"pickles and other formats are never opened"):
            load_recovery(tmp_path / name, CHEETAH)
    np.savez(tmp_path / "inside.npz", provenance=np.array([Bomb(str(mark))], object))  # a pickle inside a zip
    with pytest.raises(RecoveryError, match=r"inside.npz: .* holds Python objects"):
        load_recovery(tmp_path / "inside.npz", CHEETAH)
    assert not mark.exists()
    pickle.loads((tmp_path / "bomb.pkl").read_bytes()).close()  # the bomb does work
    assert mark.exists()


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with pytest.raises(RecoveryError, match=r"half_cheetah has no recovery 'gallop'; known: .*hold, passive"):
        load_recovery("gallop", CHEETAH)
    with pytest.raises(RecoveryError, match=r"nowhere.npz: cannot be read: No such file"):
        load_recovery(tmp_path / "nowhere.npz", CHEETAH)


def test_shipped_files_are_what_the_manifest_says():
    files = {path.name for path in WEIGHTS.glob("*.npz")}
    assert files == {entry["file"] for entry in shipped().values()}
    for name, entry in shipped().items():
        assert (WEIGHTS / entry["file"]).stat().st_size < 2**20
        recovery = load_recovery(name, get_robot(entry["robot"]))
        assert recovery.digest == entry["sha256"] and recovery.has_density
        facts = provenance(name)
        needed = {"settings", "commit", "environment_steps", "updates", "falls", "grade", "flavour"}
        assert needed <= facts.keys()


def test_a_shipped_file_that_was_replaced_is_refused(tmp_path, monkeypatch):
    write_actor(tmp_path / "half_cheetah.npz", seed=1)
    digest = load_recovery(tmp_path / "half_cheetah.npz", CHEETAH).digest
    entry = {"robot": "half_cheetah", "file": "half_cheetah.npz", "sha256": digest}
    (tmp_path / "manifest.json").write_text(json.dumps({"half_cheetah": entry}))
    monkeypatch.setattr("safeexplorer.recovery.library.WEIGHTS", tmp_path)
    assert load_recovery("default", CHEETAH).digest == digest
    with pytest.raises(RecoveryError, match="recovery 'half_cheetah' is for half_cheetah, not for ant"):
        load_recovery("half_cheetah", get_robot("ant"))
    write_actor(tmp_path / "other.npz", seed=2)
    shutil.move(tmp_path / "other.npz", tmp_path / "half_cheetah.npz")
    with pytest.raises(RecoveryError, match="not the file the package was shipped with"):
        load_recovery("default", CHEETAH)
