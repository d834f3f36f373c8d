"""The loop that owns a physical robot: faults, limits, people."""

import io
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robot_bench import HELD, LED, RATE, SAFE, Always, Line, fails

from safeexplorer.acting.interventions import NoIntervention, StateShield
from safeexplorer.realtime import loop
from safeexplorer.realtime.hardware import make_limits
from safeexplorer.realtime.pilot import Pilot
from safeexplorer.realtime.rows import Rows

# -- faults


READINGS = {
    "late": ("stale", lambda robot: ([7.0], robot.clock() - 0.021)),
    "by another clock": ("stale", lambda robot: ([7.0], time.time())),
    "never stamped": ("stale", lambda robot: ([7.0], np.nan)),
    "nan": ("nonfinite", lambda robot: ([np.nan], robot.clock())),
    "infinite": ("nonfinite", lambda robot: ([np.inf], robot.clock())),
    "wrong shape": ("shape", lambda robot: ([7.0, 7.0], robot.clock())),
    "nothing": ("read", lambda robot: None),
    "exception": ("read", fails(OSError("bus"))),
    "exit": ("read", fails(SystemExit())),
}


@pytest.mark.parametrize("name", READINGS)
def test_a_bad_reading_is_answered_by_the_recovery_on_the_last_good_one_in_its_tick(bench, name):
    b = bench()
    kind, reading = READINGS[name]
    b.loop.arm()
    b.robot.faults["read", 4] = lambda: reading(b.robot)  # tick 0 is held, row r is tick r + 1
    rows = b.record()
    assert b.sent[:12] == [HELD] + [LED] * 3 + [HELD] + [LED] * 6 + [HELD]
    assert rows.recovering.tolist() == [row == 3 for row in range(10)]
    *_, seen, _ = b.recovery.seen  # the last call is the hold after the rollout
    assert seen == rows.observation[2, 0] == rows.observation[3, 0]
    (fault,) = b.events("fault")
    assert (fault["tick"], fault["kind"], fault["acted"]) == (4, kind, "recovery")


