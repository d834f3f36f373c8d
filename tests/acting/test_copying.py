"""Before the hand-over: the recovery alone, shaken and copied; then its copy, tried where it rests."""

import numpy as np
import pytest
from rollouts import rollout_of

from safeexplorer.acting.copying import Copying, Rehearsal
from safeexplorer.acting.plan import PERIOD, Plan

ROBOTS, STEPS = 4, PERIOD // 4


def copying(**changes) -> Copying:
    return Copying(Plan(**{"updates": 100, "largest_radius": 0.5} | changes))


def alone(steps=STEPS, distance=0.1):
    """The recovery acts throughout."""
    return rollout_of(np.ones((steps, ROBOTS)), distance=distance)


def fallen(falls: int, episodes: int = 100):
    """The recovery acts throughout; so many of the episodes end in a fall, the others at the time limit."""
    ended = np.arange(STEPS * ROBOTS).reshape(STEPS, ROBOTS) < episodes
    fell = np.arange(STEPS * ROBOTS).reshape(STEPS, ROBOTS) < falls
    return alone()._replace(terminated=fell, truncated=ended & ~fell)


def leaving(exits: int):
    """So many of the steps inside the region lead out of it, for one step each."""
    rollout = alone()
    rollout.distance[1 : 2 * exits + 1 : 2, 0] = 0.4
    return rollout


def tell(made: Copying, rollouts, error: float = 0.0, first: int = 1) -> list[bool]:
    """The answers to one rollout after the other, with the same error of the copy on each."""
    return [made.observe(rollout, np.full(10, error**2), first + k) for k, rollout in enumerate(rollouts)]


def tried(**changes) -> Copying:
    """A copy that is close enough after three periods, and is to be tried now."""
    made = copying(**changes)
    assert tell(made, [alone()] * 3) == [False] * 3 and made.trying
    return made


# -- the recovery alone --------------------------------------------------------------------------------------


def test_the_recovery_acts_alone_until_the_copy_is_close_enough():
    made = copying()
    tell(made, [alone()] * 3, error=0.3)
    assert not made.trying
    tell(made, [alone()], error=0.009, first=4)  # a tenth of the spread it starts with is 0.01
    assert made.trying


def test_the_recovery_is_shaken_more_and_more_and_the_copy_is_judged_when_it_moves_like_the_policy():
    made, sent = copying(), []
    for update in range(3):
        sent.append((made.rehearsal(gaussian=True).shaking, made.rehearsal(gaussian=False).shaking))
        assert not made.trying
        made.observe(alone(), np.zeros(10), update)
    assert sent == [(0.0, 0.0), (0.5, 0.05), (1.0, 0.1)]  # of choices a tenth, the spread it starts with
    assert made.trying


def test_it_is_shaken_less_where_that_makes_it_fall_twice():
    made, shaken = copying(), []
    for update, falls in enumerate((0, 0, 1, 0, 1, 0, 0)):
        made.observe(fallen(falls), np.full(10, 0.04), update)
        shaken.append(made.shake)
    assert shaken == [0.5, 1.0, 0.5, 1.0, 0.5, 0.5, 0.5] and made.steady


def test_falls_that_it_has_without_noise_are_no_reason_to_shake_it_less():
    made = copying()
    tell(made, [fallen(3), fallen(6)], error=0.2)
    assert made.shake == 1.0
    tell(made, [fallen(7)], error=0.2)  # more than twice as many
    assert made.shake == 0.5


def test_errors_under_less_noise_do_not_make_a_copy_stall():
    made = copying(updates=1000)
    for update, error in enumerate([0.01, 0.02] + [0.2] * 8):  # worse with every step of the noise
        made.observe(alone(), np.full(10, error**2), update)
        assert not made.trying
    tell(made, [alone()], error=0.2)  # the same nine times
    assert made.trying


def test_a_recovery_that_falls_more_often_than_not_is_told_and_not_waited_for():
    with pytest.warns(UserWarning, match="the recovery alone fell in 80 of 100 episodes"):
        assert tell(copying(), [fallen(80)], error=0.2) == [True]
    assert tell(copying(), [fallen(40)], error=0.2) == [False]


def test_a_copy_that_no_longer_improves_is_as_good_as_it_gets():
    made = copying()
    tell(made, [alone()] * 10, error=0.2)
    assert not made.trying  # eight periods with the same noise, after two with less
    tell(made, [alone()], error=0.2, first=11)
    assert made.trying


