"""How work with a physical robot ends when somebody or something wants it to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from robot_bench import SAFE, fails

from safeexplorer.files.interruption import Stopped

ALONE = """
import sys, time
from pathlib import Path
from robot_bench import Always, Line, SAFE
from safeexplorer.acting.interventions import NoIntervention
from safeexplorer.realtime import RobotLoop

robot = Line(time.monotonic)
robot.moves = 0.0
commands = open(sys.argv[1], "w", buffering=1)
robot.write = lambda action: print(float(action[0]), file=commands)
loop = RobotLoop(robot, recovery=Always(robot), intervention=NoIntervention(), rate=50.0, safe_action=[SAFE],
                 log=sys.argv[1] + ".log", max_age=10.0, max_blind=20.0, max_overruns=10**6)
loop.arm()
while True:
    time.sleep(1.0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_deadly_signal_ends_the_process_with_the_safe_action(tmp_path, number):
    commands = tmp_path / "commands"
    support = Path(__file__).parents[1] / "support"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(support), *sys.path])}
    process = subprocess.Popen([sys.executable, "-c", ALONE, str(commands)], env=environment)
    try:
        while process.poll() is None and not (commands.exists() and commands.stat().st_size):
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(60) == -number
    finally:
        process.kill()
    assert float(commands.read_text().split()[-1]) == SAFE


def test_asked_to_stop_the_loop_does_not_wait_for_a_robot_that_is_halted(bench):
    b = bench()
    b.robot.moves = 0.0  # the safe action would push it over
    b.loop.arm()
    b.loop.estop("button")
    asked = threading.Event()
    threading.Timer(0.1, asked.set).start()
    with pytest.raises(Stopped, match=r"halted \(button\)"):
        b.loop.record(b.policy, 10, asked_to_stop=asked)
    assert b.loop.armed


def test_asked_to_stop_while_the_robot_moves_the_rows_are_filled_first(bench):
    b = bench()
    b.loop.arm()
    asked = threading.Event()
    asked.set()
    assert b.loop.record(b.policy, 5, asked_to_stop=asked).full


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_sigterm_end_the_waiting_for_a_person(bench, number):
    b = bench(reset=lambda: os.kill(os.getpid(), number) or time.sleep(60))
    b.loop.arm()
    b.robot.x = 6.0

    def only_asks(*_):
        pass

    before = signal.signal(number, only_asks)
    try:
        with pytest.raises(Stopped, match="fallen"):
            b.loop.record(b.policy, 10, asked_to_stop=threading.Event())
        assert signal.getsignal(number) == only_asks
    finally:
        signal.signal(number, before)


def test_nobody_is_asked_for_a_reset_once_the_run_is_to_stop(bench):
    asked, calls = threading.Event(), []
    b = bench(reset=lambda: calls.append("asked"))
    b.loop.arm()
    b.robot.x = 6.0
    asked.set()
    with pytest.raises(Stopped):
        b.loop.record(b.policy, 10, asked_to_stop=asked)
    assert not calls


def test_a_robot_that_fell_before_arming_is_reset_by_the_hook(bench):
    calls = []

    def reset():
        calls.append(list(b.sent))
        b.robot.x = 6.0 if len(calls) == 1 else 0.0  # the first attempt is not enough

    b = bench(reset=reset)
    b.robot.x = 6.0
    b.loop.await_upright()
    assert calls == [[], []]  # nothing was sent
    b.robot.tick = -2
    b.loop.arm()
    assert b.loop.armed and np.isfinite(b.sent).all()


def test_without_a_reading_waiting_for_an_upright_robot_ends(bench):
    b = bench()
    b.clock.free = True
    b.robot.read = fails(OSError("unplugged"))
    with pytest.raises(RuntimeError, match="no good reading"):
        b.loop.await_upright()
