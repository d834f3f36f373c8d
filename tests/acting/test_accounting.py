"""Counts and episodes equal a step-by-step reference, across any cutting into rollouts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from safeexplorer.acting.accounting import Counts, Ledger
from safeexplorer.acting.trajectory import Rollout, blank_rollout


def make_rollout(recovering, terminated, truncated, reward) -> Rollout:
    flags = {"recovering": recovering, "terminated": terminated, "truncated": truncated}
    return blank_rollout(recovering.shape, **flags, task_reward=reward)


def reference(recovering, terminated, truncated, reward):
    """One robot, one step at a time."""
    c = dict.fromkeys(Counts._fields, 0)
    in_segment, total, length, recovered, episodes = False, 0.0, 0, 0, []
    for r, fall, limit, gain in zip(recovering, terminated, truncated, reward, strict=True):
        c["recovery_steps" if r else "main_steps"] += 1
        if r and not in_segment:
            c["exits"] += 1
        if in_segment and not r:
            c["succeeded"] += 1
        in_segment = bool(r)
        total, length, recovered = total + gain, length + 1, recovered + bool(r)
        if fall or limit:
            c["episodes"] += 1
            c["falls"] += bool(fall)
            if in_segment:
                c["failed" if fall else "succeeded"] += 1
            in_segment = False
            episodes.append((total, length, bool(fall), recovered / length))
            total, length, recovered = 0.0, 0, 0
    return c, in_segment, episodes


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rollouts=st.integers(1, 4), robots=st.integers(1, 3))
def test_the_ledger_equals_the_reference_on_random_histories(seed, rollouts, robots):
    rng = np.random.default_rng(seed)
    steps = 12
    shape = (rollouts * steps, robots)
    recovering, terminated = rng.random(shape) < 0.5, rng.random(shape) < 0.1
    truncated = (rng.random(shape) < 0.1) & ~terminated
    reward = rng.integers(-3, 4, shape).astype(float)
    ledger, episodes = Ledger(robots), []
    for k in range(rollouts):
        part = slice(k * steps, (k + 1) * steps)
        episodes += ledger.add(
            make_rollout(recovering[part], terminated[part], truncated[part], reward[part]), k + 1
        )
        ledger.reconcile((k + 1) * steps * robots)
    expected = [
        reference(recovering[:, i], terminated[:, i], truncated[:, i], reward[:, i]) for i in range(robots)
    ]
    assert ledger.counts._asdict() == {k: sum(c[k] for c, _, _ in expected) for k in Counts._fields}
    assert ledger.open.tolist() == [is_open for _, is_open, _ in expected]
    for i in range(robots):
        mine = [(e.total_return, e.length, e.fell, e.recovery_share) for e in episodes if e.robot == i]
        assert mine == expected[i][2]
