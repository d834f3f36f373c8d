"""The loop that owns a physical robot, mostly in a time that stands still until a test lets it go on."""

import gc
import io
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st

import faulty_robot
from probes import Probe
from safeexplorer.accounting import Ledger
from safeexplorer.interventions import NoIntervention, SafeRegion, StateShield
from safeexplorer.networks import init_actor_critic
from safeexplorer.realtime import RobotCollector, RobotLoop, loop
from safeexplorer.realtime.hardware import make_limits
from safeexplorer.realtime.log import read_log
from safeexplorer.realtime.pilot import Pilot
from safeexplorer.realtime.rows import Rows
from safeexplorer.rollout import Collector
from safeexplorer.schedules import constant

RATE = 100.0
SAFE, HELD, LED = 0.5, -0.25, 0.125  # what the safe action, the recovery and the policy of most tests send


class Clock:
    """Sleeps end when a test allows a tick, at once while something is recorded, always once it is `free`."""

    def __init__(self):
        self.now, self.permits, self.free, self.busy = 100.0, 0, False, lambda: False
        self.waiting = False

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        while not (self.permits or self.free or self.busy()):
            self.waiting = True
            time.sleep(1e-4)
        self.waiting = False
        self.now += seconds
        self.permits = max(0, self.permits - 1)

    def settle(self):
        """Wait until the loop waits."""
        while self.permits or not self.waiting:
            time.sleep(1e-4)


class Line:
    """x moves by 0.1 of each command; `faults` maps a tick to what happens when it is read or written."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, clock):
        self.clock, self.x, self.faults, self.sent, self.moves = clock, 0.0, {}, [], 0.1
        self.tick = -2  # the rehearsal reads once
        self.buffer = np.zeros(1)

    def read(self):
        self.tick += 1
        self.buffer[:] = self.x  # one buffer for all readings, as drivers do
        fault = self.faults.get(("read", self.tick), lambda: (self.buffer, self.clock()))
        return fault()

    def write(self, action):
        self.faults.get(("write", self.tick), lambda: None)()
        self.sent.append(action)
        if self.moves:
            self.x += self.moves * float(action[0])

    def reward(self, observation, action, next_observation):
        return float(next_observation[0])

    def fallen(self, observation):
        self.faults.get(("fallen", self.tick), lambda: None)()
        return abs(observation[0]) > 5.0


class Always:
    """A recovery that gives one action, but for the ticks on which it does something else."""

    def __init__(self, robot):
        self.robot, self.seen = robot, []

    def act(self, observation):
        self.seen.append(observation[0, 0])
        return self.robot.faults.get(("recovery", self.robot.tick), lambda: [[HELD]])()


class Bench:
    """A loop around a `Line`, and what it wrote."""

    def __init__(self, folder, **changes):
        self.clock = Clock()
        self.robot = Line(self.clock)
        self.path = folder / "robot.jsonl"
        self.recovery = changes.pop("recovery", None) or Always(self.robot)
        settings = {"rate": RATE, "safe_action": [SAFE], "log": self.path, "intervention": NoIntervention()}
        settings |= {"clock": self.clock, "sleep": self.clock.sleep, "reset": lambda: None} | changes
        self.loop = RobotLoop(self.robot, recovery=self.recovery, **settings)
        self.clock.busy = lambda: (rows := self.loop.pilot.rows) is not None and not rows.full

    def hold(self, ticks):
        """Let so many ticks go by while nothing is recorded."""
        self.clock.settle()
        self.clock.permits += ticks
        self.clock.settle()

    def policy(self, observation, row):
        return self.robot.faults.get(("policy", self.robot.tick), lambda: [LED])()

    def record(self, steps=10):
        """Record, and let the tick end in which the last row was closed."""
        rows = self.loop.record(self.policy, steps)
        if not self.clock.free:
            self.clock.settle()
        return rows

    @property
    def sent(self):
        return [float(action[0]) for action in self.robot.sent]

    def events(self, kind=None):
        """The log, the loop being closed."""
        self.clock.free = True
        self.loop.close()
        return [event for event in read_log(self.path) if kind in (None, event["event"])]


@pytest.fixture
def bench(tmp_path):
    made = []

    def make(**changes):
        made.append(Bench(tmp_path, **changes))
        return made[-1]

    yield make
    for each in made:
        each.clock.free = True
        each.loop.close()


def fails(error):
    def fail(*_):
        raise error

    return fail


# -- faults ------------------------------------------------------------------------------------------------


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


# -- limits ------------------------------------------------------------------------------------------------


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


# -- people ------------------------------------------------------------------------------------------------


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


# -- time --------------------------------------------------------------------------------------------------


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
    monkeypatch.setattr(loop, "HUNG", 0.05)
    b = bench()
    b.loop.arm()
    going = threading.Event()
    b.robot.faults["policy", 3] = lambda: going.wait() and [LED]
    with pytest.raises(RuntimeError, match="hardware e-stop"):
        b.record()
    with pytest.raises(RuntimeError, match="hardware e-stop"):
        b.loop.disarm()
    going.set()


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
    with pytest.raises(RuntimeError, match="disarmed"):
        b.record()
    assert b.sent[-1] == SAFE and len(b.sent) == 5
    b.loop.close()
    assert sys.getswitchinterval() == pytest.approx(before[0]) and gc.get_freeze_count() == before[1]
    with pytest.raises(RuntimeError, match="arm"):
        b.record()


# -- arming ------------------------------------------------------------------------------------------------


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


# -- the log -----------------------------------------------------------------------------------------------


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


# -- rollouts ----------------------------------------------------------------------------------------------


class StillProbe(Probe):
    """The probe's world without its clock: what a `Line` would observe."""

    def _observe(self):
        return self.x[:, None].copy()


