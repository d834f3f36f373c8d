"""The loop that owns a physical robot: late ticks, arming, its log."""

import gc
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from robot_bench import HELD, LED, SAFE, Bench, Line, fails

from safeexplorer.acting.interventions import NoIntervention, StateShield
from safeexplorer.realtime import RobotLoop, loop

# -- time


def slow(b, seconds, answer):
    def act():
        b.clock.now += seconds
        return answer

    return act


def test_late_ticks_are_counted_and_logged_and_commands_never_bunch_up(bench):
    b = bench()
    b.loop.arm()
    b.robot.faults["policy", 3] = slow(b, 0.012, [LED])  # ends in tick 4
    b.robot.faults["policy", 6] = slow(b, 0.035, [LED])  # ends in tick 9: 7 and 8 have gone by
    b.record(8)
    b.hold(1)
    status = b.loop.status()
    assert (status.ticks, status.commands, status.missed, status.overruns) == (13, 11, 2, 2)
    assert status.latest == pytest.approx(0.005)
    events = b.events()
    assert [e["late"] for e in events if e["event"] == "overrun"] == pytest.approx([0.002, 0.025])
    assert [(e["tick"], e["count"]) for e in events if e["event"] == "missed"] == [(7, 2)]
    assert b.clock.now == pytest.approx(100.0 + 13 * 0.01, abs=0.011)  # the schedule did not drift


def test_too_many_late_ticks_in_a_row_latch_the_e_stop(bench):
    b = bench(max_overruns=3)
    b.loop.arm()
    for tick in (2, 3, 5, 6, 7):
        b.robot.faults["read", tick] = lambda: (b.robot.buffer, slow(b, 0.0101, b.clock.now)())
    b.hold(10)
    assert b.sent[:11] == [HELD] * 8 + [SAFE] * 3
    assert "3 overruns" in b.loop.status().stopped


def test_a_thread_that_hangs_is_reported_to_the_one_who_waits(bench, monkeypatch):
    b = bench()
    b.loop.arm()
    monkeypatch.setattr(loop, "HUNG", 0.05)
    going = threading.Event()
    b.robot.faults["policy", 3] = lambda: going.wait() and [LED]
    with pytest.raises(RuntimeError, match="hardware e-stop"):
        b.record()
    with pytest.raises(RuntimeError, match="hardware e-stop"):
        b.loop.disarm()
    going.set()


def test_a_loop_whose_thread_hangs_cannot_be_armed_until_that_thread_is_gone(bench, monkeypatch):
    b = bench()
    b.loop.arm()
    monkeypatch.setattr(loop, "HUNG", 0.05)
    b.clock.free = True
    b.robot.moves = 0.0
    going, hung = threading.Event(), threading.Event()

    def hang():
        hung.set()
        going.wait()
        return b.robot.buffer, b.clock()

    b.robot.faults = {("read", tick): hang for tick in range(b.robot.tick, b.robot.tick + 100_000)}
    hung.wait()
    with pytest.raises(RuntimeError, match="hardware e-stop"):
        b.loop.disarm()
    old = b.loop._thread
    with pytest.raises(RuntimeError, match="not known to be gone"):
        b.loop.arm()
    b.robot.faults = {}
    going.set()
    old.join()
    assert b.sent[-1] == SAFE
    b.clock.free = False
    b.robot.tick = -2
    b.loop.arm()
    assert not old.is_alive() and b.loop.armed


def test_a_second_loop_cannot_command_the_same_robot(bench, tmp_path):
    b = bench()
    b.loop.arm()
    log = tmp_path / "second.jsonl"
    who = {
        "recovery": b.recovery,
        "intervention": NoIntervention(),
        "rate": 100.0,
        "safe_action": [SAFE],
        "log": log,
    }
    second = RobotLoop(b.robot, **who, clock=b.clock, sleep=b.clock.sleep)
    with pytest.raises(RuntimeError, match="another loop or thread commands this robot"):
        second.arm()
    b.clock.free = True
    b.loop.disarm()
    second.arm()  # once the first has let go
    assert second.armed
    second.close()


