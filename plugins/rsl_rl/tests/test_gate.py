"""The outcome gate that waits: no row of a segment that fell is imitated, at any rollout length."""

import pytest
import torch
from scripted import algorithm, play, random_rollout

STEPS, ENVS = 48, 6


def segments_of(rollout):
    """Rows (t, env) of each segment of the uncut rollout, and whether it fell; plain loops."""
    found = []
    for env in range(ENVS):
        rows = []
        for t in range(STEPS):
            if not rollout["recovering"][t, env]:
                continue
            rows.append((t, env))
            ended = bool(rollout["terminated"][t, env] | rollout["truncated"][t, env])
            goes_on = t + 1 < STEPS and bool(rollout["recovering"][t + 1, env])
            if ended or not goes_on:
                open_end = t + 1 == STEPS and not ended
                found.append(
                    (rows, "open" if open_end else "fell" if rollout["terminated"][t, env] else "good")
                )
                rows = []
    return found


def imitated(rollout, length, **recovery):
    """Rows (t, env) that reach the imitation loss when the rollout is cut into pieces of `length`."""
    agent, rows, counts = algorithm(ENVS, length, recovery), [], []
    stamp = torch.arange(STEPS * ENVS, dtype=torch.float32).reshape(STEPS, ENVS, 1)
    for first in range(0, STEPS, length):
        piece = {name: array[first : first + length] for name, array in rollout.items()}
        play(agent, piece)
        agent.storage.observations["policy"][..., :1] = stamp[first : first + length]
        settled = agent.gate.settle(agent.storage, agent.segments)
        counts.append(settled.count)
        found = settled.rows.obs["policy"][:, 0].long().tolist()
        assert settled.rows.env.tolist() == [row % ENVS for row in found]
        rows += [(row // ENVS, row % ENVS) for row in found]
        agent.storage.clear()
    return rows, agent, sum(counts)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 24, 48])
def test_exactly_the_rows_of_segments_that_succeeded_are_imitated_once(length):
    rollout = random_rollout(STEPS, ENVS, seed=length)
    segments = segments_of(rollout)
    assert {outcome for _, outcome in segments} == {"good", "fell", "open"}
    rows, agent, count = imitated(rollout, length, hold_rollouts=STEPS)
    assert len(rows) == len(set(rows))
    assert set(rows) == {row for rows, outcome in segments if outcome == "good" for row in rows}
    assert count == sum(len(rows) for rows, outcome in segments if outcome != "open")
    waiting = sum(len(held.env) for held in agent.gate.held)
    assert waiting == sum(len(rows) for rows, outcome in segments if outcome == "open")


def test_a_cut_segment_that_falls_later_is_never_imitated():
    """Recovery from step 2 on, cut after step 3, a fall at step 5."""
    flat = torch.zeros(8, ENVS, dtype=torch.bool)
    rollout = {
        "recovering": flat.clone(),
        "terminated": flat.clone(),
        "truncated": flat,
        "task_reward": flat.float(),
    }
    rollout["recovering"][2:6] = True
    rollout["terminated"][5] = True
    agent, imitated_rows = algorithm(ENVS, 4), 0
    for first in (0, 4):
        play(agent, {name: array[first : first + 4] for name, array in rollout.items()})
        imitated_rows += agent.update()["imitated_rows"]
    assert imitated_rows == 0 and not agent.gate.held


def test_rows_that_wait_too_long_are_dropped_and_not_imitated():
    flat = torch.zeros(STEPS, ENVS, dtype=torch.bool)
    rollout = {
        "recovering": ~flat,
        "terminated": flat,
        "truncated": flat.clone(),
        "task_reward": flat.float(),
    }
    # a success at last: of its 48 steps, the last piece and two held ones remain
    rollout["truncated"][-1] = True
    rows, _, _ = imitated(rollout, 4, hold_rollouts=2)
    assert {t for t, _ in rows} == set(range(STEPS - 12, STEPS))


def test_loading_a_checkpoint_forgets_what_waits():
    rollout = {name: array[:4] for name, array in random_rollout(STEPS, ENVS, seed=0).items()}
    rollout["recovering"][-1], rollout["terminated"][-1], rollout["truncated"][-1] = True, False, False
    agent = algorithm(ENVS, 4)
    play(agent, rollout)
    agent.update()
    assert agent.gate.held
    agent.load(agent.save(), None, True)
    assert not agent.gate.held
