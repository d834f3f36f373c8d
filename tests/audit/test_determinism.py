"""`safeexplorer audit`: is this recovery, and is this world, deterministic?"""

from types import SimpleNamespace

import numpy as np
import pytest
from recordings import drawn

from safeexplorer import robots
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import NoIntervention, SafeRegion
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.schedules import constant
from safeexplorer.audit import audit_collector, determinism
from safeexplorer.audit.determinism import Determinism, ExitNotes, check_determinism, recorded_determinism
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.recovery import load_recovery

HALF_CHEETAH = robots.get_robot("half_cheetah")


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
    env = robots.make("half_cheetah", 4, **settings)
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
    collector = SimpleNamespace(env=env, mixed=MixedPolicy(NoIntervention(), recovery), observation=env.x)
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
    mixed = MixedPolicy(NoIntervention(), checked)
    collector = SimpleNamespace(env=object(), mixed=mixed, observation=np.ones((3, 17)))
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
