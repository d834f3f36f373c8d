"""E simulations of one model in one `mujoco.batch.Batch`, where a divergence cannot pass unseen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError

SANE = 1e10  # beyond this MuJoCo itself calls a state diverged (mjMAXVAL)
FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value  # a row of the batch


class Physics:
    """State rows [E, n] that step together; `fields` are live arrays [E, ...] of derived MjData fields.

    Derived fields describe the last substep, as after `mj_step`.
    """

    def __init__(
        self, model: mujoco.MjModel, count: int, threads: int, frame_skip: int, derived: Sequence[str]
    ):
        self.model, self.frame_skip = model, frame_skip
        self.batch = Batch(model, count, threads)
        self.state = self.batch.state
        self.state_before = self.state.copy()
        self.nominal_state = self.state[0].copy()
        self.errors = 0  # diverged steps since construction
        self.fields = {name: self.batch.bind(name) for name in derived}
        self._steppers = []  # for a robot that sees contact forces, one per thread
        if "cfrc_ext" in derived:
            self.fields = {name: field.copy() for name, field in self.fields.items()}
            shares = np.array_split(range(count), min(threads, count))
            self._steppers = [ContactStepper(self.batch, self.fields, frame_skip, ids) for ids in shares]
            self._map = map if threads == 1 else ThreadPoolExecutor(threads).map
        self._flat_state = self.state.reshape(-1)
        self._ctrl = self.batch.bind("ctrl")
        self.nobody = np.zeros(count, bool)
        self.nobody.flags.writeable = False

    def views(self, state: np.ndarray) -> dict[str, np.ndarray]:
        """qpos, qvel and both side by side, as views of state rows: time, qpos, qvel, ..."""
        start = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_TIME.value)
        nq, nv = self.model.nq, self.model.nv
        motion = state[:, start : start + nq + nv]
        return {"qpos": motion[:, :nq], "qvel": motion[:, nq:], "motion": motion}

    def scratch(self) -> mujoco.MjData:
        """A simulation of its own, for sums in passing."""
        return mujoco.MjData(self.model)

    def raw_loop(self) -> RawLoop:
        """The yardstick of its speed."""
        return RawLoop(self.model, len(self.state), self.frame_skip)

    def step(self, action: np.ndarray) -> np.ndarray:
        """One control step of every simulation; those that diverged, bool [E].

        After a blow-up `mj_step` silently goes on from the nominal pose: only the warning counters tell.
        """
        self.state_before[:] = self.state
        self._ctrl[:] = action
        diverged, broken = self.nobody, self._advance()
        sane = self._flat_state.dot(self._flat_state) < SANE**2  # False for NaN
        if not sane or np.count_nonzero(self.batch.warning) or broken:
            diverged = self._undo(broken)
        return diverged

    def _advance(self) -> list[int]:
        """`frame_skip` substeps of every simulation; those in which MuJoCo raised an error."""
        if self._steppers:
            return [i for broken in self._map(ContactStepper.step, self._steppers) for i in broken]
        try:
            self.batch.step(nstep=self.frame_skip)
        except SimulationError as error:
            return error.ids.tolist()
        return []

    def _undo(self, broken: list[int]) -> np.ndarray:
        """Put diverged simulations back where they were before the step; which those are, bool [E]."""
        state, before = self.state, self.state_before
        diverged = self.batch.warning.any(axis=(1, 2)) | ~(np.abs(state) < SANE).all(1)
        diverged[broken] = True
        ids = np.flatnonzero(diverged)
        state[ids] = before[ids]
        lost = ids[~(np.abs(before[ids]) < SANE).all(1)]  # no sane state to go back to
        state[lost] = before[lost] = self.nominal_state
        self.batch.forward(ids)
        for i in ids if self._steppers else ():
            self._steppers[0].forward(i)
        self.batch.warning[ids] = 0
        self.errors += len(ids)
        return diverged


class ContactStepper:
    """Steps some simulations of a batch, with cfrc_ext by mj_rnePostConstraint as in Gymnasium's robots.

    The batch's own step leaves cfrc_ext at zero. To copy each MjData out of a persistent batch would take longer, and a
    force sensor would fill cfrc_ext at another stage of a Runge-Kutta step.
    """

    def __init__(self, batch: Batch, fields: Mapping[str, np.ndarray], frame_skip: int, ids: np.ndarray):
        self.model, self.data = batch.model, mujoco.MjData(batch.model)
        self.frame_skip, self.ids = frame_skip, ids.tolist()
        self._rows, self._noted = list(batch.state), batch.warning
        self._warnings = self.data.warning.number
        sources = {name: getattr(self.data, name) for name in fields}
        self._copies = [
            [(fields[name][i], source) for name, source in sources.items()] for i in range(len(self._rows))
        ]

    def step(self) -> list[int]:
        """`frame_skip` calls of mj_step each; those in which MuJoCo raised an error keep their state."""
        model, data, broken = self.model, self.data, []
        for i in self.ids:
            mujoco.mj_setState(model, data, self._rows[i], FULL_STATE)
            try:
                mujoco.mj_step(model, data, self.frame_skip)
                self._derive(i)
                mujoco.mj_getState(model, data, self._rows[i], FULL_STATE)
            except mujoco.FatalError:
                broken.append(i)
                mujoco.mj_resetData(model, data)
            if np.count_nonzero(self._warnings):
                self._noted[i, :, 1] += self._warnings
                self._warnings[:] = 0
        return broken

    def forward(self, i: int) -> None:
        """The fields of simulation i in its present state."""
        mujoco.mj_setState(self.model, self.data, self._rows[i], FULL_STATE)
        mujoco.mj_forward(self.model, self.data)
        self._derive(i)

    def _derive(self, i: int) -> None:
        mujoco.mj_rnePostConstraint(self.model, self.data)
        for row, source in self._copies[i]:
            row[:] = source


class RawLoop:
    """The same physics as one would write it by hand: `mj_step` on one MjData per robot."""

    def __init__(self, model: mujoco.MjModel, count: int, frame_skip: int):
        self.model, self.frame_skip = model, frame_skip
        self.data = [mujoco.MjData(model) for _ in range(count)]

    def seconds(
        self, before: np.ndarray, actions: np.ndarray, starts: Mapping[int, Sequence[tuple]]
    ) -> float:
        """For `actions` [T, E, m] from the states `before`; `starts`, step -> [(robot, state)], are its resets."""
        model, skip = self.model, self.frame_skip
        for data, state in zip(self.data, before, strict=True):
            mujoco.mj_setState(model, data, state, FULL_STATE)
        begin = time.perf_counter()
        for step, action in enumerate(actions):
            for data, ctrl in zip(self.data, action, strict=True):
                data.ctrl[:] = ctrl
                mujoco.mj_step(model, data, skip)
            for i, state in starts.get(step, ()):
                mujoco.mj_setState(model, self.data[i], state, FULL_STATE)
        return time.perf_counter() - begin
