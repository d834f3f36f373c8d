"""`safeexplorer audit`: rollouts whose answer is known, planted faults, files in other people's words."""

import json
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from safeexplorer import envs
from safeexplorer.accounting import Ledger
from safeexplorer.audit import audit, audit_collector, determinism, read_recording
from safeexplorer.audit.determinism import Determinism, ExitNotes, check_determinism, recorded_determinism
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.gradients import (
    Comparison,
    Fit,
    Gradients,
    Importance,
    angle,
    diagnose,
    measure_importance,
)
from safeexplorer.audit.measures import Falls, Region, SegmentFacts, Shares, measure_segments
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED
from safeexplorer.audit.suggestions import RULES, suggest
from safeexplorer.checkpoint import flatten
from safeexplorer.cli import main
from safeexplorer.interventions import SafeRegion
from safeexplorer.learner import Hyperparameters
from safeexplorer.networks import init_actor_critic
from safeexplorer.recovery import load_recovery
from safeexplorer.rollout import Collector
from safeexplorer.schedules import constant
from safeexplorer.settings import Settings
from safeexplorer.theory.update import example_rollout
from safeexplorer.training import open_run
from safeexplorer.trajectory import Rollout

HALF_CHEETAH = envs.get_robot("half_cheetah")


def drawn(*robots: str) -> Rollout:
    """One string per robot: '.' the policy acts, 'r' the recovery; 'F' and 'X' fall under the one and the other;
    'T' and 'L' meet the time limit under the one and the other."""
    letters = np.array([list(robot) for robot in robots]).T
    nothing = np.zeros(letters.shape)
    vector = np.zeros((*letters.shape, 1), np.float32)
    rollout = Rollout(*[nothing] * len(Rollout._fields))
    return rollout._replace(
        observation=np.arange(letters.size, dtype=np.float32).reshape(vector.shape),
        next_observation=vector,
        proposed=vector,
        action=vector,
        terminated=np.isin(letters, ["F", "X"]),
        truncated=np.isin(letters, ["T", "L"]),
        recovering=np.isin(letters, ["r", "X", "L"]),
        next_outside=nothing > 0,
    )


# Shares and segments


def test_shares_segments_and_falls_of_a_drawn_rollout():
    found = audit(drawn("..rr.r.rX...", "rL.....F..rr"))
    # Robot 0 recovers in 2-3, 5 and 7-8; robot 1 in 0-1 and 10-11.
    assert (found.shares.steps, found.shares.recovery_steps, found.shares.recovery_rate) == (24, 9, 9 / 24)
    # Episodes: 0-8 of robot 0 with 5 of 9 steps, 0-1 of robot 1 with 2 of 2, 2-7 of robot 1 with none.
    assert (found.shares.episodes, found.shares.episodes_with_recovery) == (3, 2)
    assert [found.shares.episode_quantiles[q] for q in ("min", "median", "max")] == [0, 5 / 9, 1]
    segments = found.segments
    assert (segments.count, segments.reentered, segments.fell, segments.timed_out, segments.open) == (
        5,
        2,
        1,
        1,
        1,
    )
    assert [segments.length_quantiles[q] for q in ("min", "q25", "median", "max")] == [1, 2, 2, 2]
    assert segments.success == 2 / 3
    assert (segments.reexits, segments.reexit_share) == (2, 1.0)
    assert found.falls == Falls(policy=1, recovery=1)


@pytest.mark.parametrize(
    ("robots", "reexits"),
    [
        (["r.....r."], 1),  # five policy steps in between
        (["r......r"], 0),  # six
        (["r.F.r..."], 0),  # another episode
        (["..rr", "rr.."], 0),  # another robot
        (["rXr.r..."], 1),  # the first ended in a fall, the second came back
        (["r.r.r.r."], 3),
    ],
)
def test_reexits_are_within_five_policy_steps_of_the_same_episode(robots, reexits):
    assert measure_segments(drawn(*robots)).reexits == reexits


