"""The hand-over: the recovery alone until it is copied, then a region and a spread that grow by proof."""

import numpy as np
import pytest
from rollouts import rollout_of

from safeexplorer.acting.handover import PERIOD, HandedOver, Handover, Plan, handed_over
from safeexplorer.acting.interventions import SafeRegion, Situation

ROBOTS, STEPS = 4, PERIOD // 4
START = np.log(0.1 * np.array([1.0, 1.0, 0.5]))  # the wide second joint is taken as most


def handover(**changes) -> Handover:
    plan = Plan(**{"updates": 100, "largest_radius": 0.5} | changes)
    return Handover(plan, ROBOTS, np.array([1.0, 5.0, 0.5]))


def alone(steps=STEPS, distance=0.1):
    """The recovery acts throughout."""
    return rollout_of(np.ones((steps, ROBOTS)), distance=distance)


def busy(exits: int, falls: int = 0):
    """So many exits of two steps each, the last `falls` of them ending in one, in one period."""
    recovering, fell = np.zeros((2, STEPS, ROBOTS), bool)
    for number in range(exits):
        robot, start = number % ROBOTS, 1 + 4 * (number // ROBOTS)
        recovering[start : start + 2, robot] = True
        fell[start + 1, robot] = number >= exits - falls
    return rollout_of(recovering, fell)


def begun(**changes) -> Handover:
    """Handed over after one period, at a radius of 1.1 times the rest of 0.1."""
    made = handover(**changes)
    assert made.observe(alone(), np.zeros(10))
    return made


def feed(made: Handover, rollout, times: int = 1, log_std=None) -> Handover:
    for _ in range(times):
        made.observe(rollout, None, log_std)
    return made


# -- the copy ------------------------------------------------------------------------------------------------


def test_the_recovery_acts_alone_until_the_copy_is_close_enough():
    made = handover()
    assert not made.observe(alone(), np.full(10, 0.3**2))
    assert made.alone and made.imitating
    assert made.observe(alone(), np.full(10, 0.009**2))  # a tenth of the spread it starts with is 0.01
    assert not made.alone and made.begun == 2


def test_a_copy_that_no_longer_improves_is_as_good_as_it_gets():
    made = handover()
    answers = [made.observe(alone(), np.full(10, 0.2**2)) for _ in range(9)]
    assert answers == [False] * 8 + [True]


def test_a_copy_that_improves_goes_on_up_to_its_share_of_training():
    made = handover()
    answers = [made.observe(alone(), np.full(10, 0.9 ** (2 * k))) for k in range(10)]
    assert answers == [False] * 9 + [True]


def test_short_rollouts_are_judged_together():
    made = handover(updates=100_000)
    answers = [made.observe(alone(STEPS // 64), np.zeros(1)) for _ in range(64)]
    assert answers == [False] * 63 + [True]


def test_the_first_region_is_where_the_recovery_rests():
    rollout = alone()
    rollout.distance[:10] = 0.4  # on the way to its rest: half a percent
    rollout.distance[11] = np.nan
    made = handover()
    made.observe(rollout, np.zeros(1))
    assert made.radius == pytest.approx(0.11)


def test_a_recovery_that_was_seen_nowhere_gets_no_region():
    made = handover()
    made.observe(alone(distance=np.nan), np.zeros(1))
    assert made.radius == 0.0


def test_without_imitation_one_period_shows_where_the_recovery_rests():
    made = handover(begin_as_recovery=False)
    assert made.alone and not made.imitating
    assert made.observe(alone())
    assert made.radius == pytest.approx(0.11)


# -- the region ----------------------------------------------------------------------------------------------


def test_no_region_is_larger_than_the_largest_sensible_one():
    made = begun(largest_radius=0.05)
    assert made.radius == 0.05
    assert feed(made, busy(800), 5).radius == 0.05


def test_the_region_grows_when_enough_exits_ended_well():
    made = feed(begun(), busy(200))  # 268 are asked for
    assert made.radius == pytest.approx(0.11)
    rate = 200 / (PERIOD - 400)  # exits per step of the policy
    assert feed(made, busy(200)).radius == pytest.approx(0.11 * (1 + rate))


@pytest.mark.parametrize("exits, growth", [(1600, 0.1), (300, 0.0395), (60, 0.01)])
def test_it_grows_as_the_share_of_steps_that_exit_within_limits(exits, growth):
    made = feed(begun(), busy(exits), -(-268 // exits))
    assert made.radius == pytest.approx(0.11 * (1 + growth), rel=1e-3)


def test_it_stands_still_where_nobody_or_hardly_anybody_leaves():
    assert feed(begun(), busy(0), 20).radius == pytest.approx(0.11)
    assert feed(begun(), busy(7), 60).radius == pytest.approx(0.11)  # of 8192 steps: below one in a thousand


def grown() -> Handover:
    """Well beyond the first region, with thousands of exits and no fall on the way."""
    made = feed(begun(), busy(1600), 6)
    assert made.radius == pytest.approx(0.11 * 1.1**6) and made.asked == 0.99
    return made


def test_falls_that_are_new_out_here_double_what_must_be_proven_twice():
    made = grown()
    for asked in (0.995, 0.9975):
        feed(made, busy(40, falls=1))
        assert made.asked == pytest.approx(asked)


def test_after_such_a_fall_the_region_waits_for_its_proof():
    made = feed(grown(), busy(200, falls=2))
    radius = made.radius
    assert feed(made, busy(300)).radius == radius  # 2 of 500: at least 98.8% end well
    assert feed(made, busy(500), 4).radius > radius


def test_falls_that_are_usual_are_no_obstacle():
    """Eight in a thousand from the first region: asked is a share of 96.8%, and that is proven."""
    made = feed(begun(), busy(1000, falls=8))
    assert made.asked == pytest.approx(0.968)
    assert made.radius == pytest.approx(0.11 * 1.1)


def test_it_shrinks_where_exits_are_known_to_end_in_falls():
    made = begun()
    radii = [feed(made, busy(40, falls=20)).radius for _ in range(4)]
    np.testing.assert_allclose(radii, 0.11 / 1.05 ** np.arange(1, 5))


def test_falls_inside_count_as_well():
    rollout = busy(400)
    rollout.terminated[-5:, 0] = True
    made = feed(begun(), rollout)
    assert made.falls == 5


def test_falls_as_frequent_as_under_the_recovery_alone_are_not_the_policys_fault():
    fell = np.zeros((STEPS, ROBOTS), bool)
    fell[::100, 0] = True  # 21
    made = handover()
    made.observe(alone()._replace(terminated=fell), np.zeros(1))
    assert feed(made, busy(700)._replace(terminated=fell)).falls == 0
    assert feed(begun(), busy(700)._replace(terminated=fell)).falls == 21


def test_one_fall_of_the_recovery_excuses_none_of_the_policys():
    fell = np.zeros((STEPS, ROBOTS), bool)
    fell[100, 0] = True
    made = handover()
    made.observe(alone()._replace(terminated=fell), np.zeros(1))
    assert feed(made, busy(700)._replace(terminated=fell)).falls == 1


def test_the_radius_of_a_rollout_depends_on_the_rollouts_before_it():
    """Two that have seen the same use the same radius for what comes next, whatever that is."""
    one, other = feed(begun(), busy(600), 3), feed(begun(), busy(600), 3)
    assert one.radius == other.radius
    assert feed(one, busy(100, falls=90)).radius != feed(other, busy(900)).radius


# -- the spread ----------------------------------------------------------------------------------------------


def test_the_spread_starts_narrow_and_fades():
    made = begun()
    for limit in made.spread():
        np.testing.assert_allclose(limit, START)
    low, high = feed(made, busy(0), 2).spread()
    np.testing.assert_allclose(low, START - 2.0 * 2 / 99)  # two of the 99 updates that are left
    np.testing.assert_allclose(high, START - 1.0 * 2 / 99)


def test_in_a_long_training_it_fades_with_the_steps():
    made = feed(begun(updates=10_000), busy(0), 20)
    np.testing.assert_allclose(made.spread()[0], START - 2.0 * 20 * PERIOD / 4e6)


def test_the_ceiling_opens_with_the_region_where_exits_are_few():
    made = feed(begun(spread_fade=0.0), busy(60), 10, START)  # 7 in a thousand steps
    np.testing.assert_allclose(made.spread()[1], START + np.log(made.radius / made.first_radius))
    np.testing.assert_allclose(made.spread()[0], START)
    assert made.radius > made.first_radius


def test_the_ceiling_opens_no_further_than_half_the_action_range():
    made = feed(begun(spread_fade=0.0, largest_radius=np.inf), busy(60), 300, START)
    np.testing.assert_allclose(made.spread()[1], np.log([1.0, 1.0, 0.5]), atol=1e-12)


def test_the_ceiling_stands_still_where_many_leave_however_well_that_ends():
    np.testing.assert_allclose(feed(begun(spread_fade=0.0), busy(1600), 5, START).spread()[1], START)


@pytest.mark.parametrize("falls, taken", [(1, 0.2), (2, 0.4), (20, 0.6)])
def test_falls_take_the_spread_back(falls, taken):
    low, high = feed(begun(spread_fade=0.0), busy(40, falls)).spread()
    np.testing.assert_allclose(high, START - taken)
    np.testing.assert_allclose(low, high)


def test_they_take_it_back_to_a_limit():
    _, high = feed(begun(spread_fade=0.0), busy(40, 20), 10).spread()
    np.testing.assert_allclose(high, START - 1.0)


def test_a_fall_takes_back_from_what_the_spread_was_not_from_what_it_might_have_been():
    made = feed(begun(spread_fade=0.0), busy(60), 25, START)
    assert (made.spread()[1] > START).all()
    feed(made, busy(60, falls=1), 1, START - 0.3)
    np.testing.assert_allclose(made.spread()[1], START - 0.3 - 0.2)


def test_what_was_taken_comes_back_slowly_and_more_slowly_after_every_fall():
    for falls in (1, 2):
        made = feed(begun(spread_fade=0.0), busy(40, falls))
        feed(made, busy(0), 6)
        np.testing.assert_allclose(made.spread()[1], START - 0.2 * falls + 6 * 0.02 / (1 + falls / 2))


def test_a_spread_that_is_not_held_has_no_limits_but_while_the_recovery_is_copied():
    made = handover(hold_spread=False)
    assert made.spread() is not None
    made.observe(alone(), np.zeros(1))
    assert made.spread() is None


# -- who acts ------------------------------------------------------------------------------------------------


def test_the_policy_acts_nowhere_at_first_then_within_the_radius():
    made = handover()
    who = handed_over(SafeRegion(0.3), made)
    situation = Situation(np.zeros((3, 2)), np.array([0.05, 0.2, np.nan]), np.zeros(3))
    assert who.takes_over(situation, 0.0).tolist() == [True, True, True]
    made.observe(alone(), np.zeros(1))
    assert who.takes_over(situation, 0.0).tolist() == [False, True, True]


def test_with_a_clock_the_intervention_decides_after_the_imitation():
    made = handover(by_evidence=False)
    who = handed_over(SafeRegion(0.3), made)
    situation = Situation(np.zeros((2, 2)), np.array([0.2, 0.4]), np.zeros(2))
    assert who.takes_over(situation, 0.0).all()
    made.observe(alone(), np.zeros(1))
    assert who.takes_over(situation, 0.0).tolist() == [False, True]


def test_handing_over_twice_is_handing_over_once():
    made, region = handover(), SafeRegion(0.3)
    assert handed_over(handed_over(region, handover()), made) == HandedOver(region, made)
    assert handed_over(handed_over(region, made), None) is region


def test_state_goes_on_where_it_was():
    story = [busy(500), busy(300, falls=3), busy(2000), busy(30)]
    whole, first = begun(), begun()
    feed(whole, story[0])
    feed(first, story[0])
    second = handover()
    second.set_state(first.get_state())
    for rollout in story[1:]:
        feed(whole, rollout, log_std=START)
        feed(second, rollout, log_std=START)
    assert whole.radius == second.radius and whole.asked == second.asked
    np.testing.assert_array_equal(whole.spread(), second.spread())
    assert whole.report(0.99) == second.report(0.99)


def test_the_state_holds_finite_numbers_from_the_start():
    assert all(
        np.isfinite(array).all() for part in handover().get_state().values() for array in part.values()
    )
