"""What rollouts say about the region: shares with their confidence, exits with their outcomes, first exits."""

import numpy as np
import pytest
from rollouts import columns, rollout_of

from safeexplorer.acting.evidence import Exits, FirstExits, bernstein_bound, wilson_interval


def test_wilson_interval_by_hand():
    # 8 of 10, z = 2: centre (0.8 + 4/20) / 1.4 = 5/7, half width 2 sqrt(0.016 + 0.01) / 1.4
    low, high = wilson_interval(8, 10, z=2.0)
    half = 2.0 * np.sqrt(0.016 + 0.01) / 1.4
    assert (low, high) == (pytest.approx(5 / 7 - half), pytest.approx(5 / 7 + half))


def test_nothing_seen_says_nothing():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert Exits(2).safe_share(0.1) == (0.0, 1.0)
    assert FirstExits(1).bounds(0.99) == (1.0, 0.0)


def test_99_percent_needs_268_exits_without_a_fall():
    assert wilson_interval(267, 267)[0] < 0.99 <= wilson_interval(268, 268)[0]


def test_bernstein_bound_holds_in_19_of_20_samples():
    rng = np.random.default_rng(0)
    bounds = [bernstein_bound((rng.random(200) < 0.1).astype(float), 1.0) for _ in range(300)]
    assert np.mean(np.array(bounds) >= 0.1) >= 0.95
    assert np.mean(bounds) < 0.25


def test_exits_count_returns_falls_and_falls_without_an_exit():
    exits = Exits(3)
    exits.add(
        rollout_of(columns(".xx...", "..xx..", "......"), columns("......", "...x..", "...x..")), radius=0.1
    )
    # robot 1 came back, robot 2 fell outside, robot 3 fell inside: three ends, two of them falls, two exits
    assert exits.periods[-1].tolist() == [0.1, 3, 2, 2, 18 - 4, 18]
    assert exits.rate() == 2 / 14


def test_an_exit_is_counted_when_its_end_is_seen():
    exits = Exits(1)
    exits.add(rollout_of(columns("..xx")), 0.1)
    assert exits.periods[-1, 1:4].tolist() == [0, 0, 1]
    exits.add(rollout_of(columns("xx.."), columns(".x..")), 0.1)
    assert exits.periods[-1, 1:4].tolist() == [1, 1, 1]


def test_the_time_limit_is_no_fall():
    exits = Exits(1)
    exits.add(rollout_of(columns(".xxx"), truncated=columns("...x")), 0.1)
    assert exits.periods[-1, 1:3].tolist() == [1, 0]


def test_a_goal_that_ends_an_episode_is_no_fall():
    exits, reached = Exits(1), columns("...x")
    exits.add(rollout_of(columns(".xxx"), reached)._replace(reached=reached), 0.1)
    assert exits.periods[-1, 1:3].tolist() == [1, 0]


def test_what_happens_before_the_policy_acts_in_an_episode_is_no_exit_of_its():
    exits = Exits(3)
    # a start that nobody saved, then one that was saved, then an exit; a fall in the next rollout of robot 2's second
    # episode, in which the policy never acted, and of robot 3's, in which it had
    exits.add(rollout_of(columns("xxxx.x", "...xxx", ".....x"), columns(".x....", "...x..", "......")), 0.1)
    assert exits.periods[-1, 1:5].tolist() == [1, 1, 3, 18 - 5 - 3 - 1]
    exits.add(rollout_of(columns("......", "xx....", "xx...."), columns("......", ".x....", ".x....")), 0.1)
    assert exits.periods[-1, 1:4].tolist() == [1 + 1 + 1, 2, 3]


def test_only_exits_from_near_radii_speak_about_a_radius():
    exits = Exits(1)
    for radius, fell in ((0.10, "...x"), (0.20, "....")):
        exits.add(rollout_of(columns(".xx."), columns(fell)), radius)
        exits.next_period()
    assert exits.safe_share(0.205)[1] == 1.0
    assert exits.safe_share(0.096) == wilson_interval(1, 2)  # came back, then fell
    assert exits.safe_share(0.15) == (0.0, 1.0)


def test_first_exits_of_episodes_seen_from_their_start():
    first = FirstExits(1)
    first.add(rollout_of(columns("..x..x"), truncated=columns("...x..")))  # the first one was under way
    assert first.when[-1:].tolist() == [1] and first.filled == 1
    first.add(rollout_of(columns("x..."), truncated=columns(".x.x")))  # its second exit does not count
    assert first.when[-2:].tolist() == [1, -1] and first.filled == 2


def test_an_episode_over_two_rollouts_is_followed_through():
    first = FirstExits(1)
    first.add(rollout_of(columns("...."), truncated=columns("x...")))
    first.add(rollout_of(columns(".x.."), truncated=columns("...x")))
    assert first.when[-1:].tolist() == [4]
    assert first.longest == 7


def test_bounds_follow_from_the_first_exits():
    first = FirstExits(1)
    first.when[-400:] = np.where(np.arange(400) % 2, -1, 100)
    first.filled, first.longest, first.largest_reward = 400, 1000, 3.0
    beta, gap = first.bounds(0.99)
    samples = np.where(np.arange(400) % 2, 0.0, 0.99**100)
    assert beta == pytest.approx(bernstein_bound(samples, 1.0))
    assert gap == pytest.approx(6.0 * bernstein_bound(np.where(np.arange(400) % 2, 0, 900), 1000.0))


def test_state_goes_on_where_it_was():
    pieces = [
        rollout_of(columns("..xx", "...."), truncated=columns("....", ".x..")),
        rollout_of(columns("x..x", "x..."), columns("....", "..x.")),
    ]
    for make in (Exits, FirstExits):
        whole, first, second = make(2), make(2), make(2)
        add = (lambda it, piece: it.add(piece, 0.1)) if make is Exits else (lambda it, piece: it.add(piece))
        add(whole, pieces[0])
        add(first, pieces[0])
        state = first.get_state()
        add(first, pieces[1])  # what was taken stays as it was
        second.set_state(state)
        add(whole, pieces[1])
        add(second, pieces[1])
        for name, array in whole.get_state().items():
            np.testing.assert_array_equal(array, second.get_state()[name])