def test_segments_agree_with_the_ledger_of_training():
    rng = np.random.default_rng(0)
    for _ in range(20):
        letters = rng.choice(list(".....rrrrFXTL"), (3, 30))
        rollout = drawn(*("".join(robot) for robot in letters))
        found, ledger = measure_segments(rollout), Ledger(3)
        ledger.add(rollout, 0)
        counts = ledger.counts
        assert (found.count, found.fell) == (counts.exits, counts.failed)
        assert found.reentered + found.timed_out == counts.succeeded
        assert found.open == ledger.open.sum()


def test_a_rollout_without_recovery_has_no_segments_and_no_verdict():
    found = audit(drawn("..F..", "....."))
    assert (found.segments.count, found.segments.success, found.segments.length_quantiles) == (0, None, None)
    assert found.determinism.verdict == "unknown"
    assert found.missing["importance"] == "the recovery never acted"
    json.dumps(found.as_dict(), allow_nan=False)


def test_region_is_a_threshold_only_if_no_distance_has_both_sides():
    rollout = drawn("..rr")
    apart = audit(rollout, distance=np.array([[0.1], [0.2], [0.3], [np.nan]])).region
    assert apart == Region(largest_policy=0.2, smallest_recovery=0.3, overlap=0.0)
    # With 0.4 under the policy one of the two recovery steps, 0.3, lies below it.
    assert audit(rollout, distance=np.array([[0.1], [0.4], [0.3], [0.5]])).region.overlap == 0.5


# Gradients


@pytest.fixture(scope="module")
def small():
    """Three episodes of one step, the last under recovery: observation 0, mean = bias = 0, sigma = 1, V = 0.

    So A = r, and the gradient has two entries: -mean(A a) for the bias and -mean(A (a^2 - 1)) for log sigma.
    """
    params = init_actor_critic(np.random.default_rng(0), 1, 1, ())
    params["critic"][0]["weight"][:] = 0.0
    rollout = drawn("FFX")._replace(
        observation=np.zeros((3, 1, 1), np.float32),
        action=np.float32([[[1]], [[-1]], [[0]]]),
        proposed=np.float32([[[1]], [[-1]], [[2]]]),
        task_reward=np.array([[1.0], [-1.0], [-3.0]]),
    )
    return params, rollout


def test_angles_in_closed_form(small):
    """Masked, a = 1, -1 and A = 1, -1 normalised to +-1/sqrt 2: (-1/sqrt 2, 0).

    Unmasked, the recovery falls with a = 0, r = -3: A = 1, -1, -3 is normalised to 1, 0, -1, which gives
    (-1/3, -1/3): 45 degrees, |.| = sqrt 2 / 3. Relabelled with a = 2 instead: (1/3, 1): 180 - atan 3 degrees,
    |.| = sqrt 10 / 3.
    """
    params, rollout = small
    found = audit(rollout, params)
    gradients = found.gradients
    assert gradients.masked_norm == pytest.approx(np.sqrt(0.5), rel=1e-6)
    expected = {
        "unmasked": (45.0, 2 / 3),
        "relabelled": (180 - np.degrees(np.arctan(3)), np.sqrt(20) / 3),
        "analytic": (0.0, 1.0),  # the overwritten value is of an episode of its own
    }
    for rule, numbers in expected.items():
        row = gradients.compared[rule]
        assert (row.angle, row.norm_ratio) == pytest.approx(numbers, rel=1e-5, abs=1e-5)
    assert gradients.halves_angle is None  # one step alone is no gradient
    # (a - mean) / sigma: sqrt mean(1, 1) under the policy, 0 under the recovery.
    assert found.fit == Fit(policy=1.0, recovery=0.0, log_prob_error=None)


def test_without_recovery_every_rule_has_the_masked_gradient(small):
    params, rollout = small
    calm = rollout._replace(recovering=np.zeros((3, 1), bool), action=rollout.proposed)
    gradients = audit(calm, params).gradients
    assert set(gradients.compared) == {"unmasked", "relabelled", "analytic"}
    for row in gradients.compared.values():
        assert (row.angle, row.norm_ratio) == pytest.approx((0.0, 1.0), abs=1e-4)