def test_two_threads_that_arm_one_loop_at_once_start_one_thread(bench):
    b = bench()
    inside, go_on = threading.Event(), threading.Event()
    reading = b.robot.read

    def slow_read():
        inside.set()
        go_on.wait(10)
        return reading()

    b.robot.read = slow_read
    first = threading.Thread(target=b.loop.arm)
    first.start()
    inside.wait(10)
    with pytest.raises(RuntimeError, match="another loop or thread commands this robot, or is about to"):
        b.loop.arm()
    go_on.set()
    first.join(10)
    assert b.loop.armed and [t.name for t in threading.enumerate()].count("robot-loop") == 1


def test_an_arming_that_fails_gives_the_robot_back(bench):
    b = bench()
    b.clock.free = True
    b.robot.x = 6.0
    with pytest.raises(RuntimeError, match="has fallen"):
        b.loop.arm()
    b.robot.x = 0.0
    b.loop.arm()
    assert b.loop.armed


def test_a_fault_that_goes_on_is_logged_when_it_begins_and_when_it_is_over(bench):
    b = bench()
    b.loop.arm()
    for tick in range(4, 504):
        b.robot.faults["read", tick] = fails(OSError("unplugged"))
    b.hold(600)
    assert b.loop.status().faults == 500
    events = b.events()
    read = [(e["event"], e["tick"], e["acted"]) for e in events if e.get("kind") == "read"]
    # Good until tick 3; blind, and with that the safe action, from tick 14 on.
    assert [(event, acted) for event, _, acted in read] == [
        *(("fault", "recovery"), ("fault", "safe")),
        *(("fault_over", "recovery"), ("fault_over", "safe")),
    ]
    assert (read[0][1], read[3][1]) == (4, 504)


def test_disarming_ends_a_recording_and_puts_the_interpreter_back(bench):
    before = sys.getswitchinterval(), gc.get_freeze_count()
    b = bench()
    b.loop.arm()
    assert sys.getswitchinterval() == pytest.approx(1e-4) and gc.get_freeze_count() > before[1]

    def leave():
        b.clock.free = True
        threading.Thread(target=b.loop.disarm).start()
        while b.loop.armed:
            time.sleep(1e-4)
        return [LED]

    b.robot.faults["policy", 3] = leave
    with pytest.raises(RuntimeError, match=r"was disarmed|is not armed"):  # as one or the other is faster
        b.record()
    assert b.sent[-1] == SAFE and len(b.sent) == 5
    b.loop.close()
    assert sys.getswitchinterval() == pytest.approx(before[0]) and gc.get_freeze_count() == before[1]
    with pytest.raises(RuntimeError, match="arm"):
        b.record()


# -- arming


def test_nothing_is_sent_when_arming_fails(bench):
    b = bench(distance=lambda s: np.abs(s[:, 0]))
    robot, pilot = b.robot, b.loop.pilot
    b.clock.free = True

    def refused(message, what, name, value, policy=None):
        original = getattr(what, name)
        setattr(what, name, value)
        with pytest.raises((ValueError, RuntimeError), match=message):
            b.loop.arm(policy)
        setattr(what, name, original)

    refused("no good reading.*stale", robot, "read", lambda: ([0.0], b.clock() - 1.0))
    refused("upright", robot, "x", 6.0)
    refused("hardware.reward gave nan", robot, "reward", lambda *_: np.nan)
    refused("hardware.fallen failed.*no", robot, "fallen", fails(RuntimeError("no")))
    refused("recovery failed.*shape", b.recovery, "act", lambda s: [0.0])
    refused("distance failed.*no", pilot, "distance", fails(RuntimeError("no")))
    refused("intervention failed", pilot, "intervention", None)
    refused("take .* less than a tick", b.recovery, "act", lambda s: time.sleep(0.011) or [[0.0]])
    refused("policy failed.*not finite", robot, "x", 0.0, policy=lambda s, row: [np.nan])
    assert robot.sent == []
    refused("first tick", robot, "write", fails(OSError("bus")))
    b.loop.arm()
    with pytest.raises(RuntimeError, match="armed already"):
        b.loop.arm()


