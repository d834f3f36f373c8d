"""Shares, segments, falls and the region of rollouts whose answer is known."""

import json

import numpy as np
import pytest
from recordings import drawn

from safeexplorer.acting.accounting import Ledger
from safeexplorer.audit import audit
from safeexplorer.audit.measures import Falls, Region, measure_segments


def test_shares_segments_and_falls_of_a_drawn_rollout():
    found = audit(drawn("..rr.r.rX...", "rL.....F..rr"))
    # Robot 0 recovers in 2-3, 5 and 7-8; robot 1 in 0-1 and 10-11.
    assert (found.shares.steps, found.shares.recovery_steps, found.shares.recovery_rate) == (24, 9, 9 / 24)
    # Episodes: 0-8 of robot 0 with 5 of 9 steps, 0-1 of robot 1 with 2 of 2, 2-7 of robot 1 with none.
    assert (found.shares.episodes, found.shares.episodes_with_recovery) == (3, 2)
    assert [found.shares.episode_quantiles[q] for q in ("min", "median", "max")] == [0, 5 / 9, 1]
    segments = found.segments
    assert (segments.count, segments.reentered, segments.fell, segments.timed_out, segments.open) == (
        5,
        2,
        1,
        1,
        1,
    )
    assert [segments.length_quantiles[q] for q in ("min", "q25", "median", "max")] == [1, 2, 2, 2]
    assert segments.success == 2 / 3
    assert (segments.reexits, segments.reexit_share) == (2, 1.0)
    assert found.falls == Falls(policy=1, recovery=1)


@pytest.mark.parametrize(
    ("robots", "reexits"),
    [
        (["r.....r."], 1),  # five policy steps in between
        (["r......r"], 0),  # six
        (["r.F.r..."], 0),  # another episode
        (["..rr", "rr.."], 0),  # another robot
        (["rXr.r..."], 1),  # the first ended in a fall, the second came back
        (["r.r.r.r."], 3),
    ],
)
def test_reexits_are_within_five_policy_steps_of_the_same_episode(robots, reexits):
    assert measure_segments(drawn(*robots)).reexits == reexits


def test_segments_agree_with_the_ledger_of_training():
    rng = np.random.default_rng(0)
    for _ in range(20):
        letters = rng.choice(list(".....rrrrFXTL"), (3, 30))
        rollout = drawn(*("".join(robot) for robot in letters))
        found, ledger = measure_segments(rollout), Ledger(3)
        ledger.add(rollout, 0)
        counts = ledger.counts
        assert (found.count, found.fell) == (counts.exits, counts.failed)
        assert found.reentered + found.timed_out == counts.succeeded
        assert found.open == ledger.open.sum()


def test_a_rollout_without_recovery_has_no_segments_and_no_verdict():
    found = audit(drawn("..F..", "....."))
    assert (found.segments.count, found.segments.success, found.segments.length_quantiles) == (0, None, None)
    assert found.determinism.verdict == "unknown"
    assert found.missing["importance"] == "the recovery never acted"
    json.dumps(found.as_dict(), allow_nan=False)


def test_region_is_a_threshold_only_if_no_distance_has_both_sides():
    rollout = drawn("..rr")
    apart = audit(rollout._replace(distance=np.array([[0.1], [0.2], [0.3], [np.nan]]))).region
    assert apart == Region(largest_policy=0.2, smallest_recovery=0.3, overlap=0.0)
    # With 0.4 under the policy one of the two recovery steps, 0.3, lies below it.
    assert audit(rollout._replace(distance=np.array([[0.1], [0.4], [0.3], [0.5]]))).region.overlap == 0.5
