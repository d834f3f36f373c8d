"""Environments of others: the three autoreset modes, where the distance comes from, repeated episodes."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Choice, Drift, Stepper, far, pull_back

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.adapters.environments import Environments, vectorise
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.segments import find_segments
from safeexplorer.recovery import CheckedRecovery, Interface

ONE = np.ones(1, np.float32)
RECOVERY = CheckedRecovery(pull_back, Interface("toy", 2, -ONE, ONE), "pull back")
PARAMS = init_actor_critic(np.random.default_rng(0), 2, 1, (4,))


def drifting(mode: AutoresetMode, count: int, limit: int, distance=far) -> Environments:
    env = SyncVectorEnv([lambda: Drift(limit)] * count, autoreset_mode=mode)
    return Environments(env, distance)


def collect(env: Environments, seed: int, rollouts: int = 2):
    collector = Collector(env, RECOVERY, SafeRegion(0.5), 25)
    collector.reset(seed)
    rng = np.random.default_rng(seed)
    return [[np.copy(x) for x in collector.collect(PARAMS, 0.0, rng)] for _ in range(rollouts)]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4), limit=st.integers(1, 30))
def test_the_three_autoreset_modes_give_equal_rollouts_and_segments(seed, count, limit):
    rollouts = [collect(drifting(mode, count, limit), seed) for mode in AutoresetMode]
    for other in rollouts[1:]:
        for mine, theirs in zip(rollouts[0], other, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(a, b)
            segments = [find_segments(Rollout(*r), np.zeros_like(r[5])) for r in (mine, theirs)]
            for a, b in zip(*segments, strict=True):
                np.testing.assert_array_equal(a, b)


def test_no_step_is_spent_on_a_reset_and_the_last_observation_is_kept():
    env = drifting(AutoresetMode.NEXT_STEP, 1, limit=3)
    env.reset(seed=0)
    lengths = []
    for t in range(9):
        observation, _, _, truncated, info = env.step(np.zeros((1, 1)))
        if truncated[0]:
            lengths.append(t)
            assert info["final_obs"][0, 1] == 1.0  # t / limit of the finished episode
            assert observation[0, 1] == 0.0  # and of the new one
    assert lengths == [2, 5, 8]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("source", [far, "gap"])
def test_the_distance_may_be_a_function_or_a_key_of_info(mode, source):
    env = drifting(mode, 2, limit=4, distance=source)
    observation, info = env.reset(seed=1)
    for _ in range(10):
        np.testing.assert_allclose(info["distance"], np.abs(observation[:, 0]), rtol=1e-6)
        observation, _, _, _, info = env.step(np.ones((2, 1)))
        if "final_info" in info:
            ended = info["_final_obs"]
            last = np.abs(info["final_obs"][:, 0])
            np.testing.assert_allclose(info["final_info"]["distance"][ended], last[ended], rtol=1e-6)


def test_the_distance_may_be_the_environments_own_method():
    env = drifting(AutoresetMode.DISABLED, 2, limit=4, distance="distance")
    observation, info = env.reset(seed=1)
    for _ in range(10):
        np.testing.assert_allclose(info["distance"], np.abs(observation[:, 0]), rtol=1e-6)
        observation, _, _, _, info = env.step(np.ones((2, 1)))


def test_a_method_that_cannot_be_asked_in_time_is_refused():
    with pytest.raises(ValueError, match="same-step environment cannot be asked"):
        drifting(AutoresetMode.SAME_STEP, 2, limit=4, distance="distance").reset(seed=1)


def test_an_unknown_distance_is_an_error_that_names_the_keys_of_info():
    with pytest.raises(ValueError, match=r"distance is 'far'; .*gap"):
        drifting(AutoresetMode.DISABLED, 2, limit=4, distance="far").reset(seed=1)


def test_an_undeclared_autoreset_mode_is_an_error_that_names_the_three():
    env = SyncVectorEnv([Drift])
    env.metadata = {}
    with pytest.raises(
        ValueError, match=r"autoreset_mode'\] is None; allowed: .*NEXT_STEP.*SAME_STEP.*DISABLED"
    ):
        Environments(env)


def test_an_environment_that_resets_more_than_it_was_asked_to_is_refused():
    class Careless(SyncVectorEnv):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)

    env = Environments(Careless([lambda: Drift(2), lambda: Drift(5)], autoreset_mode=AutoresetMode.DISABLED))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="reset_mask"):
        for _ in range(3):
            env.step(np.zeros((2, 1)))


def test_observations_that_are_not_finite_stop_the_run():
    class Broken(Drift):
        def _look(self):
            return np.array([np.nan if self.t == 2 else 0.0, 0.0], np.float32)

    env = Environments(vectorise([Broken, Broken], 2))
    env.reset(seed=0)
    env.step(np.zeros((2, 1)))
    with pytest.raises(FloatingPointError, match=r"not finite, robots \[0, 1\]"):
        env.step(np.zeros((2, 1)))


def test_choices_are_sent_with_the_offset_of_their_space():
    sent = []

    class Listening(Choice):
        def push(self, action):
            sent.append(int(action))
            return super().push(action)

    env = Environments(vectorise([Listening], 1))
    env.reset(seed=0)
    for choice in range(3):
        env.step(np.array([[choice]], np.float32))
    assert sent == [5, 6, 7]
    assert env.sizes[:3] == (2, 1, 3)


@pytest.mark.parametrize("made", [Drift, lambda: Drift(limit=3)])
def test_a_class_or_a_function_makes_as_many_as_are_wanted(made):
    assert len({id(env) for env in vectorise(made, 3).envs}) == 3


def test_one_environment_cannot_be_two_robots():
    env = Drift()
    with pytest.raises(ValueError, match="the same environment twice among 2"):
        vectorise([lambda: env, lambda: env], 2)


@pytest.mark.parametrize("bad", [3, [], object()])
def test_what_is_no_environment_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="allowed: an id"):
        vectorise(bad, 2)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_episodes_in_hand_are_repeated_exactly_from_a_saved_state(mode):
    env, other = (drifting(mode, 3, limit=7) for _ in range(2))
    env.reset(seed=5), other.reset(seed=0)
    push = np.random.default_rng(0).uniform(-1, 1, (40, 3, 1))
    for t in range(17):
        env.step(push[t])
    assert other.set_state({name: array.copy() for name, array in env.get_state().items()})
    for t in range(17, 40):
        for a, b in zip(env.step(push[t])[:4], other.step(push[t])[:4], strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_environment_that_is_not_deterministic_is_found_out_when_repeated():
    class Forgetful(Drift):
        def step(self, action):
            self.x += 1e-3 * np.random.default_rng().standard_normal()
            return super().step(action)

    env, other = (Environments(vectorise([Forgetful], 1)) for _ in range(2))
    env.reset(seed=5)
    env.step(np.zeros((1, 1)))
    assert not other.set_state(env.get_state())


def test_an_environment_with_a_generator_of_its_own_kind_is_repeated_only_in_its_first_episode():
    class OldGenerator(Drift):
        np_random = property(lambda self: self.old, lambda self, value: None)

        def reset(self, *, seed=None, options=None):
            self.old = np.random.RandomState(seed) if seed is not None else self.old
            return Drift.reset(self)

    env, other = (Environments(vectorise([lambda: OldGenerator(limit=5)], 1)) for _ in range(2))
    env.reset(seed=5)
    env.step(np.zeros((1, 1)))
    assert other.set_state(env.get_state())
    for _ in range(6):
        env.step(np.zeros((1, 1)))
    assert env.get_state() == {} and not other.set_state({})


def test_an_environment_that_spends_steps_on_resets_is_refused_with_advice():
    with pytest.raises(
        ValueError, match=r"Stepper declares .*NEXT_STEP.*allowed: .*SyncVectorEnv.*SAME_STEP"
    ):
        Environments(Stepper(), far)


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (lambda o: np.full(len(o), np.nan), "is NaN for all 2 robots after a reset"),
        (lambda o: -far(o), "allowed: numbers of at least 0"),
    ],
)
def test_a_distance_that_is_never_a_number_or_negative_is_refused_at_the_reset(distance, said):
    with pytest.raises(ValueError, match=said):
        drifting(AutoresetMode.SAME_STEP, 2, 5, distance).reset(seed=0)


class Misshapen(SyncVectorEnv):
    """Two robots whose environment answers one thing in a wrong shape."""

    def __init__(self, wrong: str):
        super().__init__([lambda: Drift(1)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
        self.wrong = wrong

    def step(self, actions):
        answer = dict(
            zip(
                ("observation", "reward", "terminated", "truncated", "info"),
                super().step(actions),
                strict=True,
            )
        )
        if self.wrong == "none":
            answer["info"]["final_obs"] = []
        elif self.wrong == "final_obs":
            answer["info"]["final_obs"] = np.zeros((2, 5))
        else:
            answer[self.wrong] = np.asarray(answer[self.wrong])[:, None]
        return tuple(answer.values())


class Reusing(VectorEnv):
    """Three robots whose environment hands out the same arrays for ever, and writes into the actions."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}
    num_envs = 3
    single_observation_space, single_action_space = Drift.observation_space, Drift.action_space
    observation_space = batch_space(Drift.observation_space, 3)
    action_space = batch_space(Drift.action_space, 3)

    def __init__(self, reuse: bool):
        self.hand_out = (lambda array: array) if reuse else np.copy
        self.robots, self.observation = [Drift(7) for _ in range(3)], np.zeros((3, 2), np.float32)
        self.reward, self.distance = np.zeros((2, 3))
        self.terminated, self.truncated = np.zeros((2, 3), bool)

    def reset(self, *, seed=None, options=None):
        for i in np.flatnonzero((options or {}).get("reset_mask", np.ones(3, bool))):
            self.observation[i], _ = self.robots[i].reset(seed=None if seed is None else int(seed + i))
            self.reward[i], self.terminated[i], self.truncated[i] = 0.0, False, False
            self.distance[i] = abs(self.observation[i, 0])
        return self.hand_out(self.observation), {"gap": self.hand_out(self.distance)}

    def step(self, actions):
        for i, robot in enumerate(self.robots):
            self.observation[i], self.reward[i], self.terminated[i], self.truncated[i], _ = robot.step(
                actions[i]
            )
            self.distance[i] = abs(self.observation[i, 0])
        self.terminated[2], self.truncated[2] = self.truncated[2], self.terminated[2]  # this one falls
        actions[:] = np.nan
        flags = map(self.hand_out, (self.observation, self.reward, self.terminated, self.truncated))
        return *flags, {"gap": self.hand_out(self.distance)}