ANSWERS = {
    "exception": fails(RuntimeError("no")),
    "exit": fails(SystemExit()),
    "nan": lambda: [[np.nan]],
    "wrong shape": lambda: [[0.0, 0.0]],
    "nonsense": lambda: "left",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_failing_policy_is_replaced_by_the_recovery_and_a_failing_recovery_by_the_safe_action(bench, name):
    b = bench()
    b.loop.arm()
    for who, tick in (("policy", 3), ("policy", 6), ("recovery", 6), ("recovery", 14)):
        b.robot.faults[who, tick] = ANSWERS[name]
    rows = b.record()
    b.hold(4)
    assert b.sent[:16] == [HELD, LED, LED, HELD, LED, LED, SAFE] + [LED] * 4 + [HELD] * 3 + [SAFE, HELD]
    assert rows.recovering.tolist() == [row in (2, 5) for row in range(10)]
    assert np.array_equal(rows.sent[:, 0], b.sent[1:11])
    faults = [(e["tick"], e["kind"], e["acted"]) for e in b.events("fault")]
    assert faults == [
        (3, "policy", "recovery"),
        (6, "policy", "safe"),
        (6, "recovery", "safe"),
        (14, "recovery", "safe"),
    ]


def test_a_policy_cannot_change_the_observation_that_others_see(bench):
    b = bench()
    b.loop.arm()
    b.robot.x = 1.0
    rows = b.loop.record(lambda observation, row: np.multiply(observation, 0.0, out=observation), 3)
    assert rows.recovering.all() and rows.observation[0] == 1.0


@pytest.mark.parametrize("kind", ["intervention", "distance", "fallen"])
def test_whatever_else_fails_the_recovery_acts(bench, kind):
    armed = []
    failing = lambda x: fails(RuntimeError("no"))() if armed else np.zeros(1)  # noqa: E731
    changes = {
        "intervention": {"intervention": StateShield(failing)},
        "distance": {"distance": failing},
        "fallen": {},
    }
    b = bench(**changes[kind])
    b.loop.arm()
    armed.append(True)
    if kind == "fallen":
        b.robot.faults["fallen", 1] = fails(RuntimeError("no"))
    rows = b.record(1)
    assert rows.recovering.all() and rows.sent[0] == HELD
    (fault,) = b.events("fault")
    assert (fault["tick"], fault["kind"], fault["acted"]) == (1, kind, "recovery")


def test_a_write_that_fails_is_followed_by_the_safe_action_and_only_then_is_a_command_missed(bench):
    b = bench()
    b.loop.arm()
    left = [OSError("bus")] * 3

    def write():
        if left:
            raise left.pop()

    b.robot.faults["write", 3] = b.robot.faults["write", 6] = write
    rows = b.record()
    # Tick 3 loses both attempts, tick 6 the first.
    assert b.sent[:11] == [HELD, LED, LED, LED, LED, SAFE] + [LED] * 4 + [HELD]
    assert rows.recovering.tolist() == [row in (2, 5) for row in range(10)]
    assert rows.sent[2] == LED  # what the robot was last told
    status = b.loop.status()
    assert (status.ticks, status.commands, status.missed) == (12, 11, 1)
    assert [e["acted"] for e in b.events("fault")] == ["nobody", "nobody", "safe"]


def test_an_error_of_the_loop_itself_sends_the_safe_action_and_latches_the_e_stop(bench):
    b = bench()
    b.loop.arm()
    b.loop.pilot._decide = fails(AssertionError("a bug"))
    b.hold(2)
    assert b.sent == [HELD, SAFE, SAFE]
    assert "a bug" in b.loop.status().stopped
    assert b.events("fault")[0]["kind"] == "internal"


def test_blindness_that_lasts_gives_the_safe_action_and_ends_the_episode(bench):
    b = bench(max_blind=0.105)
    b.loop.arm()
    for tick in range(4, 20):
        b.robot.faults["read", tick] = fails(OSError("unplugged"))
    rows = b.record(16)
    # Good until tick 3. In tick 13 the recovery has been blind for 0.1 s; from tick 14 on it is the safe action.
    assert b.sent[:21] == [HELD] + [LED] * 3 + [HELD] * 10 + [SAFE] * 6 + [LED]
    assert rows.truncated.tolist() == [row in (12, 15) for row in range(16)]
    assert rows.step.tolist() == [*range(13), 0, 1, 2]
    events = b.events()
    assert [e["reason"] for e in events if e["event"] == "halt"] == ["blind", "disarm"]
    (end,) = (e for e in events if e["event"] == "intervention_end")
    assert (end["reason"], end["length"], end["outcome"]) == ("read", 10, "blind")


# -- limits


targets = st.floats(width=32) | st.sampled_from([None, "e-stop"])


@given(st.lists(targets, max_size=30), st.floats(0.1, 1e4), st.floats(-1, 1, width=32))
def test_every_tick_sends_one_command_within_range_and_slew(asked, slew, safe):
    robot = Line(lambda: 0.0)
    robot.moves, robot.tick = 0.0, -1
    limits = make_limits(robot.action_space, RATE, [safe], None, None, slew)
    pilot = Pilot(robot, Always(robot), NoIntervention(), None, limits, robot.clock, lambda *_, **__: None)
    pilot.rows = Rows(lambda observation, row: [asked[row]], len(asked) + 1, (1, 1), 0.0)
    for tick, target in enumerate(asked):
        pilot.tick(tick, "estop" if target == "e-stop" else None)
        assert len(robot.sent) == tick + 1
    sent = np.array([[safe], *robot.sent])
    assert (np.abs(sent) <= 1.0).all()
    assert (np.abs(np.diff(sent, axis=0)) <= slew / RATE + 1e-7).all()


def test_commands_reach_a_target_no_faster_than_the_slew_limit_and_disarming_ramps_too(bench):
    b = bench(slew=25.0, safe_action=[0.0])  # 0.25 a tick
    b.loop.arm(b.policy)
    b.robot.faults = {("policy", tick): lambda: [9.0] for tick in range(1, 7)}
    b.record(6)
    b.clock.free = True
    b.loop.disarm()
    assert b.sent[:7] == [-0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert b.sent[-1] == 0.0 and np.abs(np.diff(b.sent)).max() <= 0.25


# -- people


def test_the_e_stop_stays_until_a_person_releases_it(bench):
    b = bench()
    b.loop.arm()
    b.hold(1)
    b.loop.estop("button")
    b.hold(3)
    assert b.sent == [HELD] * 2 + [SAFE] * 3
    assert b.loop.status().stopped == "button" and b.loop.status().halted == "estop"
    b.clock.free = True
    b.loop.disarm()
    with pytest.raises(RuntimeError, match="button"):
        b.loop.arm()
    b.loop.release()
    b.clock.free = False
    b.robot.tick = -2
    b.loop.arm()
    assert b.sent[-1] == HELD
    assert [e["event"] for e in b.events() if e["event"] in ("estop", "release")] == ["estop", "release"]


def test_an_e_stop_while_recording_ends_the_episode_and_a_new_one_begins_after_its_release(bench):
    b = bench()
    b.loop.arm()

    def press():
        b.loop.estop()
        return [LED]

    def let_go():
        b.loop.release()
        return b.robot.buffer, b.clock()

    b.robot.faults["policy", 4] = press
    b.robot.faults["read", 8] = let_go  # before this tick decides, but it was asked to halt already
    rows = b.record(8)
    assert b.sent[:14] == [HELD] + [LED] * 4 + [SAFE] * 4 + [LED] * 4 + [HELD]
    assert rows.truncated.tolist() == [row in (3, 7) for row in range(8)]
    assert rows.step.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert not rows.recovering.any() and not rows.terminated.any()


def test_after_a_fall_the_safe_action_is_sent_until_someone_has_put_the_robot_upright(bench):
    calls = []

    def reset():
        b.robot.moves = 0.0
        calls.append((threading.current_thread(), len(b.robot.sent)))
        while len(b.robot.sent) < calls[-1][1] + 3:
            time.sleep(1e-4)
        b.robot.x = 6.0 if len(calls) == 1 else 0.0  # the first attempt is not enough

    b = bench(reset=reset, intervention=StateShield(lambda s: s[:, 0] > 4.0))
    b.loop.arm()
    b.robot.x, b.robot.moves = 4.5, -4.0  # the recovery makes it worse: 4.5 -> 5.5
    rows = b.record(6)
    assert [thread for thread, _ in calls] == [threading.main_thread()] * 2
    assert b.sent[:2] == [HELD, HELD] and set(b.sent[2 : calls[-1][1] + 3]) == {SAFE}
    assert rows.terminated.tolist() == [True] + [False] * 5
    assert rows.step.tolist() == [0, 0, 1, 2, 3, 4] and rows.truncated.tolist() == [False] * 5 + [True]
    events = b.events()
    assert [e["event"] for e in events if "reset" in e["event"] or e["event"] == "fall"] == [
        *("fall", "reset_asked", "reset", "reset_asked", "reset")
    ]
    end = next(e for e in events if e["event"] == "intervention_end")
    assert (end["reason"], end["length"], end["outcome"]) == ("outside", 1, "fell")


def test_a_fall_while_the_robot_is_held_is_reset_before_anything_is_recorded(bench):
    def reset():
        b.robot.moves = b.robot.x = 0.0

    b = bench(reset=reset)
    b.loop.arm()
    b.robot.x = 6.0
    b.hold(3)
    assert b.sent == [HELD] + [SAFE] * 3
    rows = b.record(4)
    assert not rows.terminated.any() and np.abs(rows.observation).max() < 1.0
    assert len(b.events("fall")) == b.loop.status().falls == 1


def test_a_reset_hook_that_gives_up_leaves_the_robot_with_the_safe_action(bench):
    b = bench(reset=fails(KeyboardInterrupt()))
    b.loop.arm()
    b.robot.x = 6.0
    with pytest.raises(KeyboardInterrupt):
        b.record()
    b.hold(3)
    assert b.sent[-3:] == [SAFE] * 3


def test_the_reset_hook_unless_another_is_given_waits_for_enter(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    loop.ask_a_person()
    assert "Enter" in capsys.readouterr().out
