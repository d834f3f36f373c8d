"""The hand-over: the recovery alone until it is copied, then a region and a spread that grow by proof."""

import numpy as np
import pytest
from handovers import ROBOTS, START, STEPS, alone, begun, busy, feed, hand_over, handover, measured, short
from rollouts import rollout_of

from safeexplorer.acting.handover import HandedOver, Handover, handed_over
from safeexplorer.acting.interventions import SafeRegion, Situation
from safeexplorer.acting.plan import PERIOD

# -- the region ----------------------------------------------------------------------------------------------


def test_no_region_is_larger_than_the_largest_sensible_one():
    made = begun(largest_radius=0.05)
    assert made.radius == 0.05
    assert feed(made, busy(800), 5).radius == 0.05


def test_the_region_grows_when_enough_exits_ended_well():
    made = feed(begun(), busy(60), 4)  # 268 are asked for
    assert made.radius == pytest.approx(0.11)
    assert feed(made, busy(60)).radius == pytest.approx(0.11 * 1.02)


@pytest.mark.parametrize("exits, periods, growth", [(1600, 2, 0.1), (300, 4, 0.0395), (60, 5, 0.02)])
def test_it_grows_as_the_share_of_steps_that_exit_within_limits(exits, periods, growth):
    """n exits without a fall prove a share of n / (n + 1.645^2): 2703, 1067 and 268 prove 99.9, 99.75 and 99%."""
    assert feed(begun(), busy(exits), periods - 1).radius == pytest.approx(0.11)
    assert feed(begun(), busy(exits), periods).radius == pytest.approx(0.11 * (1 + growth), rel=1e-3)


def test_it_stands_still_where_nobody_or_hardly_anybody_leaves():
    assert feed(begun(), busy(0), 20).radius == pytest.approx(0.11)
    assert feed(begun(), busy(16), 30).radius == pytest.approx(0.11)  # of 8192 steps: below two in a thousand


def test_where_hardly_anybody_leaves_it_does_not_shrink_though_some_of_the_exits_fall():
    """A smaller region would be left more often: falls per step are what counts."""
    made = feed(feed(begun(), busy(8), 4), busy(8, falls=1))
    assert made.exits.safe_share(made.radius)[1] < 0.997  # of 40 exits
    assert feed(made, busy(8, falls=1)).radius == pytest.approx(0.11)
    assert feed(made, busy(8, falls=7), 2).radius < 0.11


def test_each_of_the_first_two_falls_halves_the_doubt():
    made = begun()
    for asked in (0.995, 0.9975, 0.9975):
        feed(made, busy(40, falls=1))
        assert made.asked == pytest.approx(asked)


def test_where_many_steps_exit_more_of_the_exits_must_end_well_to_a_limit():
    rate = 300 / (PERIOD - 600)  # exits per step of the policy: four times as many as one in a hundred
    assert feed(begun(), busy(300)).asked == pytest.approx(1.0 - 0.01 * 0.01 / rate)
    assert feed(begun(), busy(1600)).asked == pytest.approx(0.999)


def test_after_a_fall_the_region_waits_for_its_proof():
    made = feed(begun(), busy(60, falls=1), 1)
    assert feed(made, busy(60), 10).radius == pytest.approx(
        0.11
    )  # 1 of 660: at least 99.3% end well, asked are 99.5
    assert feed(made, busy(60), 10).radius > 0.11


def test_it_shrinks_where_exits_are_known_to_end_in_falls():
    made = begun()
    assert feed(made, busy(1000, falls=50)).radius == pytest.approx(0.11 / 1.05)  # between 4 and 6.4% fall
    # 80 of 100 fell: with 95% confidence at least 72% do, and half is the most that is taken
    assert feed(begun(), busy(100, falls=80)).radius == pytest.approx(0.11 / 1.5)


def test_it_shrinks_to_the_largest_radius_that_was_proven():
    made = feed(begun(), busy(60), 60)
    grown = made.radius
    assert grown > 0.2
    feed(made, busy(60, falls=30), 1)
    proven = made.radius
    assert proven <= grown / 1.05
    near = made.exits.near(proven)
    assert near[0] > 268 and near[1] == 0


def test_it_never_shrinks_below_half_of_the_first_region():
    assert feed(begun(), busy(100, falls=80), 20).radius == pytest.approx(0.055)


def test_falls_inside_count_as_well():
    rollout = busy(400)
    rollout.terminated[-5:, 0] = True
    made = feed(begun(), rollout)
    assert made.spread.falls == 5


def test_falls_as_frequent_as_under_the_recovery_alone_are_not_the_policys_fault():
    fell = np.zeros((STEPS, ROBOTS), bool)
    fell[::100, 0] = True  # 21
    made = hand_over(handover(), alone()._replace(terminated=fell, truncated=~fell))
    assert feed(made, busy(700)._replace(terminated=fell)).spread.falls == 0
    assert feed(begun(), busy(700)._replace(terminated=fell)).spread.falls == 21


def test_one_fall_of_the_recovery_excuses_none_of_the_policys():
    fell = np.zeros((STEPS, ROBOTS), bool)
    fell[100, 0] = True
    made = hand_over(handover(), alone()._replace(terminated=fell, truncated=~fell))
    assert feed(made, busy(700)._replace(terminated=fell)).spread.falls == 1


def test_the_radius_of_a_rollout_depends_on_the_rollouts_before_it():
    """Two that have seen the same use the same radius for what comes next, whatever that is."""
    one, other = feed(begun(), busy(600), 3), feed(begun(), busy(600), 3)
    assert one.radius == other.radius
    assert feed(one, busy(100, falls=90)).radius != feed(other, busy(900)).radius


# -- short trainings -----------------------------------------------------------------------------------------


