"""One tick: look, judge, decide, send, record. No time, no threads; every fault is answered where it happens.

The order of authority: safe action (e-stop, fall, no good reading for long), recovery, policy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from safeexplorer.acting.interventions import Intervention, Situation
from safeexplorer.acting.mixed import Acts
from safeexplorer.realtime.hardware import Hardware, Limits
from safeexplorer.realtime.rows import Rows

Distance = Callable[[np.ndarray], np.ndarray]  # observations [k, n] -> D(s) [k]


class Choice(NamedTuple):
    """A command, who chose it, and why it was not the policy (None if it was)."""

    target: np.ndarray
    actor: str  # policy, recovery or safe
    reason: str | None
    advice: np.ndarray | None = None  # what the recovery would have done, where the policy was tried instead


class Segment(NamedTuple):
    """An intervention that goes on."""

    rows: Rows
    tick: int
    row: int
    reason: str


class Pilot:
    """Flies the robot tick by tick. `note(event, **facts)` writes to the log."""

    def __init__(
        self,
        hardware: Hardware,
        recovery: Acts,
        intervention: Intervention,
        distance: Distance | None,
        limits: Limits,
        clock: Callable[[], float],
        note: Callable[..., None],
    ):
        self.hardware, self.recovery, self.intervention = hardware, recovery, intervention
        self.distance, self.limits, self.clock, self.note = distance, limits, clock, note
        self.rows: Rows | None = None  # what is being recorded; None: the recovery holds the robot
        self.observation: np.ndarray | None = None  # the last good one, read-only
        self.forget()

    def forget(self) -> None:
        """Start afresh, as before the first command."""
        self.stamp = -np.inf  # when the last good observation was taken
        self.command = self.limits.safe_action  # the last one that was sent
        self.fallen = False
        self.faults = self.falls = self.interventions = 0
        self.halt: str | None = None  # why the safe action is being sent
        self.pending: list[tuple[str, str]] = []  # faults of this tick
        self._failing: dict[
            tuple[str, str], int
        ] = {}  # (fault, who acted) of the last tick -> its first tick
        self._segment: Segment | None = None

    def tick(self, number: int, halt: str | None) -> bool:
        """One command; True if it went out. `halt` asks for the safe action, and says why."""
        self.pending = []
        rows = self.rows  # read once: the thread that waits for the rows may change it at any moment
        if rows is not None and rows.full:
            rows = None
        bad = self.look()
        fell, bad = self._judge(number, rows, bad)
        halt = halt or ("fallen" if self.fallen else None) or self._blind()
        if halt not in (None, self.halt):
            self.note("halt", tick=number, reason=halt)
        self.halt = halt
        rows = self._end_row(number, rows, fell)
        recording = rows is not None and halt is None
        distance = self.measure() if recording else np.nan
        choice = self._decide(rows, bad or self._failed("distance"), distance)
        choice, sent = self._send(choice)
        if recording:
            self._begin_row(rows, number, choice, distance)
        self._note_faults(number, choice.actor)
        return sent

    # -- look ----------------------------------------------------------------------------------------------

    def look(self) -> str | None:
        """Take the latest reading if it is good; else say what is wrong, and the last good one stays."""
        try:
            raw, stamp = self.hardware.read()
            observation = np.array(raw, np.float32)  # a copy: drivers reuse their buffers
            age = self.clock() - float(stamp)
        except BaseException as error:
            return self._fault("read", error)
        shape = self.hardware.observation_space.shape
        if observation.shape != shape:
            return self._fault("shape", f"observation of shape {observation.shape}, expected {shape}")
        if not np.isfinite(observation).all():
            return self._fault("nonfinite", f"observation {observation} is not finite")
        if not -self.limits.period <= age <= self.limits.max_age:  # a NaN, or another clock, is neither
            return self._fault("stale", f"age {age:.6g} s, allowed: up to {self.limits.max_age:.6g} s")
        observation.flags.writeable = False
        self.observation, self.stamp = observation, float(stamp)
        return None

    def _judge(self, number: int, rows: Rows | None, bad: str | None) -> tuple[bool, str | None]:
        """Did it fall just now? A robot that lies there is judged again by a reading taken after its reset."""
        if self.fallen and rows is not None and not rows.asked:
            rows.asked = True
            rows.news.put("fallen")
        if bad is not None or (self.fallen and (rows is None or self.stamp <= rows.reset_at)):
            return False, bad
        try:
            down = bool(self.hardware.fallen(self.observation))
        except BaseException as error:
            return False, self._fault("fallen", error)
        if self.fallen:
            rows.asked, rows.reset_at = False, np.inf
            self.note("reset", tick=number, upright=not down)
        elif down:
            self.falls += 1
            self.note("fall", tick=number, observation=self.observation.tolist())
        fell, self.fallen = down and not self.fallen, down
        return fell, None

    def _blind(self) -> str | None:
        """Too long without a good reading for a recovery that acts on the last one."""
        return "blind" if self.clock() - self.stamp > self.limits.max_blind else None

    # -- decide --------------------------------------------------------------------------------------------

    def measure(self) -> float:
        """D(s) of the last good observation; NaN without one, which a safe region takes as outside."""
        if self.distance is None:
            return np.nan
        try:
            return float(np.asarray(self.distance(self.observation[None]), float).reshape(1)[0])
        except BaseException as error:
            self._fault("distance", error)
            return np.nan

    def _decide(self, rows: Rows | None, bad: str | None, distance: float) -> Choice:
        """The policy if it may, else the recovery, else the safe action."""
        if self.halt is not None:
            return Choice(self.limits.safe_action, "safe", self.halt)
        reason = bad or ("hold" if rows is None else self.takes_over(rows, distance))
        if reason is None:
            try:
                action = self.checked(rows.policy(self.observation, rows.count), 1)
                return Choice(action, "policy", None)
            except BaseException as error:
                reason = self._fault("policy", error)
        try:
            advised = Choice(
                self.checked(self.recovery.act(self.observation[None]), 2)[0], "recovery", reason
            )
        except BaseException as error:
            self._fault("recovery", error)
            return Choice(self.limits.safe_action, "safe", reason)
        return self._tried(rows, distance, advised) if reason == "outside" else advised

    def _tried(self, rows: Rows, distance: float, advised: Choice) -> Choice:
        """A copy of the recovery is tried near rest: its action goes out, the recovery's is written down."""
        if not distance <= rows.within:
            return advised
        try:
            action = self.checked(rows.policy(self.observation, rows.count), 1)
        except BaseException as error:
            self._fault("policy", error)
            return advised
        return Choice(action, "policy", advised.reason, advised.target)

    def takes_over(self, rows: Rows, distance: float) -> str | None:
        situation = Situation(self.observation[None], np.array([distance]), np.array([rows.now]))
        try:
            outside = np.asarray(self.intervention.takes_over(situation, rows.progress), bool).reshape(1)[0]
        except BaseException as error:
            return self._fault("intervention", error)
        return "outside" if outside else None

    def checked(self, action: Any, dimensions: int) -> np.ndarray:
        """A copy of an action [m] or [1, m]; finite."""
        action, shape = np.array(action, np.float32), (1, len(self.limits.low))[2 - dimensions :]
        if action.shape != shape:
            raise ValueError(f"action of shape {action.shape}, expected {shape}")
        if not np.isfinite(action).all():
            raise ValueError(f"action {action} is not finite")
        return action

    # -- send and record -----------------------------------------------------------------------------------

    def _send(self, choice: Choice) -> tuple[Choice, bool]:
        """Send it within the limits; if that fails, the safe action, once."""
        safe = Choice(self.limits.safe_action, "safe", "write")
        for attempt in (choice, safe):
            command = self.limits.command(attempt.target, self.command)
            try:
                self.hardware.write(command.copy())
            except BaseException as error:
                self._fault("write", error)
                continue
            self.command = command
            return attempt, True
        return safe._replace(actor="nobody"), False

    def send_safe(self) -> bool:
        """The safe action and nothing else; True if it went out."""
        try:
            return self._send(Choice(self.limits.safe_action, "safe", "internal"))[1]
        except BaseException:
            return False

    def _end_row(self, number: int, rows: Rows | None, fell: bool) -> Rows | None:
        """Close the row of the last tick; the rows that are still to be filled."""
        if self._segment is not None and self._segment.rows is not rows:
            self._end_segment(number, "abandoned")
        if rows is None:
            return None
        rows.end(self.observation, fell, self.halt is not None)
        if rows.full or fell or self.halt is not None:
            self._end_segment(number, "fell" if fell else self.halt or "rollout over")
        if not rows.full:
            return rows
        rows.news.put("full")
        return None

    def _begin_row(self, rows: Rows, number: int, choice: Choice, distance: float) -> None:
        row = rows.begin(self.observation, distance, self.command)
        if choice.reason is None:
            rows.sample[row], rows.recovering[row] = choice.target, False
            self._end_segment(number, "returned")
            return
        rows.recovering[row] = True
        if choice.advice is not None:
            rows.advice[row] = np.clip(choice.advice, self.limits.low, self.limits.high)
        if self._segment is None:
            self.interventions += 1
            self._segment = Segment(rows, number, row, choice.reason)
            self.note("intervention_start", tick=number, row=row, reason=choice.reason)

    def _end_segment(self, number: int, outcome: str) -> None:
        if self._segment is not None:
            rows, tick, row, reason = self._segment
            length = rows.count - row
            self.note(
                "intervention_end", tick=number, start=tick, reason=reason, length=length, outcome=outcome
            )
            self._segment = None

    def _note_faults(self, number: int, actor: str) -> None:
        """Count every fault; log one that goes on from tick to tick when it begins and when it is over."""
        now = {}
        for kind, error in self.pending:
            self.faults += 1
            now[kind, actor] = self._failing.get((kind, actor), number)
            if (kind, actor) not in self._failing:
                self.note("fault", tick=number, kind=kind, error=error, acted=actor)
        for (kind, acted), first in self._failing.items():
            if (kind, acted) not in now and number - first > 1:
                self.note("fault_over", tick=number, kind=kind, acted=acted, start=first)
        self._failing = now

    def _fault(self, kind: str, error: BaseException | str) -> str:
        self.pending.append((kind, error if isinstance(error, str) else described(error)))
        return kind

    def _failed(self, kind: str) -> str | None:
        return kind if any(kind == failed for failed, _ in self.pending) else None


def described(error: BaseException) -> str:
    """One line about an exception, even about one that cannot describe itself."""
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except BaseException:
        return type(error).__name__
