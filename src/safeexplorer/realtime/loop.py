"""The loop that owns a robot: one thread, one command per tick, on the schedule t0 + k / rate."""

from __future__ import annotations

import atexit
import gc
import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from safeexplorer.acting.interventions import Intervention
from safeexplorer.files.interruption import ENDING, Stopped, interrupting
from safeexplorer.realtime.hardware import Hardware, check_box, make_limits
from safeexplorer.realtime.log import EventLog
from safeexplorer.realtime.pilot import Distance, Pilot, described
from safeexplorer.realtime.rehearsal import lies, rehearse
from safeexplorer.realtime.rows import Policy, Rows
from safeexplorer.realtime.signals import DeadlySignals
from safeexplorer.recovery import as_recovery, interface_between

# Seconds for which another Python thread may keep the interpreter from a tick; 5e-3 is usual.
SWITCH_INTERVAL = 1e-4
HUNG = 5.0  # s without a tick after which the loop's thread counts as hung
POLL = 0.1  # s between two looks of the one who waits for rows
COMMANDED: dict[int, object] = {}  # id of the hardware -> who armed it last


class Status(NamedTuple):
    """The loop in numbers, since it was last armed."""

    armed: bool
    stopped: str | None  # why the e-stop is latched
    halted: str | None  # why the safe action is being sent
    ticks: int  # of the schedule: those that ran and those that were passed over
    commands: int  # written
    missed: int  # ticks without a command
    overruns: int  # ticks that ended after the next one was due
    latest: float  # s, the largest delay between a tick's time and its start
    faults: int
    falls: int
    interventions: int


def ask_a_person() -> None:
    """The reset hook unless another is given: wait until someone presses Enter."""
    input("The robot has fallen and is held by the safe action. Put it upright, then press Enter: ")