def test_a_training_with_few_periods_left_is_in_haste_and_a_long_or_a_physical_one_never():
    assert short().haste == 5.0
    assert hand_over(handover(updates=44)).haste == 2.0  # 80 / 40
    assert hand_over(handover(updates=84)).haste == hand_over(handover(updates=1000)).haste == 1.0
    assert hand_over(handover(updates=16)).haste == 5.0  # 80 / 12 is more than the most
    assert short(haste=1.0).haste == 1.0
    assert (
        hand_over(handover(updates=44, batch=4 * PERIOD)).haste == 2.0
    )  # no period is shorter than an update
    assert hand_over(handover(updates=84, batch=PERIOD // 4)).haste == 4.0
    made = handover(updates=20)
    made.spare_the_robot()
    assert hand_over_unshaken(made).haste == 1.0


def hand_over_unshaken(made: Handover) -> Handover:
    """One period in which the copy is close, one in which it is tried."""
    assert [made.observe(alone(), np.zeros(10)) for _ in range(2)] == [False, True]
    return made


def test_in_haste_it_decides_after_a_fifth_of_the_steps():
    made = short()
    fifth = rollout_of(np.zeros((PERIOD // 4 // 5 + 1, ROBOTS), bool))
    assert made.observe(fifth, None) is False
    assert made.spread.opened == pytest.approx(-0.8)  # a calm period: from -1 by 0.2


def test_in_haste_less_is_asked_for_and_it_grows_faster():
    """99% are asked for otherwise: five times the doubt is 95%, which 52 exits prove: 52 / (52 + 1.645^2) = 0.9505."""
    made = feed(short(), busy(51))
    assert made.asked == pytest.approx(0.95)
    assert made.radius == pytest.approx(0.11)
    assert feed(short(), busy(52)).radius == pytest.approx(0.11 * (1 + 5 * 0.02))
    assert feed(hand_over(handover()), busy(52)).radius == pytest.approx(0.11)


def test_in_haste_floor_and_ceiling_open_together_beyond_the_start_until_half_of_training():
    made = feed(short(), busy(0), 5)
    low, high = made.limits()
    np.testing.assert_allclose(low, high)
    np.testing.assert_allclose(high, START - 1.0 + 5 * 0.2)
    low, high = feed(made, busy(0)).limits()  # update 10 of 20
    np.testing.assert_allclose(low, START + 0.2 - 2.0)
    np.testing.assert_allclose(high, START + 0.2)
    np.testing.assert_allclose(feed(made, busy(0), 10).limits()[1], START + np.log(5.0) - 1.0)


def test_a_fall_halves_what_was_opened_beyond_the_start_and_may_be_opened_again():
    made = short(spread_fade=0.0)
    made.spread.opened = 1.0
    assert feed(made, busy(40, falls=1)).spread.opened == pytest.approx(0.5 - 0.2)
    made.spread.opened = 1.0
    assert feed(made, busy(0)).spread.opened == pytest.approx(1.0)  # half of log 5 is less
    made.spread.opened = 0.7
    assert feed(made, busy(0), 20).spread.opened == pytest.approx(0.5 * np.log(5.0))


def test_it_goes_back_to_the_start_where_many_leave():
    made = short()
    made.spread.opened = 0.3
    assert feed(made, busy(1600)).spread.opened == pytest.approx(0.1)
    assert feed(made, busy(1600)).spread.opened == 0.0
    assert feed(made, busy(1600)).spread.opened == 0.0


def test_it_stays_narrow_where_many_leave_however_well_that_ends():
    made = feed(hand_over(handover(spread_fade=0.0)), busy(1600), 5, START)
    np.testing.assert_allclose(made.limits()[1], START - 1.0)


# -- who acts ------------------------------------------------------------------------------------------------


def test_the_policy_acts_nowhere_at_first_then_within_the_radius():
    made = handover()
    who = handed_over(SafeRegion(0.3), made)
    situation = Situation(np.zeros((3, 2)), np.array([0.05, 0.2, np.nan]), np.zeros(3))
    assert who.takes_over(situation, 0.0).tolist() == [True, True, True]
    hand_over(made)
    assert who.takes_over(situation, 0.0).tolist() == [False, True, True]


def test_with_a_clock_the_intervention_decides_after_the_imitation():
    made = handover(by_evidence=False)
    who = handed_over(SafeRegion(0.3), made)
    situation = Situation(np.zeros((2, 2)), np.array([0.2, 0.4]), np.zeros(2))
    assert who.takes_over(situation, 0.0).all()
    hand_over(made)
    assert who.takes_over(situation, 0.0).tolist() == [False, True]


def test_handing_over_twice_is_handing_over_once():
    made, region = handover(), SafeRegion(0.3)
    assert handed_over(handed_over(region, handover()), made) == HandedOver(region, made)
    assert handed_over(handed_over(region, made), None) is region


def test_state_goes_on_where_it_was():
    story = [busy(500), busy(300, falls=3), busy(2000), busy(30)]
    whole, first = measured(begun(), 0.0), measured(begun(), 0.0)
    feed(whole, story[0])
    feed(first, story[0])
    second = handover()
    second.set_state(first.get_state())
    for rollout in story[1:]:
        feed(whole, rollout, log_std=START, noise_cost=0.01)
        feed(second, rollout, log_std=START, noise_cost=0.01)
    assert whole.radius == second.radius and whole.asked == second.asked and second.spread.cheap
    np.testing.assert_array_equal(whole.limits(), second.limits())
    assert whole.report(0.99) == second.report(0.99)


def test_the_state_holds_finite_numbers_from_the_start():
    assert all(
        np.isfinite(array).all() for part in handover().get_state().values() for array in part.values()
    )
