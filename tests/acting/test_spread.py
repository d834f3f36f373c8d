"""How widely the policy may explore: what opens it, what takes it back, and what noise costs."""

import numpy as np
import pytest
from handovers import START, begun, busy, feed, hand_over, handover, measured, short

from safeexplorer.acting.spread import FEWEST, UPDATES, NoiseCosts


def test_the_ceiling_starts_narrow_opens_where_few_leave_and_fades_in_the_second_half():
    made, narrow = hand_over(handover()), []
    for _ in range(6):
        narrow.append(made.limits()[1] - START)
        feed(made, busy(8))
    np.testing.assert_allclose(
        narrow, np.tile([[-1.0], [-0.8], [-0.6], [-0.4], [-0.2], [0.0]], 3), atol=1e-12
    )
    np.testing.assert_allclose(feed(made, busy(8), 75 - made.update).limits()[1], START - 0.5)
    np.testing.assert_allclose(feed(made, busy(8), 25).limits()[1], START - 1.0)


def test_the_floor_fades_in_the_first_half():
    made = begun()
    np.testing.assert_allclose(feed(made, busy(8), 25 - made.update).limits()[0], START - 1.0)
    np.testing.assert_allclose(feed(made, busy(8), 75).limits()[0], START - 2.0)


@pytest.mark.parametrize("falls, taken", [(1, 0.2), (2, 0.4), (20, 0.6)])
def test_falls_take_the_spread_back(falls, taken):
    low, high = feed(begun(spread_fade=0.0), busy(40, falls)).limits()
    np.testing.assert_allclose(high, START - taken)
    np.testing.assert_allclose(low, high)


def test_they_take_it_back_to_a_limit():
    _, high = feed(begun(spread_fade=0.0), busy(40, 20), 10).limits()
    np.testing.assert_allclose(high, START - 0.7)


def test_a_fall_takes_back_from_what_the_spread_was_not_from_what_it_might_have_been():
    made = feed(begun(spread_fade=0.0), busy(60, falls=1), 1, START - 0.3)
    np.testing.assert_allclose(made.limits()[1], START - 0.3 - 0.2)


def test_what_was_taken_comes_back_slowly_and_more_slowly_after_every_fall():
    for falls in (1, 2):
        made = feed(begun(spread_fade=0.0), busy(40, falls))
        feed(made, busy(0), 6)
        np.testing.assert_allclose(made.limits()[1], START - 0.2 * falls + 6 * 0.2 / (1 + 10 * falls))


def test_falls_take_nothing_back_where_noise_is_known_to_be_cheap():
    made = feed(measured(begun(spread_fade=0.0), 0.03), busy(40, falls=3), 1, START - 0.3)
    np.testing.assert_allclose(made.limits()[1], START)
    for dear in (0.04, 0.06, None):  # known too badly, known not to be, not known
        made = begun(spread_fade=0.0)
        if dear is not None:
            measured(made, dear)
        np.testing.assert_allclose(feed(made, busy(40, falls=1)).limits()[1], START - 0.2)


def test_a_fall_of_a_physical_robot_narrows_its_policy_whatever_noise_costs():
    made = measured(begun(spread_fade=0.0), 0.0)
    made.spread.cheap = True  # as it was in a simulator
    made.spare_the_robot()
    np.testing.assert_allclose(feed(made, busy(40, falls=1)).limits()[1], START - 0.2)


def test_what_falls_took_comes_back_as_it_first_came_and_the_floor_follows():
    made = feed(begun(), busy(40, falls=3))
    before = made.spread.opened
    low, high = feed(measured(made, 0.0), busy(0)).limits()
    np.testing.assert_allclose(high, START + before + 0.2)
    np.testing.assert_allclose(high - low, 0.2)


def test_without_a_fall_cheap_noise_changes_nothing():
    made, other = measured(begun(), 0.0), begun()
    for each in (made, other):
        feed(each, busy(8), 20)
    np.testing.assert_array_equal(made.limits(), other.limits())


def test_cheap_noise_stays_cheap_until_it_is_known_not_to_be():
    made = feed(measured(begun(), 0.03), busy(0))
    assert made.spread.cheap
    assert feed(measured(made, 0.06), busy(0)).spread.cheap
    assert not feed(measured(made, 0.07), busy(0)).spread.cheap
    assert not feed(measured(made, 0.04), busy(0)).spread.cheap


def test_late_in_training_noise_becomes_dear_but_not_cheap():
    late = feed(begun(), busy(0), 60)
    assert not feed(measured(late, 0.0), busy(0)).spread.cheap
    late.spread.cheap = True
    assert feed(measured(late, 0.0), busy(0)).spread.cheap
    assert not feed(measured(late, 0.1), busy(0)).spread.cheap


def test_what_haste_opened_a_fall_halves_even_where_noise_is_cheap():
    made = measured(short(spread_fade=0.0), 0.0)
    made.spread.opened = 1.0
    assert feed(made, busy(40, falls=1)).spread.opened == pytest.approx(0.5)
    made.spread.opened = -0.5
    assert feed(made, busy(40, falls=1)).spread.opened == pytest.approx(-0.5)


def test_a_spread_that_is_not_held_has_no_limits_but_while_the_recovery_is_copied():
    made = handover(hold_spread=False)
    assert made.limits() is not None
    hand_over(made)
    assert made.limits() is None


def test_costs_of_noise_are_known_from_the_last_updates_and_not_from_a_few():
    noise = NoiseCosts()
    for number in range(FEWEST):
        assert not noise.known and noise.interval() == (-np.inf, np.inf)
        noise.add(2.0 * (number % 2))
    half = 1.645 * np.sqrt(FEWEST / (FEWEST - 1)) / np.sqrt(FEWEST)
    assert noise.known and noise.interval() == (pytest.approx(1.0 - half), pytest.approx(1.0 + half))
    for _ in range(UPDATES):
        noise.add(0.3)
    assert noise.interval() == (pytest.approx(0.3), pytest.approx(0.3))
    other = NoiseCosts()
    other.set_state(noise.get_state())
    noise.add(9.0)
    assert other.interval() == (pytest.approx(0.3), pytest.approx(0.3))
    other.add(9.0)
    assert other.interval() == noise.interval()