class RobotLoop:
    """Holds one robot at a fixed rate; `record` lets a policy act on it.

    recovery     an object with act(observations [k, n]), or what `recovery.as_recovery` takes: a callable, a file
    distance     D, observations [k, n] -> [k]; the intervention's own if None
    slew         largest change of a command per second, one number or one per action; None for no limit
    max_age      s, of a reading that the policy may act on; two ticks if None
    max_blind    s without a good reading after which the safe action replaces the recovery; ten ticks if None
    max_overruns so many ticks in a row that end late latch the e-stop
    priority     1 to 99, real-time priority of the loop's thread (SCHED_FIFO, needs permission); None for the usual
    reset        called after a fall, in the thread that called `record`, until the robot is no longer fallen
    clock, sleep time.monotonic and time.sleep, but for tests
    """

    def __init__(
        self,
        hardware: Hardware,
        *,
        recovery: Any,
        intervention: Intervention,
        rate: float,
        safe_action: Any,
        log: Path | str,
        distance: Distance | None = None,
        slew: Any = None,
        max_age: float | None = None,
        max_blind: float | None = None,
        max_overruns: int = 10,
        priority: int | None = None,
        reset: Callable[[], None] = ask_a_person,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        check_box("observation_space", hardware.observation_space)
        self.limits = make_limits(hardware.action_space, rate, safe_action, max_age, max_blind, slew)
        if not callable(getattr(recovery, "act", None)):
            spaces = hardware.observation_space, hardware.action_space
            recovery = as_recovery(recovery, interface_between("the robot", *spaces))
        if distance is None and callable(getattr(intervention, "distance", None)):
            distance = intervention.distance
        if not (isinstance(max_overruns, int) and max_overruns > 0):
            raise ValueError(f"max_overruns is {max_overruns!r}; allowed: a positive whole number")
        if priority is not None and (priority not in range(1, 100) or not hasattr(os, "SCHED_FIFO")):
            raise ValueError(
                f"priority is {priority!r}; allowed: None, or 1 to 99 where the system has SCHED_FIFO"
            )
        self.priority = priority
        self.hardware, self.reset, self.rate, self.max_overruns = hardware, reset, float(rate), max_overruns
        self.clock, self.sleep = clock, sleep
        self.log = EventLog(log)
        self.pilot = Pilot(hardware, recovery, intervention, distance, self.limits, clock, self.note)
        self.sizes = hardware.observation_space.shape[0], hardware.action_space.shape[0]
        self._thread: threading.Thread | None = None
        self._stopped: str | None = None  # the latch
        self._leave = threading.Event()  # of the latest thread; each has its own
        self._signals = DeadlySignals(self.close)
        self._forget()

    def _forget(self) -> None:
        self._ticks = self._commands = self._overruns = self._in_a_row = 0
        self._latest = 0.0
        self._refused: OSError | None = None  # the priority that was asked for

    def note(self, event: str, tick: int | None = None, **facts: Any) -> None:
        """Write an event to the log."""
        self.log.put({"event": event, "tick": tick, "monotonic": self.clock(), "wall": time.time(), **facts})

    # -- for people ------------------------------------------------------------------------------------------

    @property
    def armed(self) -> bool:
        return self._thread is not None and self._thread.is_alive() and not self._leave.is_set()

    def arm(self, policy: Policy | None = None) -> None:
        """Check everything, then send commands: from here on the recovery holds the robot.

        Nothing has moved if this raises. A policy given here is asked for an action that is not sent.
        """
        if self.armed:
            raise RuntimeError("the loop is armed already")
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError(
                "the thread that commanded the robot is not known to be gone: the loop cannot be armed until it is"
            )
        self.disarm()  # what is left of a thread that ended after its time
        if COMMANDED.setdefault(id(self.hardware), claim := object()) is not claim:
            raise RuntimeError("another loop or thread commands this robot, or is about to: disarm it first")
        try:
            self._start(policy)
        finally:
            if self._thread is None:
                COMMANDED.pop(id(self.hardware), None)

    def _start(self, policy: Policy | None) -> None:
        if self._stopped is not None:
            raise RuntimeError(f"the e-stop is latched ({self._stopped}): release() it before arming")
        self.log.check()
        rehearse(self.pilot, policy, self.sleep)
        self._forget()
        started, self._leave = threading.Event(), threading.Event()
        arguments = started, self._leave
        self._thread = threading.Thread(target=self._run, args=arguments, name="robot-loop", daemon=True)
        atexit.register(self.close)
        self._signals.catch()
        self._switch_interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        gc.collect()
        gc.freeze()  # what exists now is no longer searched: a full collection can stop every thread for 0.1 s
        self.note("arm", rate=self.rate)
        self._thread.start()
        started.wait()
        if self._commands == 0:
            self.disarm()
            self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self._refused is not None:
            raise PermissionError(f"priority {self.priority} was refused: {self._refused}") from self._refused
        raise RuntimeError(f"hardware.write failed on the first tick: see {self.log.path}")

    def disarm(self) -> None:
        """Bring the commands to the safe action, within the slew limit, and stop sending.

        A thread that hangs is remembered: until it is gone the loop stays as it is and cannot be armed again.
        """
        thread = self._thread
        if thread is None:
            return
        self._leave.set()
        if thread.ident is not None:  # Ctrl-C may come before it was started
            thread.join(self.limits.ramp_ticks() * self.limits.period + HUNG)
        if thread.is_alive():
            self.note("hung", **self.status()._asdict())
            raise RuntimeError(
                "the loop's thread hangs in read, write, policy or recovery and sends nothing: use the hardware e-stop"
            )
        sys.setswitchinterval(self._switch_interval)
        gc.unfreeze()
        atexit.unregister(self.close)
        self._signals.let_go()
        self._thread = None
        COMMANDED.pop(id(self.hardware), None)
        self.note("disarm", **self.status()._asdict())

    def estop(self, reason: str = "asked for") -> None:
        """Send the safe action from the next tick on, until `release`. From any thread or signal handler."""
        if self._stopped is None:
            self._stopped = reason
            self.note("estop", tick=self._ticks, reason=reason)

    def release(self) -> None:
        """Unlatch the e-stop: for a person to call, never for a program."""
        if self._stopped is not None:
            self.note("release", tick=self._ticks, reason=self._stopped)
            self._stopped, self._in_a_row = None, 0

    def status(self) -> Status:
        """How it goes."""
        pilot, ticks, commands = self.pilot, self._ticks, self._commands
        return Status(
            armed=self.armed,
            stopped=self._stopped,
            halted=pilot.halt,
            ticks=ticks,
            commands=commands,
            missed=max(0, ticks - commands),
            overruns=self._overruns,
            latest=self._latest,
            faults=pilot.faults,
            falls=pilot.falls,
            interventions=pilot.interventions,
        )

    def close(self) -> None:
        """Disarm, and finish the log."""
        try:
            self.disarm()
        finally:
            self.log.close()

    def __enter__(self) -> RobotLoop:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- for learners ----------------------------------------------------------------------------------------

    def await_upright(self) -> None:
        """Before arming: have a robot that lies there reset."""
        while lies(self.pilot, self.sleep):
            self._ask_for_reset()

    def record(
        self,
        policy: Policy,
        steps: int,
        progress: float = 0.0,
        asked_to_stop: threading.Event | None = None,
        within: float = -math.inf,
    ) -> Rows:
        """Let the policy act, under the intervention, for `steps` ticks; blocks, then the recovery holds again.

        Falls, the e-stop and long blindness end an episode; recording goes on with a new one once a person has
        reset the robot, released the e-stop, or readings are back. Asked to stop, it does not wait for that.
        Where the recovery would act at D <= `within`, the policy is tried and the recovery's action written down.
        """
        self.log.check()
        if self.pilot.rows is not None:
            raise RuntimeError("another thread is recording")
        rows = Rows(policy, steps, self.sizes, progress, within)
        self.pilot.rows = rows
        try:
            if not self.armed:
                raise RuntimeError("the loop is not armed: arm() first")
            self._wait_for(rows, asked_to_stop)
        finally:
            self.pilot.rows = None
        return rows

    def _wait_for(self, rows: Rows, asked_to_stop: threading.Event | None) -> None:
        news, ticks, since = "", self._ticks, time.monotonic()
        while news != "full":
            halt = self.pilot.halt
            if halt is not None and asked_to_stop is not None and asked_to_stop.is_set():
                raise Stopped(f"stopped while waiting for a robot that is halted ({self._stopped or halt})")
            try:
                news = rows.news.get(timeout=min(POLL, HUNG))
            except queue.Empty:
                if self._ticks != ticks:
                    ticks, since = self._ticks, time.monotonic()
                elif time.monotonic() - since > HUNG:
                    raise RuntimeError(
                        f"no tick for {HUNG} s: read, write, policy or recovery hangs; use the hardware e-stop"
                    ) from None
                continue
            if news == "disarmed":
                raise RuntimeError("the loop was disarmed while recording")
            if news == "fallen":
                self._ask_for_reset(asked_to_stop)
                rows.reset_at = self.clock()

    def _ask_for_reset(self, asked_to_stop: threading.Event | None = None) -> None:
        """Call the reset hook; Ctrl-C ends it even where it would only ask to stop, and so does SIGTERM there."""
        self.note("reset_asked")
        try:
            with interrupting(signal.SIGINT, *(ENDING if asked_to_stop is not None else ())):
                if asked_to_stop is not None and asked_to_stop.is_set():
                    raise KeyboardInterrupt
                self.reset()
        except KeyboardInterrupt:
            if asked_to_stop is None:
                raise
            raise Stopped("stopped while waiting for the reset of a robot that has fallen") from None

    # -- the thread ------------------------------------------------------------------------------------------

    def _run(self, started: threading.Event, leave: threading.Event) -> None:
        try:
            if self.priority is not None:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(self.priority))  # 0: this thread
        except OSError as error:
            self._refused = error
            started.set()
            return
        start, number, last_ticks = self.clock(), 0, self.limits.ramp_ticks()
        while last_ticks > 0:
            leaving = leave.is_set()
            self._latest = max(self._latest, self.clock() - (start + number * self.limits.period))
            self._commands += self._guarded_tick(number, "disarm" if leaving else self._stopped)
            self._ticks = number + 1
            if not started.is_set():
                started.set()
            if leaving:
                last_ticks = 0 if (self.pilot.command == self.limits.safe_action).all() else last_ticks - 1
            number = self._next(start, number)
        rows = self.pilot.rows
        if rows is not None:
            rows.news.put("disarmed")

    def _guarded_tick(self, number: int, halt: str | None) -> bool:
        """The tick; an error of our own sends the safe action and latches the e-stop."""
        try:
            return self.pilot.tick(number, halt and (halt if halt == "disarm" else "estop"))
        except BaseException as error:
            self.pilot.faults += 1
            self.note("fault", tick=number, kind="internal", error=described(error), acted="safe")
            self.estop(f"internal error: {described(error)}")
            return self.pilot.send_safe()

    def _next(self, start: float, number: int) -> int:
        """Watch the deadline, wait for the next tick and say which it is; a late loop never bunches commands."""
        period, following = self.limits.period, number + 1
        now = self.clock()
        if now > start + following * period:
            self._overruns += 1
            self._in_a_row += 1
            if self._in_a_row == 1:
                self.note("overrun", tick=number, late=now - (start + following * period))
            if self._in_a_row >= self.max_overruns:
                self.estop(f"{self._in_a_row} overruns in a row")
        else:
            if self._in_a_row > 1:
                self.note("overruns_over", tick=number, count=self._in_a_row)
            self._in_a_row = 0
            self.sleep(start + following * period - now)
        due = max(following, int((self.clock() - start) / period))
        if due > following and self._in_a_row <= 1:
            self.note("missed", tick=following, count=due - following)
        return due
