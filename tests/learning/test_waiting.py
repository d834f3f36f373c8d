"""The gate that waits: nothing of a segment is imitated before its outcome is known, and nothing of one that fell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollouts import columns, rollout_of

from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.waiting import WaitingRows


def rows() -> WaitingRows:
    return WaitingRows(64, observation_size=1, action_size=1)


def numbered(rollout: Rollout, first: int = 0, outside_next=None) -> Rollout:
    """With a number of its own for every step, 10 t + robot from `first` on, as observation and action."""
    t, robot = np.indices(rollout.recovering.shape)
    number = (10.0 * (t + first) + robot)[..., None].astype(np.float32)
    outside = np.concatenate([rollout.recovering[1:], rollout.recovering[-1:]])
    if outside_next is not None:
        outside[-1] = outside_next
    return rollout._replace(observation=number, action=-number, next_outside=outside)


def released(waiting: WaitingRows, count: int = 64) -> list[float]:
    got = waiting.release(count)
    assert len(got.weight) == count
    np.testing.assert_array_equal(got.observation, -got.action)
    return got.observation[got.weight > 0, 0].tolist()


def test_a_segment_that_the_rollout_shows_whole_does_not_wait():
    waiting = rows()
    rollout = waiting.hold_back(numbered(rollout_of(columns(".xx.", "xxxx"), columns("....", "...x"))))
    assert not rollout.undecided.any() and released(waiting) == []


def test_a_cut_segment_waits_and_is_released_when_it_came_back():
    waiting = rows()
    assert waiting.hold_back(numbered(rollout_of(columns(".xxx")))).undecided[:, 0].tolist() == [0, 1, 1, 1]
    assert released(waiting) == [] and waiting.waiting == 3
    waiting.hold_back(numbered(rollout_of(columns("xx..")), 4))
    assert released(waiting) == [10, 20, 30] and waiting.waiting == 0
    assert released(waiting) == []


@pytest.mark.parametrize(("next_rollout", "fell"), [("xx..", ".x.."), ("x...", "x...")])
def test_nothing_of_a_segment_that_fell_is_released(next_rollout, fell):
    waiting = rows()
    waiting.hold_back(numbered(rollout_of(columns(".xxx"))))
    waiting.hold_back(numbered(rollout_of(columns(next_rollout), columns(fell)), 4))
    assert released(waiting) == [] and waiting.waiting == 0


def test_a_segment_over_many_rollouts_is_held_as_long():
    waiting = rows()
    for k in range(3):
        assert waiting.hold_back(numbered(rollout_of(columns("xx")), 2 * k)).undecided.all()
        assert released(waiting) == []
    waiting.hold_back(numbered(rollout_of(columns("x."), truncated=columns("x.")), 6))
    assert released(waiting) == [0, 10, 20, 30, 40, 50]


def test_a_re_entry_with_the_last_step_is_an_outcome():
    waiting = rows()
    waiting.hold_back(numbered(rollout_of(columns("xx"))))
    rollout = waiting.hold_back(numbered(rollout_of(columns("xx")), 2, outside_next=[False]))
    assert not rollout.undecided.any() and released(waiting) == [0, 10]


def test_robots_are_told_apart():
    waiting = rows()
    waiting.hold_back(numbered(rollout_of(columns(".x", ".x", "xx"))))
    waiting.hold_back(numbered(rollout_of(columns("x.", "x.", "xx"), columns("..", "x.", "..")), 2))
    assert released(waiting) == [10] and waiting.waiting == 4


def test_more_than_fits_into_an_update_is_released_later_the_oldest_first():
    waiting = rows()
    waiting.hold_back(numbered(rollout_of(columns("xxxx"))))
    waiting.hold_back(numbered(rollout_of(columns("....")), 4))
    assert released(waiting, 3) == [0, 10, 20]
    assert released(waiting, 3) == [30]


def test_the_oldest_give_way_when_there_is_no_room():
    waiting = WaitingRows(3, 1, 1)
    waiting.hold_back(numbered(rollout_of(columns("xxxxx"))))
    waiting.hold_back(numbered(rollout_of(columns(".")), 5))
    assert released(waiting) == [20, 30, 40]


def test_new_episodes_leave_no_outcome_behind():
    waiting = rows()
    waiting.hold_back(numbered(rollout_of(columns("xx"))))
    waiting.cut()
    waiting.hold_back(numbered(rollout_of(columns("..")), 2))
    assert released(waiting) == []


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 5, 24]))
def test_at_any_rollout_length_exactly_the_steps_of_segments_that_ended_well_are_imitated(seed, length):
    """A hundred steps of two robots, cut into rollouts of any length, against one look at the whole."""
    rng = np.random.default_rng(seed)
    total = 120
    recovering = rng.random((total, 2)).cumsum(0) % 3 > 1.2
    fell = recovering & (rng.random((total, 2)) < 0.1)
    over = ~fell & (rng.random((total, 2)) < 0.05)
    recovering[-1] = False  # every segment has an outcome
    whole = numbered(rollout_of(recovering, fell, over))
    waiting, imitated = WaitingRows(512, 1, 1), []
    for begin in range(0, total, length):
        part = Rollout(*(x[begin : begin + length] if isinstance(x, np.ndarray) else x for x in whole))
        part = waiting.hold_back(part)
        decided = part.recovering & ~part.undecided
        imitated += part.observation[decided & good_steps(part)][:, 0].tolist()
        imitated += released(waiting, 512)
    expected = whole.observation[recovering & good_steps(whole)][:, 0]
    assert sorted(imitated) == sorted(expected.tolist())


def good_steps(rollout: Rollout) -> np.ndarray:
    """Steps whose segment does not end in a fall, as far as the rollout shows."""
    good = np.zeros_like(rollout.recovering)
    for robot in range(good.shape[1]):
        ends_well = True
        for t in reversed(range(len(good))):
            last = t + 1 == len(good) or not rollout.recovering[t + 1, robot]
            if last or rollout.terminated[t, robot] or rollout.truncated[t, robot]:
                ends_well = not rollout.terminated[t, robot]
            good[t, robot] = rollout.recovering[t, robot] and ends_well
    return good
