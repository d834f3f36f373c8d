"""The sample of first exits that a run keeps."""

import numpy as np
import pytest

from safeexplorer.runs.exits import ExitLog, read_exits

EXITS, KEPT, TRIALS = 40, 5, 4000


class Robots:
    """Four robots whose state is their number."""

    def snapshot(self, ids):
        return {"number": np.asarray(ids, np.int64)}


@pytest.fixture
def make_log(tmp_path):
    logs = []

    def make(per_update):
        logs.append(ExitLog(tmp_path, Robots(), per_update))
        return logs[-1]

    yield make
    for log in logs:
        log.close()


def sample(log, rng, exits=EXITS):
    """The exits kept of so many, two at a time: exit i is that of robot i % 4 at step i // 2."""
    log.begin(1, 0.1, rng)
    for i in range(0, exits, 2):
        log.on_exit(i // 2, np.array([i % 4, i % 4 + 1]))
    kept = log.kept[: min(log.seen, log.per_update)]
    return kept["step"] * 2 + kept["robot"] % 2


def test_every_exit_is_as_likely_to_be_kept_as_any_other(make_log):
    log, rng = make_log(KEPT), np.random.default_rng(0)
    counts = np.zeros(EXITS)
    for _ in range(TRIALS):
        kept = sample(log, rng)
        assert len(set(kept)) == KEPT
        counts[kept] += 1
    share = KEPT / EXITS
    deviation = np.sqrt(TRIALS * share * (1 - share))
    assert (
        np.abs(counts - TRIALS * share).max() < 4 * deviation
    )  # of 40 counts, one in 400 runs would be further


def test_pairs_of_exits_are_kept_as_often_as_chance_has_it(make_log):
    """Neighbours in time are no more often together in the sample than the first and the last."""
    log, rng = make_log(KEPT), np.random.default_rng(1)
    drawn = [set(sample(log, rng)) for _ in range(TRIALS)]
    expected = TRIALS * KEPT * (KEPT - 1) / EXITS / (EXITS - 1)
    for pair in ({0, 1}, {0, EXITS - 1}, {19, 20}, {EXITS - 2, EXITS - 1}):
        assert abs(sum(pair <= kept for kept in drawn) - expected) < 4 * np.sqrt(expected)


def test_fewer_exits_than_places_are_all_kept_in_order(make_log, tmp_path):
    log = make_log(10)
    assert sample(log, np.random.default_rng(0), exits=6).tolist() == [0, 1, 2, 3, 4, 5]
    log.finish()
    log.offset()
    assert read_exits(tmp_path)["state/number"].tolist() == [0, 1, 2, 3, 0, 1]


def test_no_exit_is_kept_where_none_is_asked_for(make_log):
    assert len(sample(make_log(0), np.random.default_rng(0))) == 0
