"""E robots of one model in one `mujoco.batch.Batch`, as a Gymnasium vector environment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from mujoco.batch import Batch, SimulationError

from safeexplorer.robot import Robot
from safeexplorer.screen import has_screen

RENDER_MODES = ["rgb_array", "human"] if has_screen() else ["rgb_array"]
SANE = 1e10  # beyond this MuJoCo itself calls a state diverged (mjMAXVAL)


class Simulation(VectorEnv):
    """E independent robots, stepped together. Every returned array is fresh (constant masks are read-only).

    `info` holds one [E] array per key. `cost`, `simulation_error` and `reward_<term>` (weighted) describe the
    step just made; `distance`, `episode_return` and `episode_length` describe the returned observation: after an
    autoreset they belong to the new episode, and `final_info` has all keys for the finished one.
    """

    def __init__(
        self,
        robot: Robot,
        num_envs: int = 4,
        *,
        flavour: str = "task",
        threads: int = 1,
        action_noise: float = 0.0,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset: bool = True,
    ):
        weights = robot.weights(flavour)
        limit = robot.episode_limit(flavour) if max_episode_steps is None else max_episode_steps
        _require_count("num_envs", num_envs)
        _require_count("threads", threads)
        _require_count("max_episode_steps", limit)
        if not 0 <= action_noise < math.inf:
            raise ValueError(f"action_noise must be a finite number >= 0, got {action_noise!r}")
        self.robot, self.num_envs, self.flavour = robot, num_envs, flavour
        self.action_noise, self.max_episode_steps = action_noise, limit
        self.simulation_errors = 0  # diverged steps since construction
        self._weights = np.tile(weights, (num_envs, 1))
        self._autoreset = autoreset
        self._allocate(robot.build_model(), threads)
        self._declare(render_mode)

    def _allocate(self, model: mujoco.MjModel, threads: int) -> None:
        robot, count = self.robot, self.num_envs
        self.model = model
        needs_forces = "cfrc_ext" in robot.derived
        # Only a persistent batch keeps the contacts that cfrc_ext is computed from.
        self.batch = Batch(model, count, threads, persistent=needs_forces)
        self._state = self.batch.state
        self._flat_state = self._state.reshape(-1)
        self._state_before = self._state.copy()
        self._nominal_state = self._state[0].copy()
        self._memory = {name: np.zeros((count, *shape)) for name, shape in robot.memory.items()}
        derived = {name: self.batch.bind(name) for name in robot.derived}
        if needs_forces:
            derived["cfrc_ext"] = np.zeros((count, model.nbody, 6))
            self._contact_count = self.batch.bind("ncon")
        self._action = np.zeros((count, model.nu))
        self._flat_action = self._action.reshape(-1)
        terms = np.zeros((count, len(robot.terms)))
        own = {"action": self._action, "terms": terms, "columns": tuple(terms.T)}
        self.now = robot.bodies(**_physics(model, self._state), **derived, **self._memory, **own)
        self.before = robot.bodies(**_physics(model, self._state_before))
        self._scratch = mujoco.MjData(model)
        self._ctrl = self.batch.bind("ctrl")
        self._rngs = [np.random.Generator(np.random.PCG64()) for _ in range(count)]
        self._return = np.zeros(count)
        self._length = np.zeros(count, np.int64)
        self._limit = np.full(count, self.max_episode_steps)

    def _declare(self, render_mode: str | None) -> None:
        model, robot = self.model, self.robot
        self._low, self._high = (np.ascontiguousarray(edge) for edge in model.actuator_ctrlrange.T)
        self.single_action_space = Box(self._low.astype(np.float32), self._high.astype(np.float32))
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        bound = np.full(robot.observation_size, robot.observation_bound)
        self.single_observation_space = Box(-bound, bound, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.metadata = {
            "autoreset_mode": AutoresetMode.SAME_STEP if self._autoreset else AutoresetMode.DISABLED,
            "render_modes": RENDER_MODES,
            "render_fps": round(1 / (model.opt.timestep * robot.frame_skip)),
        }
        self._reward_keys = [f"reward_{term}" for term in robot.terms]
        self._nobody, everybody = np.zeros(self.num_envs, bool), np.ones(self.num_envs, bool)
        self._nobody.flags.writeable = everybody.flags.writeable = False
        situation = ("distance", "episode_return", "episode_length")
        self._situation_masks = {f"_{key}": everybody for key in situation}
        self._step_masks = {
            f"_{key}": everybody for key in ("cost", "simulation_error", *self._reward_keys, *situation)
        }
        if render_mode not in (None, *RENDER_MODES):
            hint = "" if has_screen() else " (no screen for 'human': DISPLAY is not set)"
            raise ValueError(f"no render_mode {render_mode!r}; known: {', '.join(RENDER_MODES)}{hint}")
        self.render_mode = render_mode
        self._canvas = None

    # -- Gymnasium -----------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes, of all robots or of those in the bool array `options["reset_mask"]`."""
        if seed is not None:
            children = np.random.SeedSequence(seed).spawn(self.num_envs)
            self._rngs = [np.random.Generator(np.random.PCG64(child)) for child in children]
        mask = np.ones(self.num_envs, bool) if options is None else options.get("reset_mask", ~self._nobody)
        if np.shape(mask) != (self.num_envs,) or np.asarray(mask).dtype != bool:
            raise ValueError(
                f"options['reset_mask'] must be a bool array of shape ({self.num_envs},), got {mask!r}"
            )
        self._start(np.flatnonzero(mask))
        observation = self.observe()
        return observation, {**self._situation_masks, **self._situation(self.robot.distance(self.now))}

    def step(self, actions: np.ndarray):
        """One control step of every robot: (observation, reward, terminated, truncated, info)."""
        robot, now = self.robot, self.now
        self._execute(actions)
        diverged = self._advance()
        robot.prepare(now)
        fallen, distance = robot.fallen(now), robot.distance(now)
        fallen |= diverged
        robot.reward_terms(now, self.before, fallen, distance)
        terms = now.terms * self._weights
        reward = np.add.reduce(terms, 1)
        if robot.floored:
            np.maximum(reward, 0.0, out=reward)
            reward[fallen] = 0.0
        robot.remember(now)
        self._return += reward
        self._length += 1
        truncated = self._length >= self._limit
        observation = robot.observe(now)
        info = {
            **self._step_masks,
            "cost": fallen.astype(np.float64),
            "simulation_error": diverged,
            **self._situation(distance),
        }
        info.update(zip(self._reward_keys, terms.T, strict=True))
        ended = fallen | truncated
        if self._autoreset and np.count_nonzero(ended):
            observation = self._begin_again(ended, observation, info)
        if self.render_mode == "human":
            self.render()
        return observation, reward, fallen, truncated, info

    def _execute(self, actions: np.ndarray) -> None:
        """The executed action is clip(clip(a) + noise); what no robot should be sent is refused."""
        actions = np.asarray(actions)
        executed = self._action
        if actions.shape != executed.shape:
            raise ValueError(f"actions must have shape {executed.shape}, got {actions.shape}")
        np.maximum(actions, self._low, out=executed)
        np.minimum(executed, self._high, out=executed)
        if math.isnan(self._flat_action.dot(self._flat_action)):
            robots = np.flatnonzero(np.isnan(actions).any(1)).tolist()
            raise ValueError(f"actions must be numbers, got NaN for robots {robots}")
        if self.action_noise:
            for row, rng in zip(executed, self._rngs, strict=True):
                row += self.action_noise * rng.standard_normal(len(row))
            np.maximum(executed, self._low, out=executed)
            np.minimum(executed, self._high, out=executed)

    def _begin_again(self, ended: np.ndarray, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """Start the next episode where one ended; the last word on the old one goes into `info`."""
        ids = np.flatnonzero(ended)
        last = np.full(self.num_envs, None, object)
        for i in ids:
            last[i] = observation[i].copy()
        finished = dict.fromkeys(self._step_masks, ended)
        finished.update({key: info[key] * ended for key in (mask[1:] for mask in self._step_masks)})
        info.update(final_obs=last, _final_obs=ended, final_info=finished, _final_info=ended)
        self._start(ids)
        observation = self.observe()
        info.update(self._situation(self.robot.distance(self.now)))
        return observation

    def _situation(self, distance: np.ndarray) -> dict[str, np.ndarray]:
        return {
            "distance": distance,
            "episode_return": self._return.copy(),
            "episode_length": self._length.copy(),
        }

    def observe(self) -> np.ndarray:
        """The observations of the current states, [E, n]."""
        self.robot.prepare(self.now)
        return self.robot.observe(self.now)

    def distance(self) -> np.ndarray:
        """D of the current states, [E]."""
        self.robot.prepare(self.now)
        return self.robot.distance(self.now)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """One picture per robot ("rgb_array"), or robot 0 in a window ("human")."""
        if self.render_mode is None:
            raise ValueError(f"made without a render_mode; known: {', '.join(RENDER_MODES)}")
        if self._canvas is None:
            from safeexplorer.rendering import Painter, Window  # loads OpenGL

            kind = Window if self.render_mode == "human" else Painter
            self._canvas = kind(self.robot.picture(), self.robot.camera)
        if self.render_mode == "human":
            return self._canvas.draw(self.now.qpos[0])
        return tuple(self._canvas.draw(qpos) for qpos in self.now.qpos)

    def close_extras(self, **kwargs: Any) -> None:
        if self._canvas is not None:
            self._canvas.close()
            self._canvas = None

    # -- physics -------------------------------------------------------------------------------------------

    def _start(self, ids: np.ndarray) -> None:
        """Put robots `ids` into the first state of an episode."""
        self._state[ids] = self._nominal_state
        for memory in self._memory.values():
            memory[ids] = 0.0
        start = self.robot.start(self.flavour)
        for i in ids:
            for name, value in start(self._rngs[i], self.model, self._scratch).items():
                getattr(self.now, name)[i] = value
        self._return[ids] = 0.0
        self._length[ids] = 0

    def _advance(self) -> np.ndarray:
        """Step the physics; the robots whose simulation diverged, bool [E].

        After a blow-up `mj_step` silently goes on from the nominal pose: only the warning counters tell.
        """
        self._state_before[:] = self._state
        self._ctrl[:] = self._action
        diverged, broken = self._nobody, ()
        try:
            self.batch.step(nstep=self.robot.frame_skip)
        except SimulationError as error:
            broken = error.ids
        sane = self._flat_state.dot(self._flat_state) < SANE**2  # False for NaN
        if not sane or np.count_nonzero(self.batch.warning) or len(broken):
            diverged = self._undo(broken)
        if "cfrc_ext" in self.robot.derived:
            self._measure_contact_forces()
        return diverged

    def _undo(self, broken: Sequence[int]) -> np.ndarray:
        """Put diverged robots back where they were before the step; which those are, bool [E]."""
        state, before = self._state, self._state_before
        diverged = self.batch.warning.any(axis=(1, 2)) | ~(np.abs(state) < SANE).all(1)
        diverged[list(broken)] = True
        ids = np.flatnonzero(diverged)
        state[ids] = before[ids]
        lost = ids[~(np.abs(before[ids]) < SANE).all(1)]  # no sane state to go back to
        state[lost] = before[lost] = self._nominal_state
        self.batch.forward(ids)
        self.batch.warning[ids] = 0
        self.simulation_errors += len(ids)
        return diverged

    def _measure_contact_forces(self) -> None:
        """cfrc_ext, which a batch leaves at zero: mj_rnePostConstraint for every robot that touches something."""
        forces = self.now.cfrc_ext
        forces[:] = 0.0
        for i in np.flatnonzero(self._contact_count).tolist():
            self.batch.get_data(i, self._scratch)
            mujoco.mj_rnePostConstraint(self.model, self._scratch)
            forces[i] = self._scratch.cfrc_ext

    # -- save and restore ----------------------------------------------------------------------------------

    def get_state(self, ids: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        """Everything that decides how robots `ids` (default: all) go on, one row per robot."""
        rows = np.arange(self.num_envs) if ids is None else np.asarray(ids, int)
        return {
            "physics": self._state[rows],
            "episode_return": self._return[rows],
            "episode_length": self._length[rows],
            "rng": np.array([_rng_words(self._rngs[i]) for i in rows], np.uint64).reshape(-1, 6),
            **{name: memory[rows] for name, memory in self._memory.items()},
        }

    def set_state(self, state: Mapping[str, np.ndarray], ids: Sequence[int] | None = None) -> None:
        """Put rows from `get_state`, of this batch or another, into robots `ids` (default: all)."""
        rows = np.arange(self.num_envs) if ids is None else np.asarray(ids, int)
        for name, current in self.get_state(rows).items():
            if name not in state or np.shape(state[name]) != current.shape:
                got = np.shape(state[name]) if name in state else "nothing"
                raise ValueError(f"state[{name!r}] must have shape {current.shape}, got {got}")
        self._state[rows] = state["physics"]
        self._return[rows] = state["episode_return"]
        self._length[rows] = state["episode_length"]
        for name, memory in self._memory.items():
            memory[rows] = state[name]
        for i, words in zip(rows, state["rng"], strict=True):
            self._rngs[i] = _rng_from_words(words)
        self.batch.warning[rows] = 0


def _require_count(name: str, value: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def _physics(model: mujoco.MjModel, state: np.ndarray) -> dict[str, np.ndarray]:
    """qpos, qvel and both as views of state rows: time, qpos, qvel, ..."""
    start = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_TIME.value)
    motion = state[:, start : start + model.nq + model.nv]
    return {"qpos": motion[:, : model.nq], "qvel": motion[:, model.nq :], "motion": motion}


def _rng_words(rng: np.random.Generator) -> list[int]:
    """A PCG64 stream as six 64-bit words."""
    state = rng.bit_generator.state
    words = [part >> shift & (2**64 - 1) for part in state["state"].values() for shift in (0, 64)]
    return [*words, state["has_uint32"], state["uinteger"]]


def _rng_from_words(words: np.ndarray) -> np.random.Generator:
    low, high, inc_low, inc_high, has_uint32, uinteger = (int(word) for word in words)
    generator = np.random.PCG64()
    generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": inc_low | inc_high << 64},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(generator)