@pytest.mark.skipif(not hasattr(os, "SCHED_FIFO"), reason="no real-time scheduling")
def test_the_loops_own_thread_gets_the_priority_and_a_refusal_stops_the_arming(bench, monkeypatch):
    asked = []
    monkeypatch.setattr(
        os, "sched_setscheduler", lambda pid, *_: asked.append((pid, threading.current_thread().name))
    )
    b = bench(priority=50)
    b.loop.arm()
    b.clock.free = True
    b.loop.disarm()
    assert asked == [(0, "robot-loop")]
    sent = len(b.sent)
    monkeypatch.setattr(os, "sched_setscheduler", fails(PermissionError("not you")))
    with pytest.raises(PermissionError, match="priority 50 was refused: not you"):
        b.loop.arm()
    assert len(b.sent) == sent and not b.loop.armed


@pytest.mark.parametrize(
    "field, value",
    [
        ("rate", 0.0),
        ("rate", "100"),
        ("safe_action", [2.0]),
        ("safe_action", [np.nan]),
        ("safe_action", [0.0, 0.0]),
        ("max_age", -1.0),
        ("max_blind", 0.001),
        ("slew", 0.0),
        ("slew", [1.0, 1.0]),
        ("max_overruns", 0),
        ("priority", 0),
        ("recovery", 3),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, field, value):
    with pytest.raises(ValueError, match=rf"{field} is .*; allowed: "):
        Bench(tmp_path, **{field: value})


@pytest.mark.parametrize("field", ["observation_space", "action_space"])
@pytest.mark.parametrize("space", [Discrete(3), Box(-np.inf, np.inf, (1, 1))])
def test_a_wrong_space_is_named(tmp_path, monkeypatch, field, space):
    monkeypatch.setattr(Line, field, space)
    with pytest.raises(ValueError, match=f"{field} is .*; allowed: "):
        Bench(tmp_path)


def test_unbounded_actions_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Line, "action_space", Box(-np.inf, np.inf, (1,)))
    with pytest.raises(ValueError, match="finite bounds"):
        Bench(tmp_path)


# -- the log


def test_the_log_has_a_start_and_an_end_for_every_intervention_and_is_appended_to(bench):
    b = bench(intervention=StateShield(lambda s: (s[:, 0] > 0.02) & (s[:, 0] < 0.05)))
    b.path.write_text('{"event": "earlier"}\n')
    b.loop.arm()
    b.robot.x = 0.0
    rows = b.record(20)
    b.loop.note("later")
    events = b.events()
    assert [events[0]["event"], events[1]["event"], events[-1]["event"]] == ["earlier", "arm", "disarm"]
    assert all({"tick", "monotonic", "wall"} <= set(e) for e in events[1:])
    starts = [e for e in events if e["event"] == "intervention_start"]
    ends = [e for e in events if e["event"] == "intervention_end"]
    exits = rows.recovering & ~np.append(False, rows.recovering[:-1])
    assert [e["row"] for e in starts] == np.flatnonzero(exits).tolist() and len(starts) > 1
    assert [e["tick"] for e in starts] == [e["start"] for e in ends]
    assert sum(e["length"] for e in ends) == rows.recovering.sum()
    assert {e["outcome"] for e in ends[:-1]} == {"returned"}


class Unprintable:
    def __str__(self):
        raise RuntimeError("no words")


def test_the_log_survives_an_event_that_cannot_be_written(bench):
    b = bench()
    circle = []
    circle.append(circle)
    b.loop.note("odd", value=Unprintable())
    b.loop.note("circle", value=circle)
    b.loop.note("keys", value={(1, 2): 3})
    b.loop.note("after")
    events = b.events()
    assert [e["event"] for e in events] == ["odd", "circle", "keys", "after"]
    assert [e.get("unwritable") for e in events] == ["RuntimeError", "ValueError", "TypeError", None]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to")
def test_nothing_is_recorded_without_a_log_but_the_robot_is_held(tmp_path):
    b = Bench(tmp_path, log="/dev/full")
    b.loop.arm()
    b.loop.log._queue.put({})
    while b.loop.log._error is None:
        time.sleep(1e-3)
    with pytest.raises(OSError, match="/dev/full"):
        b.record()
    b.hold(2)
    assert b.sent == [HELD] * 3
    b.clock.free = True
    with pytest.raises(OSError, match="/dev/full"):
        b.loop.close()