def test_angle_of_nearly_equal_directions_is_exact():
    """arccos of a dot product would lose everything below 1e-6 degrees."""
    assert angle(np.array([1.0, 0.0]), np.array([2.0, 2e-10])) == pytest.approx(np.degrees(1e-10), rel=1e-6)
    assert angle(np.zeros(2), np.ones(2)) is None


def test_without_a_policy_nothing_is_said_about_gradients(small):
    found = audit(small[1])
    assert found.gradients is None and found.fit is None and found.importance is None
    assert set(found.missing) == {"gradients", "importance"}


def test_effective_sample_size_by_hand():
    # Weights 1, 1, 2, times e^-800, which no float holds: (1 + 1 + 2)^2 / (3 (1 + 1 + 4)) = 16 / 18, mean 4 / 3.
    rollout = drawn(".rrr")._replace(recovery_log_density=np.full((4, 1), 800.0))
    found = measure_importance(rollout, np.log([[9.0], [1.0], [1.0], [2.0]]))
    assert found.ess_share == pytest.approx(16 / 18)
    assert found.log10_mean == pytest.approx((np.log(4 / 3) - 800) / np.log(10))


def test_recorded_log_probabilities_serve_where_there_is_no_policy(small):
    params, rollout = small
    rollout = rollout._replace(
        recovering=np.array([[False], [True], [True]]), recovery_log_density=np.array([[0.0], [-3.0], [-1.0]])
    )
    # The policy is a standard normal at a = 1, -1, 0.
    log_prob = -0.5 * np.array([[1.0], [1.0], [0.0]]) - 0.5 * np.log(2 * np.pi)
    with_policy, without = audit(rollout, params, log_prob=log_prob), audit(rollout, log_prob=log_prob)
    assert without.importance == replace(with_policy.importance, log10_variance_ratio=None)
    rows = np.arange(3)
    learners = {name: float(x) for name, x in diagnose(params, rollout, rows, Hyperparameters()).items()}
    assert with_policy.importance.ess_share == pytest.approx(learners["importance_ess_share"], rel=1e-5)
    assert with_policy.importance.log10_variance_ratio == learners["importance_log10_variance_ratio"] != 0
    assert with_policy.fit.log_prob_error == 0
    assert audit(rollout, params, log_prob=log_prob + 1.0).fit.log_prob_error == pytest.approx(1.0)


# Determinism


def noisy(scale=0.1):
    rng = np.random.default_rng(0)
    return lambda observation: np.clip(rng.normal(0, scale, (len(observation), 6)), -1, 1)


class Alternating:
    """Pushes one way, then the other: equal observations, other actions, but the memory says which."""

    sign = np.ones(1)

    def __call__(self, observation):
        self.sign = -self.sign
        return np.full((len(observation), 6), 0.1 * self.sign[0], np.float32)

    def get_state(self):
        return {"sign": self.sign}

    def set_state(self, state):
        self.sign = state["sign"]


def collector_of(recovery, **settings):
    env = envs.make("half_cheetah", 4, **settings)
    collector = Collector(env, load_recovery(recovery, HALF_CHEETAH), SafeRegion(constant(0.15)), 32)
    collector.reset(3)
    return collector


@pytest.fixture(scope="module")
def fresh():
    return init_actor_critic(np.random.default_rng(0), 17, 6, (8,))


@pytest.mark.parametrize(
    ("recovery", "noise", "equal", "verdict"),
    [
        ("hold", 0.0, (True, True), "deterministic"),
        ("half_cheetah", 0.0, (True, True), "deterministic"),
        (Alternating(), 0.0, (True, True), "deterministic"),
        (noisy(), 0.0, (False, None), "stochastic recovery"),
        (noisy(1e-6), 0.0, (False, None), "stochastic recovery"),
        ("hold", 0.1, (True, False), "stochastic world"),
    ],
    ids=["hold", "learned", "memory", "noisy", "slightly noisy", "action noise"],
)
def test_replay_tells_who_is_stochastic_and_leaves_everything_in_place(
    fresh, monkeypatch, recovery, noise, equal, verdict
):
    monkeypatch.setattr(determinism, "REPLAY_STEPS", 10)
    collector = collector_of(recovery, action_noise=noise)
    collector.observer = seen = ExitNotes(collector, np.random.default_rng(0), None)
    collector.collect(fresh, 0.0, np.random.default_rng(0))
    before = {name: np.array(array) for name, array in collector.get_state().items()}
    found = check_determinism(collector, seen.exits, np.random.default_rng(1))
    assert (found.check, found.verdict) == ("replay", verdict)
    assert (found.actions_equal, found.trajectories_equal) == equal
    assert found.compared == min(seen.seen, 16) > 4
    after = collector.get_state()
    assert all(np.array_equal(after[name], before[name]) for name in before)


