"""E simulations of one model in one `mujoco.batch.Batch`, where a divergence cannot pass unseen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mujoco
import numpy as np
from mujoco.batch import Batch, SimulationError

SANE = 1e10  # beyond this MuJoCo itself calls a state diverged (mjMAXVAL)


class Physics:
    """State rows [E, n] that step together; `fields` are live arrays [E, ...] of derived MjData fields.

    Derived fields describe the last substep, as after `mj_step`.
    """

    def __init__(
        self, model: mujoco.MjModel, count: int, threads: int, frame_skip: int, derived: Sequence[str]
    ):
        self.model, self.frame_skip = model, frame_skip
        self._sees_forces = "cfrc_ext" in derived
        # Only a persistent batch keeps the contacts that cfrc_ext is computed from.
        self.batch = Batch(model, count, threads, persistent=self._sees_forces)
        self.state = self.batch.state
        self.state_before = self.state.copy()
        self.nominal_state = self.state[0].copy()
        self.errors = 0  # diverged steps since construction
        self.fields = {name: self.batch.bind(name) for name in derived if name != "cfrc_ext"}
        if self._sees_forces:
            self.fields["cfrc_ext"] = self._forces = np.zeros((count, model.nbody, 6))
            self._contacts = self.batch.bind("ncon")
            self._data = mujoco.MjData(model)
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

    def step(self, action: np.ndarray) -> np.ndarray:
        """One control step of every simulation; those that diverged, bool [E].

        After a blow-up `mj_step` silently goes on from the nominal pose: only the warning counters tell.
        """
        self.state_before[:] = self.state
        self._ctrl[:] = action
        diverged, broken = self.nobody, ()
        try:
            self.batch.step(nstep=self.frame_skip)
        except SimulationError as error:
            broken = error.ids
        sane = self._flat_state.dot(self._flat_state) < SANE**2  # False for NaN
        if not sane or np.count_nonzero(self.batch.warning) or len(broken):
            diverged = self._undo(broken)
        if self._sees_forces:
            self._measure_contact_forces()
        return diverged

    def _undo(self, broken: Iterable[int]) -> np.ndarray:
        """Put diverged simulations back where they were before the step; which those are, bool [E]."""
        state, before = self.state, self.state_before
        diverged = self.batch.warning.any(axis=(1, 2)) | ~(np.abs(state) < SANE).all(1)
        diverged[list(broken)] = True
        ids = np.flatnonzero(diverged)
        state[ids] = before[ids]
        lost = ids[~(np.abs(before[ids]) < SANE).all(1)]  # no sane state to go back to
        state[lost] = before[lost] = self.nominal_state
        self.batch.forward(ids)
        self.batch.warning[ids] = 0
        self.errors += len(ids)
        return diverged

    def _measure_contact_forces(self) -> None:
        """cfrc_ext by mj_rnePostConstraint, as Gymnasium's robots do: a batch leaves these forces at zero.

        A force sensor would fill them too, but at another stage of the Runge-Kutta step.
        """
        forces, data, measured = self._forces, self._data, self._data.cfrc_ext
        for i, contacts in enumerate(self._contacts.tolist()):
            if contacts:
                self.batch.get_data(i, data)
                mujoco.mj_rnePostConstraint(self.model, data)
                forces[i] = measured
            else:
                forces[i] = 0.0
