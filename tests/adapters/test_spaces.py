"""Observations of any shape in rows, several choices as one, and back."""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Sequence, Text, Tuple, flatten
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array
from toys import Drift, far

from safeexplorer import SafeExplorer, SafeRegion, StateShield
from safeexplorer.adapters.environments import Environments
from safeexplorer.adapters.spaces import (
    columns_of,
    describe_space,
    flat_action_space,
    from_space,
    in_space,
    rows_of,
    sizes_of,
    space_of,
)
from safeexplorer.recovery import RecoveryError

ROW = Box(-1.0, 1.0, (3,), np.float32)
SMALL = {"rollout_steps": 16, "minibatches": 2, "epochs": 1, "hidden": (8,), "num_envs": 2}


class Pose(Drift):
    """`Drift` that shows a dictionary and is pushed by two switches of three positions."""

    observation_space = Dict({"where": Box(-9.0, 9.0, (1, 1)), "late": Discrete(2)})
    action_space = MultiDiscrete([3, 3])

    def push(self, action) -> float:
        assert self.action_space.contains(action)
        return (int(action[0]) - 1 + int(action[1]) - 1) / 2

    def _look(self):
        return {"where": np.full((1, 1), np.clip(self.x, -9, 9), np.float32), "late": int(self.t > 6)}


def column_of_x(observation: np.ndarray) -> np.ndarray:
    """Gymnasium flattens a dictionary in the order of its keys: two numbers for `late`, then `where`."""
    return np.abs(observation[:, 2])


def push_back(observation: np.ndarray) -> np.ndarray:
    return np.repeat(1 - np.sign(observation[:, 2:3]).astype(int), 2, axis=1)


@pytest.mark.parametrize(
    ("space", "sizes"),
    [
        (ROW, (3, 1, 0)),
        (Box(0, 255, (4, 5, 2), np.uint8), (40, 1, 0)),
        (Discrete(7), (7, 1, 0)),
        (Dict({"a": ROW, "b": Discrete(4)}), (7, 1, 0)),
    ],
)
def test_observations_that_gymnasium_can_flatten_are_rows(space, sizes):
    assert sizes_of(space, Box(-1, 1, (1,)))[:2] == sizes[:2]


def test_the_columns_of_a_row_are_where_gymnasium_puts_each_part():
    space = Dict({"b": Tuple((Discrete(3), ROW)), "a": Box(-1, 1, (2, 2))})
    assert columns_of(space) == "a 0:4, b[0] 4:7, b[1] 7:10"
    sample = space.sample()
    np.testing.assert_array_equal(flatten(space, sample)[7:10], sample["b"][1])
    assert columns_of(Discrete(4)) == "Discrete(4) 0:4"


class Mission(gymnasium.Space):
    """A space of somebody's own, which Gymnasium cannot flatten."""


@pytest.mark.parametrize(
    ("space", "part"),
    [(Text(5), "it"), (Sequence(ROW), "it"), (Dict(goal=Dict(text=Text(5)), x=ROW), "goal.text"),
     (Dict(mission=Mission(), x=ROW), "mission"), (Tuple((ROW, Text(3))), r"\[1\]")],
)  # fmt: skip
def test_observations_that_are_no_numbers_are_refused_with_the_part_and_what_to_wrap(space, part):
    with pytest.raises(ValueError, match=rf", and {part} cannot become numbers; .*FilterObservation"):
        sizes_of(space, Box(-1, 1, (1,)))


@pytest.mark.parametrize(
    "space", [MultiDiscrete([2, 3, 4]), MultiBinary(3), MultiDiscrete([3, 2], start=[5, -1])]
)
def test_every_combination_of_choices_is_one_choice_and_back(space):
    count = flat_action_space(space).n
    rows = np.arange(count)[:, None]
    actions = in_space(rows, space)
    assert all(space.contains(action) for action in actions)
    assert len({tuple(action) for action in actions}) == count == np.prod([*map(len, ranges(space))])
    np.testing.assert_array_equal(from_space(actions, space), rows)


def ranges(space) -> list[list[int]]:
    if isinstance(space, MultiBinary):
        return [[0, 1]] * space.shape[0]
    return [list(range(s, s + n)) for s, n in zip(space.start, space.nvec, strict=True)]


def test_choices_are_numbered_with_the_last_one_changing_fastest():
    space = MultiDiscrete([2, 3])
    np.testing.assert_array_equal(
        in_space(np.arange(6)[:, None], space), list(itertools.product(range(2), range(3)))
    )


def test_too_many_combinations_are_refused():
    with pytest.raises(ValueError, match="4096 combinations"):
        flat_action_space(MultiBinary(13))


def test_an_action_outside_its_choices_is_an_error_not_another_action():
    with pytest.raises(ValueError, match="outside"):
        from_space(np.array([[0, 3]]), MultiDiscrete([2, 3]))


