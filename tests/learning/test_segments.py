"""Recovery segments against a brute-force reference in plain Python."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from safeexplorer.acting.trajectory import Rollout, Segments, blank_rollout
from safeexplorer.learning.segments import find_segments

compiled = jax.jit(find_segments)


def rollout_of(recovering, terminated, truncated) -> Rollout:
    """Masks [T, E] as a rollout; the reward of step t in environment e is -(100 t + e) - 1."""
    shape = np.shape(recovering)
    t, e = np.indices(shape)
    return blank_rollout(
        shape,
        recovering=np.array(recovering, bool),
        terminated=np.array(terminated, bool),
        truncated=np.array(truncated, bool) & ~np.array(terminated, bool),
        task_reward=-(100.0 * t + e) - 1.0,
    )


def value_after(shape) -> np.ndarray:
    """V(s_{t+1}) = 100 t + e + 0.5: tells at a glance which step a segment bootstrapped from."""
    t, e = np.indices(shape)
    return 100.0 * t + e + 0.5


def reference(rollout: Rollout, next_value: np.ndarray) -> Segments:
    """Walk along each environment; collect the steps of a segment; when it ends, fill in what is known."""
    steps, width = rollout.recovering.shape
    start, succeeded, terminal = np.zeros((3, steps, width), bool)
    length, remaining, end_value = np.zeros((3, steps, width))
    for e in range(width):
        members: list[int] = []
        for t in range(steps):
            if not rollout.recovering[t, e]:
                continue
            members.append(t)
            episode_over = rollout.terminated[t, e] or rollout.truncated[t, e]
            segment_goes_on = t + 1 < steps and rollout.recovering[t + 1, e] and not episode_over
            if segment_goes_on:
                continue
            over, fell = rollout.terminated[t, e], rollout.terminated[t, e] and not rollout.reached[t, e]
            start[members[0], e] = True
            for k, member in enumerate(members):
                length[member, e] = len(members)
                remaining[member, e] = len(members) - k
                succeeded[member, e] = not fell
                terminal[member, e] = over
                end_value[member, e] = rollout.task_reward[t, e] if over else next_value[t, e]
            members = []
    return Segments(start, length, remaining, succeeded, terminal, end_value)


def assert_same(found: Segments, expected: Segments) -> None:
    for name, ours, theirs in zip(Segments._fields, found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs, err_msg=name)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (12, 4)])
def test_random_masks(shape):
    mask = hnp.arrays(bool, shape)
    rare = hnp.arrays(np.int8, shape, elements=st.integers(0, 4)).map(lambda x: x == 0)

    @settings(max_examples=150, deadline=None)
    @given(recovering=mask | rare.map(np.logical_not), terminated=rare, truncated=rare)
    def check(recovering, terminated, truncated):
        rollout = rollout_of(recovering, terminated, truncated)
        next_value = value_after(shape)
        assert_same(compiled(rollout, next_value), reference(rollout, next_value))

    check()


def column(recovering: str, terminated: int | None = None, truncated: int | None = None) -> Segments:
    """The segments of one environment, drawn: '.' a main step, 'r' a recovery step."""
    steps = len(recovering)
    at = np.arange(steps)
    rollout = rollout_of(
        np.array([[c == "r"] for c in recovering]),
        (at == (-1 if terminated is None else terminated))[:, None],
        (at == (-1 if truncated is None else truncated))[:, None],
    )
    found = compiled(rollout, value_after((steps, 1)))
    return Segments(*(np.asarray(x)[:, 0] for x in found))


def test_re_entry():
    found = column(".rrr..")
    assert found.start.tolist() == [False, True, False, False, False, False]
    assert found.length.tolist() == [0, 3, 3, 3, 0, 0]
    assert found.remaining.tolist() == [0, 3, 2, 1, 0, 0]
    assert found.succeeded.tolist() == [False, True, True, True, False, False]
    assert found.end_value[1] == 300.5  # V(s_4), the state after step 3


def test_fall_fails_the_whole_segment_and_carries_the_terminal_reward():
    found = column(".rrr..", terminated=3)
    assert not found.succeeded.any()
    assert found.end_value.tolist() == [0, -301, -301, -301, 0, 0]  # r_3 = -(100 * 3) - 1


def test_fall_of_the_main_policy_fails_no_segment():
    found = column(".rr.rr", terminated=3)
    assert found.succeeded.tolist() == [False, True, True, False, True, True]


def test_an_episode_that_begins_outside_after_a_fall_is_a_new_segment():
    found = column("rrrrrr", terminated=2)
    assert found.start.tolist() == [True, False, False, True, False, False]
    assert found.length.tolist() == [3] * 6
    assert found.succeeded.tolist() == [False] * 3 + [True] * 3


def test_time_limit_is_a_tentative_success_and_ends_the_segment():
    found = column("rrrrr.", truncated=1)
    assert found.length.tolist() == [2, 2, 3, 3, 3, 0]
    assert found.succeeded.tolist() == [True] * 5 + [False]
    assert found.end_value.tolist() == [100.5, 100.5, 400.5, 400.5, 400.5, 0]


def test_cut_by_the_end_of_the_rollout_bootstraps_from_the_next_observation():
    found = column("...rrr")
    assert found.succeeded.tolist() == [False] * 3 + [True] * 3
    assert found.end_value[3] == 500.5


def test_running_at_the_start_of_the_rollout_starts_there():
    found = column("rr....")
    assert found.start.tolist() == [True] + [False] * 5
    assert found.length[0] == 2


def test_re_entry_followed_by_an_exit_on_the_next_step_is_a_new_segment():
    found = column("rr.rr.")
    assert found.start.tolist() == [True, False, False, True, False, False]
    assert found.end_value.tolist() == [100.5, 100.5, 0, 400.5, 400.5, 0]


def test_no_recovery_no_segment():
    assert not any(np.any(x) for x in column("......", terminated=2))


def test_a_nan_value_after_a_fall_stays_out():
    rollout = rollout_of([[1], [1], [0]], [[0], [1], [0]], [[0], [0], [0]])
    found = compiled(rollout, np.array([[1.0], [np.nan], [2.0]]))
    np.testing.assert_array_equal(np.asarray(found.end_value)[:, 0], [-101.0, -101.0, 0.0])