def test_an_environment_that_reuses_its_arrays_gives_the_rollouts_of_one_that_does_not():
    fresh, reused = (collect(Environments(Reusing(reuse), "gap"), seed=3) for reuse in (False, True))
    for mine, theirs in zip(fresh, reused, strict=True):
        for name, a, b in zip(Rollout._fields, mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b, name)
    assert sum(Rollout(*rollout).terminated.sum() for rollout in fresh) > 0
    assert sum(Rollout(*rollout).truncated.sum() for rollout in fresh) > 0


def test_a_distance_that_writes_into_the_observations_is_refused_by_name():
    def wraps_in_place(observation):
        observation[:, 0] %= 1.0
        return far(observation)

    with pytest.raises(ValueError, match=r"distance wraps_in_place raised ValueError: .*read-only"):
        drifting(AutoresetMode.SAME_STEP, 2, 5, wraps_in_place).reset(seed=0)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_nobody_can_write_into_what_the_policy_sees(mode):
    env = drifting(mode, 2, 5, far)
    observation, _ = env.reset(seed=0)
    for _ in range(7):
        assert not observation.flags.writeable
        observation, *_, info = env.step(np.zeros((2, 1), np.float32))
        assert not info.get("final_obs", observation).flags.writeable


@pytest.mark.parametrize("flag", [np.nan, 0.5, 2])
def test_a_flag_that_is_neither_true_nor_false_is_refused(flag):
    env = Environments(Reusing(True), far)
    env.reset(seed=0)
    env.env.terminated = np.zeros(3)
    env.env.hand_out = lambda array: np.full(3, flag) if array is env.env.terminated else array
    with pytest.raises(ValueError, match=r"gave terminated .*; allowed: true or false"):
        env.step(np.zeros((3, 1)))