class Spring:
    def act(self, observation):
        return -0.5 * observation[:, :1]


def test_a_robot_gives_the_rollout_that_the_same_world_gives_as_a_simulation(bench):
    steps = 64
    world = StillProbe(lambda x, a: x + 0.1 * a, num_envs=1, move=0.1, limit=steps)
    world.single_observation_space = Line.observation_space
    region = SafeRegion(constant(0.4))
    simulated = Collector(world, Spring(), region, steps)
    simulated.reset(1)
    b = bench(recovery=Spring(), intervention=region, distance=lambda s: np.abs(s[:, 0]))
    b.robot.action_space, b.loop.limits.low[:], b.loop.limits.high[:] = world.single_action_space, -10, 10
    collector = RobotCollector(b.loop, steps)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    expected = simulated.collect(params, 0.0, np.random.default_rng(2))
    got = collector.collect(params, 0.0, np.random.default_rng(2))
    assert 0 < expected.recovering.sum() < steps
    assert got.idle is expected.idle is None
    for name, mine, other in zip(expected._fields[:-1], got[:-1], expected[:-1], strict=True):
        assert mine.dtype == other.dtype and mine.shape == other.shape, name
        np.testing.assert_allclose(mine, other, rtol=2e-6, atol=2e-6, err_msg=name)
    np.testing.assert_allclose(collector.distances, simulated.distances, atol=1e-6)
    assert np.array_equal(collector.executed[:, 0], b.robot.sent[1 : steps + 1])


def test_two_rollouts_with_faults_reconcile_and_say_what_was_sent(bench):
    b = bench(recovery=Spring(), intervention=SafeRegion(constant(0.15)), distance=lambda s: np.abs(s[:, 0]))
    told = []

    class Looks:
        def before_step(self, step):
            told.append((step, collector.observation[0, 0]))

        def on_exit(self, step, robots):
            told.append(("exit", step))

    collector, ledger = RobotCollector(b.loop, 40, Looks()), Ledger(1)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    b.robot.faults["read", 9] = fails(OSError("bus"))
    for update in (1, 2):
        told.clear()
        before = len(b.robot.sent)
        rollout = collector.collect(params, 0.0, np.random.default_rng(update))
        b.clock.settle()
        episodes = ledger.add(rollout, update)
        ledger.reconcile(update * 40)
        sent, main = np.array(b.robot.sent[before : before + 40]), ~rollout.recovering[:, 0]
        assert np.array_equal(collector.executed[:, 0], sent)
        assert np.array_equal(np.clip(rollout.action[main, 0], -1, 1), sent[main])
        assert np.array_equal(rollout.action[~main, 0], sent[~main]) and 0 < main.sum() < 40
        assert np.array_equal(rollout.action[main], rollout.proposed[main])
        assert rollout.truncated[-1, 0] and rollout.truncated.sum() == len(episodes) == 1
        assert [step for step, _ in told if step != "exit"] == list(range(40))
        starts = np.flatnonzero(~main & np.append(True, main[:-1]))
        assert [step for kind, step in told if kind == "exit"] == starts.tolist()
    assert not ledger.open.any()
    assert len(b.events("intervention_start")) == ledger.counts.exits


def test_parameters_that_are_not_finite_move_nothing_and_leave_no_nan_in_the_rollout(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    params["actor"][-1]["bias"][:] = np.nan
    rollout = collector.collect(params, 0.0, np.random.default_rng(1))
    assert rollout.recovering.all() and (rollout.action == HELD).all()
    assert all(np.isfinite(x).all() for x in rollout if x is not None)


def test_a_reward_that_is_not_finite_is_named_while_the_robot_is_held(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    collector.arm(params)
    b.robot.reward = lambda *_: np.inf
    with pytest.raises(ValueError, match=r"hardware\.reward of row 0 is inf"):
        collector.collect(params, 0.0, np.random.default_rng(1))
    b.hold(2)
    assert b.sent[-2:] == [HELD] * 2


def test_a_blank_rollout_has_the_shapes_and_types_of_a_real_one(bench):
    b = bench()
    collector = RobotCollector(b.loop, 5)
    params = init_actor_critic(np.random.default_rng(1), 1, 1, (8,))
    blank = collector.blank()
    collector.arm(params)
    real = collector.collect(params, 0.0, np.random.default_rng(1))
    assert [(x.shape, x.dtype) for x in blank[:-1]] == [(x.shape, x.dtype) for x in real[:-1]]
    assert collector.get_state() == {} and blank.truncated[-1].all()


def test_the_recovery_holds_the_robot_between_rollouts(bench):
    b = bench()
    b.loop.arm()
    b.record(3)
    b.hold(200)
    assert b.sent[:4] == [HELD] + [LED] * 3 and set(b.sent[4:]) == {HELD}
    assert b.loop.status().missed == 0


# -- in real time ------------------------------------------------------------------------------------------


def test_five_seconds_at_100_hz_with_faults_and_slow_updates_send_a_command_in_every_tick(tmp_path):
    robot, status, events, rollouts = faulty_robot.run(4.0, tmp_path / "robot.jsonl")
    # A loaded machine may pass over ticks, which the log then says. Not one that ran went without a command, and two
    # seconds of updates, 200 ticks, did not stop the loop.
    passed_over = sum(e["count"] for e in events if e["event"] == "missed")
    assert len(robot.writes) == status.commands == status.ticks - passed_over
    assert status.ticks >= rollouts * (faulty_robot.ROWS + faulty_robot.UPDATE * RATE) and passed_over < 200
    assert faulty_robot.handled(events) == robot.expected != [] and rollouts >= 2