class Drifting:
    """A user's world of two robots, x' = x + 0.1 a + noise; its noise is no part of its state."""

    def __init__(self, noise):
        self.noise, self.rng, self.x = noise, np.random.default_rng(0), np.ones((2, 17))

    def step(self, action):
        self.x = self.x + 0.1 * action[:, :1] + self.noise * self.rng.normal()
        return self.x, self.x[:, 0], np.zeros(2, bool), np.zeros(2, bool), {}

    def get_state(self):
        return {"x": self.x}

    def set_state(self, state):
        self.x = state["x"]


@pytest.mark.parametrize(("noise", "equal"), [(0.0, None), (1e-9, False)])
def test_a_users_world_can_be_shown_stochastic_but_not_deterministic(noise, equal):
    """Equal trajectories prove nothing about noise that the state may hold."""
    env, recovery = Drifting(noise), load_recovery("hold", HALF_CHEETAH)
    collector = SimpleNamespace(env=env, recovery=recovery, sampled=False, observation=env.x)
    collector.get_state, collector.set_state = env.get_state, env.set_state
    notes = ExitNotes(collector, np.random.default_rng(0), None)
    notes.on_exit(0, np.array([1]))
    found = check_determinism(collector, notes.exits, np.random.default_rng(0))
    assert found == Determinism("replay", 1, actions_equal=True, trajectories_equal=equal)
    np.testing.assert_array_equal(env.x, np.ones((2, 17)))


@pytest.mark.parametrize(
    ("recovery", "equal"),
    [("hold", True), (Alternating(), True), (noisy(), False)],
    ids=["hold", "memory", "noisy"],
)
def test_a_world_that_cannot_be_restored_is_asked_twice(recovery, equal):
    checked = load_recovery(recovery, HALF_CHEETAH)
    collector = SimpleNamespace(env=object(), recovery=checked, sampled=False, observation=np.ones((3, 17)))
    notes = ExitNotes(collector, np.random.default_rng(0), None)
    notes.on_exit(0, np.array([0, 2]))
    found = check_determinism(collector, notes.exits, np.random.default_rng(0))
    assert (found.check, found.compared, found.actions_equal) == ("repeat", 1, equal)


def test_the_observer_of_a_collector_still_hears_everything(fresh):
    class Listener:
        heard = 0

        def before_step(self, step):
            self.heard += 1

        def on_exit(self, step, robots):
            self.heard += 1000

    collector = collector_of("hold")
    collector.observer = listener = Listener()
    hyper = Hyperparameters(minibatches=1)  # as the command has it: compiled once for both
    found = audit_collector(collector, fresh, 0.0, np.random.default_rng(0), hyper=hyper)
    assert collector.observer is listener
    assert listener.heard % 1000 == 32 and listener.heard > 1000
    assert found.determinism.check == "replay" and found.region.overlap == 0
    assert 0 < found.shares.recovery_rate < 1


def test_a_recording_shows_noise_only_where_observations_repeat():
    rollout = drawn("rrrr")
    assert recorded_determinism(rollout) == Determinism("none")
    same = rollout._replace(observation=np.float32([[[1]], [[1]], [[2]], [[1]]]))
    assert recorded_determinism(same) == Determinism("recorded", 2, actions_equal=True)
    other = same._replace(action=np.float32([[[0]], [[0]], [[0]], [[1]]]))
    assert recorded_determinism(other) == Determinism("recorded", 2, actions_equal=False)
    sampled = rollout._replace(recovery_log_density=np.full((4, 1), -1.0))
    assert recorded_determinism(sampled) == Determinism("declared", actions_equal=False)