def test_a_last_observation_that_is_missing_is_refused():
    env = Environments(Misshapen("none"), far)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"info\['final_obs'\]\[0\] of the environment is no observation"):
        env.step(np.zeros((2, 1)))


class Scaling(Drift):
    """Writes into the action that it is given."""

    def step(self, action):
        action *= 0.5
        return super().step(action)


def test_episodes_are_repeated_exactly_where_actions_are_written_into():
    env, other = (
        Environments(SyncVectorEnv([lambda: Scaling(50)] * 2, autoreset_mode="Disabled"), far) for _ in "ab"
    )
    env.reset(seed=4)
    for k in range(5):
        env.step(np.full((2, 1), 0.1 * k, np.float32))
    assert other.set_state(env.get_state()) is True


@pytest.mark.parametrize("wrong", ["observation", "reward", "terminated", "truncated", "final_obs"])
def test_an_environment_that_answers_in_a_wrong_shape_is_told_what_and_how(wrong):
    env = Environments(Misshapen(wrong), far)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=rf"{wrong}.* of shape \(.*allowed: \("):
        env.step(np.zeros((2, 1)))


def altered(**methods):
    """One environment like `Drift` but for these methods."""
    return SyncVectorEnv([type("Altered", (Drift,), methods)], autoreset_mode=AutoresetMode.DISABLED)


def four_things(env, action):
    return env._look(), 0.0, False, {}


def a_row_of_rewards(env, action):
    return env._look(), np.zeros(1), False, False, {}


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ({"reset": lambda env: (np.zeros(2), {})}, r"reset\(seed=0\) fails.*allowed: reset\(self"),
        ({"reset": lambda env, **_: np.zeros(2)}, r"reset\(\) gave a ndarray; allowed: \(observation, info"),
        ({"_info": lambda env: None}, r"reset\(\) gave info None; allowed: a dictionary"),
        ({"_look": lambda env: np.zeros(3)}, r"reset\(\).* of shape \(3,\); allowed: \(2,\)"),
        ({"step": four_things}, r"step\(\) gave 4 things; allowed: \(obs"),
        ({"step": a_row_of_rewards}, r"step\(\) gave reward of shape \(1,\)"),
    ],
)
def test_an_environment_that_departs_from_the_interface_is_told_where(methods, said):
    env = Environments(altered(**methods))
    with pytest.raises(ValueError, match=rf"^Altered\.{said}"):
        env.reset(seed=0), env.step(np.zeros((1, 1)))


def test_an_environment_that_fails_by_itself_is_left_to_say_so():
    def step(self, action):
        raise TypeError("the motor is of clay")

    env = Environments(altered(step=step))
    env.reset(seed=0)
    with pytest.raises(TypeError, match="of clay"):
        env.step(np.zeros((1, 1)))