def test_a_copy_that_improves_goes_on_for_two_thirds_of_what_imitation_may_take():
    made = copying()
    for update in range(1, 21):
        assert not made.trying
        made.observe(alone(), np.full(10, 0.9 ** (2 * update)), update)
    assert made.trying


def test_short_rollouts_are_judged_together():
    made = copying(updates=100_000)
    tell(made, [alone(STEPS // 64)] * (3 * 64 - 1))
    assert not made.trying
    tell(made, [alone(STEPS // 64)])
    assert made.trying


def test_the_first_region_is_where_the_recovery_rests():
    rollout, made = alone(), copying()
    rollout.distance[:80] = 0.4  # on the way to its rest: four percent
    rollout.distance[11] = np.nan
    tell(made, [rollout] * 3)
    assert made.radius == pytest.approx(0.11)


def test_without_imitation_one_period_shows_where_the_recovery_rests():
    made = copying(begin_as_recovery=False)
    assert made.observe(alone(), None, 1)
    assert made.radius == pytest.approx(0.11) and made.rehearsal(True) == Rehearsal()


# -- the copy, tried -----------------------------------------------------------------------------------------


def test_a_copy_is_tried_where_the_recovery_rests_with_the_noise_that_the_policy_begins_with():
    made = tried()
    assert made.rehearsal(gaussian=True) == Rehearsal(0.0, pytest.approx(0.11), pytest.approx(np.exp(-1.0)))
    assert made.rehearsal(gaussian=False) == Rehearsal(0.0, pytest.approx(0.11), 0.1)


@pytest.mark.parametrize(("exits", "done"), [(81, True), (82, False)])
def test_the_policy_takes_over_where_fewer_than_one_of_the_copys_steps_in_a_hundred_leave(exits, done):
    """Of the 4 (2048 - 1) steps with a next one as many are outside: 81 of 8107 are 0.00999, 82 of 8106 0.0101."""
    assert tell(tried(), [leaving(exits)], first=4) == [done]


def test_the_end_of_an_episode_outside_the_region_is_no_exit():
    rollout = leaving(200)
    rollout.truncated[:400:2, 0] = True
    assert tell(tried(), [rollout], first=4) == [True]


def test_a_copy_that_leaves_as_often_as_before_is_as_good_as_it_gets():
    assert tell(tried(), [leaving(300)] * 9, first=4) == [False] * 8 + [True]


def test_a_copy_is_tried_up_to_the_share_of_training_that_imitation_may_take():
    made, answers = tried(), []
    for update in range(20, 31):  # of 100
        answers.append(made.observe(leaving(1000 - 50 * (update - 20)), None, update))  # always better
    assert answers == [False] * 10 + [True]


def test_falls_and_steps_of_the_copy_are_not_the_recoverys_own():
    made = tried()
    tell(made, [fallen(60)], first=4)
    assert made.falls == 0 and made.alone_steps == 3 * PERIOD


@pytest.mark.parametrize("distance", [np.nan, 0.0])
def test_where_there_is_no_region_nothing_is_tried(distance):
    made = copying()
    assert tell(made, [alone(distance=distance)] * 3) == [False, False, True]
    assert made.radius == 0.0 and not made.trying


def test_where_nobody_is_inside_nothing_is_tried_for_long():
    assert tell(tried(), [alone(distance=0.4)], first=4) == [True]


def test_a_recovery_that_must_not_be_shaken_is_copied_as_it_is_and_its_copy_tried():
    made = copying()
    made.shakes = False
    assert made.rehearsal(gaussian=True) == Rehearsal()
    assert tell(made, [alone()]) == [False]
    assert made.trying and made.rehearsal(gaussian=True).radius == pytest.approx(0.11)


def test_state_goes_on_where_it_was():
    story = [alone(), alone(), fallen(1), alone(), leaving(300), leaving(200), leaving(90), leaving(20)]
    for cut in range(1, len(story)):
        whole, first, second = copying(), copying(), copying()
        expected = tell(whole, story, error=0.005)
        tell(first, story[:cut], error=0.005)
        second.set_state(first.get_state())
        assert tell(second, story[cut:], error=0.005, first=cut + 1) == expected[cut:]
        assert second.report() == whole.report()


def test_the_state_holds_finite_numbers_from_the_start():
    assert all(np.isfinite(array).all() for array in copying().get_state().values())