def test_a_box_of_several_axes_keeps_its_shape_and_bounds():
    space = Box(np.array([[-1, -2], [-3, -4]], np.float32), np.ones((2, 2), np.float32))
    actions = in_space(np.full((3, 4), -9.0), space)
    assert actions.shape == (3, 2, 2)
    np.testing.assert_array_equal(actions[0], space.low)


@pytest.mark.parametrize(
    "space",
    [
        *(ROW, Discrete(3, start=2), MultiDiscrete([2, 3]), MultiBinary(4), Box(-1, 1, (2, 2))),
        Dict(OrderedDict(z=Box(-1, 1, (2,)), a=Tuple((Discrete(2), MultiBinary(2))))),
    ],
)
def test_spaces_survive_as_plain_values(space):
    again = space_of(json.loads(json.dumps(describe_space(space))))
    again.seed(1), space.seed(1)
    one, other = space.sample(), again.sample()
    assert again == space and np.array_equal(flatten(space, one), flatten(again, other))


@pytest.mark.parametrize(
    "space",
    [
        *(ROW, Discrete(3, start=2), MultiDiscrete([2, 3]), MultiBinary(4), Box(0, 255, (2, 2), np.uint8)),
        Dict(OrderedDict(z=Box(-1, 1, (2,)), a=Tuple((Discrete(2), MultiBinary(2))))),
    ],
)
def test_what_is_handed_to_predict_may_be_one_or_many_raw_or_flat(space):
    space.seed(0)
    samples = [space.sample() for _ in range(4)]
    flat = np.stack([flatten(space, sample) for sample in samples])
    batch = concatenate(space, samples, create_empty_array(space, 4))
    for handed, expected, alone in (
        (samples[2], flat[2:3], True),
        (flat[2], flat[2:3], True),
        (batch, flat, False),
        (flat, flat, False),
    ):
        rows, single = rows_of(handed, space)
        np.testing.assert_array_equal(rows, expected)
        assert single == alone


def test_observations_beyond_the_bounds_or_in_another_precision_are_understood():
    space = Dict(a=Box(-1, 1, (2,), np.float32))
    np.testing.assert_array_equal(rows_of({"a": np.array([3.0, 0.5])}, space)[0], [[3.0, 0.5]])


@pytest.mark.parametrize(
    ("handed", "said"),
    [
        ({"b": np.zeros(2)}, "observation has no 'a'"),
        ({"a": np.zeros(3)}, r"observation has shape \(3,\); allowed: \(2,\) or \(k, 2\)"),
        ("left", "observation has shape"),
        ([{}, [1]], "observation is"),
    ],
)
def test_what_is_no_observation_is_refused_with_what_is(handed, said):
    with pytest.raises(ValueError, match=said):
        rows_of(handed, Dict(a=Box(-1, 1, (2,))))


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_dictionary_and_two_switches_train_save_and_predict(mode, tmp_path, capsys):
    env = SyncVectorEnv([Pose, Pose], autoreset_mode=mode)
    region = SafeRegion(distance=column_of_x, radius=0.4)
    agent = SafeExplorer(env, recovery=push_back, region=region, **SMALL)
    assert "rows of 3 numbers; in their columns: late 0:2, where 2:3" in capsys.readouterr().err
    agent.learn(64)
    raw, _ = Pose().reset(seed=0)
    action, _ = agent.predict(raw, deterministic=True)
    assert agent.action_space.contains(action)
    agent.save(tmp_path / "agent")
    loaded = SafeExplorer.load(tmp_path / "agent")
    flat = gymnasium.spaces.flatten(Pose.observation_space, raw)
    for observation in (raw, flat):
        np.testing.assert_array_equal(loaded.predict(observation, deterministic=True)[0], action)


def test_a_distance_along_the_wrong_axis_is_found_although_there_are_as_many_robots_as_numbers():
    env = Environments(SyncVectorEnv([Drift, Drift]), lambda observation: np.abs(observation[0]))
    with pytest.raises(ValueError, match=r"distance gave the shape \(2,\) for 3 observations"):
        env.reset(seed=0)


def test_a_recovery_and_a_shield_along_the_wrong_axis_are_found_before_training():
    region = SafeRegion(distance=far, radius=0.4)
    wrong = SafeExplorer([Drift] * 2, recovery=lambda o: -np.sign(o[0])[:, None], region=region, **SMALL)
    with pytest.raises(RecoveryError, match=r"shape \(2, 1\), expected \(3, 1\)"):
        wrong.learn(64)
    shield = StateShield(lambda observation: observation[0] > 0.5)
    wrong = SafeExplorer([Drift] * 2, recovery=lambda o: -np.sign(o[:, :1]), intervention=shield, **SMALL)
    with pytest.raises(ValueError, match=r"takes_over gave the shape \(2,\) for 3 robots"):
        wrong.learn(64)