# Files


def native(rollout: Rollout) -> dict[str, np.ndarray]:
    """A rollout in our own words."""
    return {
        "observation": rollout.observation,
        "action": rollout.action,
        "reward": rollout.task_reward,
        "terminated": rollout.terminated,
        "truncated": rollout.truncated,
        "intervention": rollout.recovering,
        "proposed": rollout.proposed,
        "next_observation": rollout.next_observation,
    }


def in_other_words(arrays, flag=None, takeover=None, plural=False, without=()):
    """The same file, `action` being what the policy asked for and the takeover an array of its own."""
    arrays = dict(arrays)
    recovering, executed = arrays.pop("intervention"), arrays["action"]
    arrays["action"] = arrays.pop("proposed")
    if flag is not None:
        arrays[flag] = recovering.astype(np.uint8)
    blank = 0.0 if flag is not None else np.nan
    arrays[takeover] = np.where(recovering[..., None], executed, blank)
    if plural:
        names = ("observation", "action", "reward", "next_observation")
        arrays = {f"{name}s" if name in names else name: array for name, array in arrays.items()}
    return arrays


def written(tmp_path, arrays):
    path = tmp_path / "rollouts.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "words",
    [
        {"takeover": "intervene_action", "plural": True},
        {"takeover": "action_intervention", "flag": "is_intervention"},
        {"takeover": "intervene_action", "flag": "intervene_flag"},
    ],
    ids=["intervene_action", "is_intervention", "intervene_flag"],
)
def test_other_recorders_words_mean_the_same(tmp_path, words):
    rollout = example_rollout()
    ours = read_recording(written(tmp_path, native(rollout)))
    theirs = read_recording(written(tmp_path, in_other_words(native(rollout), **words)))
    jax.tree.map(np.testing.assert_array_equal, theirs.rollout, ours.rollout)
    assert theirs.notes == ours.notes == ()
    for name in ("observation", "action", "proposed", "task_reward", "recovering", "next_observation"):
        np.testing.assert_array_equal(getattr(ours.rollout, name), getattr(rollout, name))


def test_takeovers_already_in_the_action_leave_no_proposals(tmp_path):
    arrays = native(example_rollout())
    recovering = arrays.pop("intervention")
    del arrays["proposed"]
    arrays["intervene_action"] = np.where(recovering[..., None], arrays["action"], np.nan)
    rollout = read_recording(written(tmp_path, arrays)).rollout
    assert rollout.proposed is None
    np.testing.assert_array_equal(rollout.action, example_rollout().action)


def test_one_robot_needs_no_axis_of_robots(tmp_path):
    arrays = {name: array[:, :1] for name, array in native(example_rollout()).items()}
    wide = read_recording(written(tmp_path, arrays))
    flat = read_recording(written(tmp_path, {name: array[:, 0] for name, array in arrays.items()}))
    jax.tree.map(np.testing.assert_array_equal, flat, wide)


def test_clipped_actions_of_the_policy_are_replaced_by_its_proposals(tmp_path):
    arrays = native(example_rollout())
    arrays["action"] = np.clip(arrays["action"], -0.1, 0.1)
    rollout = read_recording(written(tmp_path, arrays)).rollout
    main = ~rollout.recovering
    np.testing.assert_array_equal(rollout.action[main], arrays["proposed"][main])
    np.testing.assert_array_equal(rollout.action[~main], arrays["action"][~main])


def test_what_was_not_recorded_is_assumed_aloud(tmp_path):
    arrays = native(example_rollout())
    del arrays["next_observation"]
    recording = read_recording(written(tmp_path, arrays | {"camera": np.zeros(3)}))
    # Robot 0 ends at step 7, robot 1 at step 6, and both at the end of the recording.
    assert "4 values" in recording.notes[0] and "arrays not used: camera" in recording.notes[1]
    observation, following = recording.rollout.observation, recording.rollout.next_observation
    np.testing.assert_array_equal(following[7, 0], observation[7, 0])
    np.testing.assert_array_equal(following[7, 1], observation[8, 1])
    np.testing.assert_array_equal(following[-1], observation[-1])


