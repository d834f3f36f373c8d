"""E robots of one model in one `mujoco.batch.Batch`, as a Gymnasium vector environment."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from safeexplorer.acting.streams import WORDS, generator_of, spawn, words_of
from safeexplorer.files.extras import load
from safeexplorer.robots.robot import Robot


def has_screen() -> bool:
    """Can a window be opened?"""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


RENDER_MODES = ["rgb_array", "human"] if has_screen() else ["rgb_array"]


class Simulation(VectorEnv):
    """E independent robots, stepped together. Every returned array is fresh (constant masks are read-only).

    `info` holds one [E] array per key. `cost`, `simulation_error` and `reward_<term>` (weighted) describe the
    step just made; `distance`, `episode_return` and `episode_length` describe the returned observation: after an
    autoreset they belong to the new episode, and `final_info` has all keys for the finished one.
    """

    _canvas: Any = None  # also of one that could not be made, which is closed, too

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
        self._weights = np.tile(weights, (num_envs, 1))
        self._autoreset = autoreset
        self._allocate(threads)
        self._declare(render_mode)

    def _allocate(self, threads: int) -> None:
        load("mujoco.batch", "robots", "a simulated robot")  # MuJoCo 4 has it
        from safeexplorer.robots.physics import Physics

        robot, count = self.robot, self.num_envs
        self.model = model = robot.build_model()
        if model.nu != robot.action_size:
            raise ValueError(f"{robot.name}: action_size is {robot.action_size}; its model has {model.nu}")
        self.physics = physics = Physics(model, count, threads, robot.frame_skip, robot.derived)
        self.batch = physics.batch
        self._memory = {name: np.zeros((count, *shape)) for name, shape in robot.memory.items()}
        self._action = np.zeros((count, model.nu))
        self._flat_action = self._action.reshape(-1)
        self._terms = np.zeros((count, len(robot.terms)))
        self._term_columns = tuple(zip(robot.terms, self._terms.T, strict=True))
        own = {"action": self._action}
        self.now = robot.bodies(**physics.views(physics.state), **physics.fields, **self._memory, **own)
        self.before = robot.bodies(**physics.views(physics.state_before))
        self._scratch = physics.scratch()
        self._rngs = spawn(None, count)
        self._return = np.zeros(count)
        self._length = np.zeros(count, np.int64)
        self._limit = np.full(count, self.max_episode_steps)

    def _declare(self, render_mode: str | None) -> None:
        model, robot = self.model, self.robot
        low, high = model.actuator_ctrlrange.T
        self._low, self._high = np.tile(low, (self.num_envs, 1)), np.tile(high, (self.num_envs, 1))
        self.single_action_space = Box(low.astype(np.float32), high.astype(np.float32))
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        bound = np.full(robot.observation_size, robot.observation_bound)
        self.single_observation_space = Box(-bound, bound, dtype=np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.metadata = {
            "autoreset_mode": AutoresetMode.SAME_STEP if self._autoreset else AutoresetMode.DISABLED,
            "render_modes": RENDER_MODES,
            "render_fps": round(1 / (model.opt.timestep * robot.frame_skip)),
        }
        reward_keys = [f"reward_{term}" for term in robot.terms]
        self._reward_columns = [(key, (slice(None), k)) for k, key in enumerate(reward_keys)]
        everybody = np.ones(self.num_envs, bool)
        everybody.flags.writeable = False
        situation = ("distance", "episode_return", "episode_length")
        self._situation_masks = {f"_{key}": everybody for key in situation}
        self._step_keys = ("cost", "simulation_error", *reward_keys, *situation)
        self._step_masks = {f"_{key}": everybody for key in self._step_keys}
        self._blank_info = self._step_masks | dict.fromkeys(self._step_keys)
        if render_mode not in (None, *RENDER_MODES):
            hint = "" if has_screen() else " (no screen for 'human': DISPLAY is not set)"
            raise ValueError(f"no render_mode {render_mode!r}; known: {', '.join(RENDER_MODES)}{hint}")
        self.render_mode = render_mode

    # -- Gymnasium -----------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new episodes, of all robots or of those in the bool array `options["reset_mask"]`."""
        if seed is not None:
            self._rngs = spawn(seed, self.num_envs)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        if np.shape(mask) != (self.num_envs,) or np.asarray(mask).dtype != bool:
            raise ValueError(
                f"options['reset_mask'] must be a bool array of shape ({self.num_envs},), got {mask!r}"
            )
        self._start(np.flatnonzero(mask))
        observation = self.observe()
        if observation.shape != self.observation_space.shape:
            size, shape = self.robot.observation_size, observation.shape
            raise ValueError(f"{self.robot.name}: observation_size is {size}; observe gave shape {shape}")
        info = self._situation_masks.copy()
        self._describe(info, self.robot.distance(self.now))
        return observation, info

    def step(self, actions: np.ndarray):
        """One control step of every robot: (observation, reward, terminated, truncated, info)."""
        robot, now = self.robot, self.now
        self._execute(actions)
        diverged = self.physics.step(self._action)
        robot.prepare(now)
        fallen, distance = robot.fallen(now) | diverged, robot.distance(now)
        values = robot.reward_terms(now, self.before, fallen, distance)
        for name, column in self._term_columns:
            column[:] = values[name]
        terms = self._terms * self._weights
        reward = np.vecdot(self._terms, self._weights)
        if robot.floored:
            np.maximum(reward, 0.0, out=reward)
            reward[fallen] = 0.0
        robot.remember(now)
        self._return += reward
        self._length += 1
        truncated = self._length >= self._limit
        observation = robot.observe(now)
        info = self._blank_info.copy()
        info["cost"], info["simulation_error"] = fallen.astype(np.float64), diverged
        self._describe(info, distance)
        for key, column in self._reward_columns:
            info[key] = terms[column]
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
        executed[:] = actions
        np.maximum(executed, self._low, out=executed)
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
        (ids,) = ended.nonzero()
        last = np.full(self.num_envs, None, object)
        for i in ids:
            last[i] = observation[i].copy()
        finished = dict.fromkeys(self._step_masks, ended)
        finished.update({key: info[key] * ended for key in self._step_keys})
        info.update(final_obs=last, _final_obs=ended, final_info=finished, _final_info=ended)
        self._start(ids)
        observation = self.observe()
        self._describe(info, self.robot.distance(self.now))
        return observation

    def _describe(self, info: dict[str, Any], distance: np.ndarray) -> None:
        info["distance"] = distance
        info["episode_return"], info["episode_length"] = self._return.copy(), self._length.copy()

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
            human = self.render_mode == "human"
            self._canvas = self.robot.window() if human else self.robot.painter()
        if self.render_mode == "human":
            return self._canvas.draw(self.now.qpos[0])
        return tuple(self._canvas.draw(qpos) for qpos in self.now.qpos)

    def close_extras(self, **kwargs: Any) -> None:
        if self._canvas is not None:
            self._canvas.close()
            self._canvas = None

    @property
    def simulation_errors(self) -> int:
        """Diverged steps since construction."""
        return self.physics.errors

    def _start(self, ids: np.ndarray) -> None:
        """Put robots `ids` into the first state of an episode."""
        self.physics.state[ids] = self.physics.nominal_state
        for memory in self._memory.values():
            memory[ids] = 0.0
        start = self.robot.start(self.flavour)
        for i in ids:
            for name, value in start(self._rngs[i], self.model, self._scratch).items():
                getattr(self.now, name)[i] = value
        self._return[ids] = 0.0
        self._length[ids] = 0

    # -- save and restore ----------------------------------------------------------------------------------

    def get_state(self, ids: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        """Everything that decides how robots `ids` (default: all) go on, one row per robot."""
        rows = np.arange(self.num_envs) if ids is None else np.asarray(ids, int)
        return {
            "physics": self.physics.state[rows],
            "episode_return": self._return[rows],
            "episode_length": self._length[rows],
            "rng": np.array([words_of(self._rngs[i]) for i in rows], np.uint64).reshape(-1, WORDS),
            **{name: memory[rows] for name, memory in self._memory.items()},
        }

    snapshot, pose_name = get_state, "qpos"  # what the records keep of an exit and of a fall

    def pose(self) -> np.ndarray:
        """qpos, [E, nq], live."""
        return self.now.qpos

    def set_state(self, state: Mapping[str, np.ndarray], ids: Sequence[int] | None = None) -> None:
        """Put rows from `get_state`, of this batch or another, into robots `ids` (default: all)."""
        rows = np.arange(self.num_envs) if ids is None else np.asarray(ids, int)
        for name, current in self.get_state(rows).items():
            if name not in state or np.shape(state[name]) != current.shape:
                got = np.shape(state[name]) if name in state else "nothing"
                raise ValueError(f"state[{name!r}] must have shape {current.shape}, got {got}")
        self.physics.state[rows] = state["physics"]
        self._return[rows] = state["episode_return"]
        self._length[rows] = state["episode_length"]
        for name, memory in self._memory.items():
            memory[rows] = state[name]
        for i, words in zip(rows, state["rng"], strict=True):
            self._rngs[i] = generator_of(words)
        self.batch.warning[rows] = 0


def _require_count(name: str, value: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