def test_a_fall_at_the_time_limit_is_a_fall(tmp_path):
    arrays = native(drawn("..T", "..F"))
    arrays["truncated"] = np.ones_like(arrays["truncated"])
    rollout = read_recording(written(tmp_path, arrays)).rollout
    assert rollout.truncated[2].tolist() == [True, False] and rollout.terminated[2].tolist() == [False, True]


def at(index, value):
    def change(array):
        array = array.astype(np.float64)
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("observation", None, "observation is missing; expected [T, E, n]"),
        ("terminated", None, "a `done` does not tell falls from time limits"),
        ("intervention", None, "intervention is missing; expected one of intervention, is_intervention"),
        ("observation", at((3, 1, 2), np.nan), "observation holds nan at [3, 1, 2]; expected finite numbers"),
        ("reward", at((0, 0), np.inf), "reward holds inf at [0, 0]"),
        ("action", lambda a: a[:-1], "action has shape (9, 2, 2); expected (10, 2, size)"),
        ("action", lambda a: a[..., 0], "action has shape (10, 2); expected (10, 2, size)"),
        ("proposed", lambda a: a[..., :1], "proposed has vectors of 1; expected 2"),
        ("next_observation", lambda a: a[..., :2], "next_observation has vectors of 2; expected 3"),
        ("truncated", lambda a: a[:, :1], "truncated has shape (10, 1); expected (10, 2), as reward"),
        ("intervention", lambda a: 2 * a.astype(int), "intervention holds 2; expected bool, or 0 and 1"),
        ("intervention", lambda a: np.full(a.shape, "no"), "intervention is of type <U2; expected numbers"),
        ("action", lambda a: a.astype(object), "action holds Python objects; expected an array of numbers"),
        ("reward", lambda a: a[..., None], "reward has shape (10, 2, 1); expected [T, E]"),
        ("reward", lambda a: a[:0], "reward has shape (0, 2)"),
        ("is_intervention", lambda a: np.zeros((10, 2)), "is_intervention stands beside intervention"),
        ("intervene_action", lambda a: np.full((10, 2, 2), np.nan), "holds NaN where the recovery acted"),
        ("policy/actor/0/weight", lambda a: np.zeros((3, 2)), "there is no array actor/0/bias"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, capsys, name, change, says):
    arrays = native(example_rollout())
    array = arrays.pop(name, None)
    if change is not None:
        arrays[name] = change(array)
    path = written(tmp_path, arrays)
    assert main(["audit", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"{path}: " in error and says in error


def test_what_is_no_archive_is_never_opened(tmp_path, capsys):
    path = tmp_path / "rollouts.npz"
    path.write_bytes(b"\x80\x04.")  # a pickle
    assert main(["audit", str(path)]) == 2
    assert "not an .npz file" in capsys.readouterr().err


# Suggestions

HEALTHY = Audit(
    policy="given",
    shares=Shares(1000, 4, 200, 0.2, 4, 4, {}),
    segments=SegmentFacts(20, {}, 18, 1, 0, 1, 18 / 19, 2, 1 / 9),
    falls=Falls(policy=0, recovery=1),
    determinism=Determinism("replay", 16, True, True),
    region=Region(0.3, 0.31, 0.0),
    fit=Fit(1.0, 3.0, None),
    gradients=Gradients(
        800, 0.1, 80.0, {"unmasked": Comparison(20.0, 1.0), "relabelled": Comparison(15.0, 1.0)}
    ),
    importance=Importance(0.5, 0.0, 1.0),
)


def but(section, **changes):
    """The healthy audit with another section."""
    return {section: replace(getattr(HEALTHY, section), **changes)}


NOBODY = but("shares", recovery_steps=0, recovery_rate=0.0)
DRAWN = but("determinism", actions_equal=False)
UNMASKED = {"unmasked": Comparison(60.0, 5.0)}
CASES = {
    "recovery never acts, robots fall": NOBODY | but("falls", policy=3),
    "recovery never acts": NOBODY,
    "recovery acts almost always": but("shares", recovery_rate=0.95, recovery_steps=950),
    "recovery too weak": but("segments", success=0.4),
    "recovery does not come back": but("segments", timed_out=20),
    "falls inside the region": but("falls", policy=2),
    "chatter at the boundary": but("segments", reexits=12, reexit_share=12 / 18),
    "trigger is no threshold on D": but("region", overlap=0.1),
    "unmasked update turns the gradient": but("gradients", compared=UNMASKED),
    "importance weights collapse": but("importance", ess_share=0.01),
    "sampled recovery with a density": DRAWN | {"density": True},
    "stochastic recovery without a density": DRAWN,
    "stochastic world": but("determinism", trajectories_equal=False),
    "another policy acted": but("fit", policy=2.5),
}


def test_every_rule_has_a_case_and_nothing_is_suggested_without_a_reason():
    assert [rule.name for rule in RULES] == list(CASES)
    assert suggest(HEALTHY) == ()


@pytest.mark.parametrize("rule", CASES)
def test_a_planted_finding_is_found_alone(rule):
    (suggestion,) = suggest(replace(HEALTHY, **CASES[rule]))
    assert suggestion.rule == rule and suggestion.setting and suggestion.reason


def test_an_angle_that_relabelling_has_too_is_no_finding():
    noisy = UNMASKED | {"relabelled": Comparison(55.0, 1.0)}
    assert suggest(replace(HEALTHY, **but("gradients", compared=noisy))) == ()


# The command


def test_a_recording_with_its_policy_is_audited_from_the_command_line(tmp_path, capsys, small):
    params, rollout = small
    weights = {f"policy/{name}": array for name, array in flatten(params).items()}
    path = written(tmp_path, native(rollout) | weights)
    assert main(["audit", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shares"]["recovery_steps"] == 1 and found["falls"] == {"policy": 2, "recovery": 1}
    assert found["gradients"] == audit(rollout, params).as_dict()["gradients"]
    assert main(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "came back" in out and "unmasked" in out and "Suggestions" in out


def test_a_robot_is_tried_out_with_the_policy_of_a_run(tmp_path, capsys):
    run = open_run(Settings(steps=8192, hidden=(8,)).resolved(), tmp_path)
    run.update = 1
    run.save()
    run.close()
    words = ["audit", "half_cheetah", "--policy", str(tmp_path), "--steps", "128", "--radius", "0.15"]
    assert main([*words, "--sampled-recovery", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == f"{tmp_path} at 0.0% of its training"
    assert found["determinism"]["verdict"] == "stochastic recovery" and found["density"]
    assert 0 < found["importance"]["ess_share"] <= 1
    assert main(["audit", "ant", "--policy", str(tmp_path)]) == 2
    assert "is a run of half_cheetah, not of ant" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "'nowhere' is no robot and no file"),
        (["half_cheetah", "--steps", "10"], "--steps is 10; allowed: a positive multiple of --num-envs, 4"),
        (["half_cheetah", "--num-envs", "0"], "--num-envs is 0"),
        (["half_cheetah", "--radius", "-1"], "--radius is -1.0"),
        (["half_cheetah", "--progress", "2"], "--progress is 2.0; allowed: a number from 0 to 1"),
        (["half_cheetah", "--recovery", "hold", "--sampled-recovery"], "recovery 'hold' has none"),
        (["half_cheetah", "--policy", "nowhere.npz"], "nowhere.npz"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(capsys, words, says):
    assert main(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and says in error


def test_options_of_a_robot_are_refused_for_a_recording(tmp_path, capsys):
    path = written(tmp_path, native(example_rollout()))
    assert main(["audit", str(path), "--radius", "1"]) == 2
    assert "--radius is for a robot" in capsys.readouterr().err


def test_help_names_every_array(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in REQUIRED | OPTIONAL)
