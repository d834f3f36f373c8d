"""Any Gymnasium environment as the rollout wants it: same-step resets, rows of float32 actions, a distance in `info`.

Vector environments differ in when they begin the next episode (Gymnasium's three autoreset modes). Here they all
look alike: the step that ends an episode returns the first observation of the next one, and `info` keeps the last
observation of the old one. No step is spent on a reset, so that all three modes give the same rollouts. A next-step
environment that is neither `SyncVectorEnv` nor `AsyncVectorEnv` is refused: it may know no other way to reset a robot
than to step them all, and nobody acts on such a step.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, flatten
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper

from safeexplorer.adapters.diagnosis import explained
from safeexplorer.adapters.ends import Ends
from safeexplorer.adapters.episode_memory import EpisodeMemory
from safeexplorer.adapters.spaces import (
    flat_action_space,
    flat_observation_space,
    flat_rows,
    from_space,
    in_space,
    sizes_of,
)
from safeexplorer.adapters.stable_baselines import StableBaselinesEnv
from safeexplorer.adapters.takeovers import Takeover, speaks, takeover_of

Fell = Callable[[np.ndarray, dict[str, Any]], bool] | str | None
Distance = Callable[[np.ndarray], np.ndarray] | str | None
MASKED = (SyncVectorEnv, AsyncVectorEnv)  # honour options["reset_mask"] in every mode
MISTAKES = (TypeError, ValueError, AttributeError)  # that a vector makes of an environment's odd answers
SEEDS = 2**31  # environments of others may take no larger seed


def vectorise(env: Any, num_envs: int) -> VectorEnv:
    """A vector environment from an id, an environment, what makes one, a list of such, or a vector environment."""
    if isinstance(env, VectorEnv):
        return env
    if isinstance(env, str):
        factories = [lambda: gymnasium.make(env)] * num_envs
    elif isinstance(env, gymnasium.Env):
        factories = [lambda: env]
    elif isinstance(env, Sequence) and env and all(callable(one) for one in env):
        factories = list(env)
    elif hasattr(env, "step_async") and hasattr(env, "env_is_wrapped"):
        return StableBaselinesEnv(env)
    elif callable(env):
        factories = [env] * num_envs
    else:
        kinds = "an id, a gymnasium.Env, a class or function that makes one, a list of such, a gymnasium VectorEnv"
        raise ValueError(f"env is {env!r}; allowed: {kinds}, an SB3 VecEnv")
    vector = SyncVectorEnv(factories, autoreset_mode=AutoresetMode.DISABLED)
    if len({id(one.unwrapped) for one in vector.envs}) < vector.num_envs:
        raise ValueError(
            f"env gave the same environment twice among {vector.num_envs}; allowed: functions that each make a new one"
        )
    return vector


def more_rows(observation: np.ndarray) -> np.ndarray:
    """The observations [E, n] again and again, in a number of rows that is neither E nor n."""
    count = next(k for k in range(len(observation) + 1, len(observation) + 3) if k != observation.shape[1])
    return observation[np.arange(count) % len(observation)]


def check_rows(name: str, function: Callable[[np.ndarray], Any], observation: np.ndarray) -> None:
    """One answer per row, whatever the number of rows: a function along the wrong axis passes only where n = E."""
    rows = more_rows(observation)
    rows.flags.writeable = False
    try:
        answer = np.asarray(function(rows))
    except Exception as error:
        raise ValueError(f"{name} {name_of(function)} raised {type(error).__name__}: {error}") from error
    if answer.shape != (len(rows),):
        raise ValueError(
            f"{name} gave the shape {answer.shape} for {len(rows)} observations of {rows.shape[1]} numbers; allowed: "
            f"({len(rows)},), one per row. Index columns, as in observation[:, 1]"
        )


def name_of(source: Callable | str) -> str:
    """A distance as its author calls it."""
    return getattr(source, "__name__", source if isinstance(source, str) else type(source).__name__)


class Environments(VectorWrapper):
    """E environments behind one face; see the module's docstring.

    `info` of `reset` and `step` holds `distance` [E] (NaN without one); where episodes ended `final_obs`, `final_info`
    and their masks, and `reached`, which of them ended at a goal; and where the environment reported takeovers
    `intervention` and `executed_action`.
    """

    def __init__(self, env: VectorEnv, distance: Distance = None, fell: Fell = None):
        super().__init__(env)
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            modes = ", ".join(f"AutoresetMode.{known.name}" for known in AutoresetMode)
            raise ValueError(f"env.metadata['autoreset_mode'] is {mode!r}; allowed: {modes}")
        self.sizes = sizes_of(env.single_observation_space, env.single_action_space)
        self.raw_observation_space = env.single_observation_space
        self.raw_action_space = env.single_action_space
        self.single_observation_space = flat_observation_space(self.raw_observation_space)
        self.single_action_space = flat_action_space(self.raw_action_space)
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._same_step, self._distance = mode == AutoresetMode.SAME_STEP, distance
        self._ends = Ends(fell)
        if mode == AutoresetMode.NEXT_STEP and not isinstance(env.unwrapped, MASKED):
            raise ValueError(
                f"{type(env.unwrapped).__name__} declares AutoresetMode.NEXT_STEP: it spends steps on resets, on which "
                "nobody acts; allowed: an id, SyncVectorEnv or AsyncVectorEnv in any mode (gymnasium.make_vec with "
                "vectorization_mode='sync'), or AutoresetMode.SAME_STEP"
            )
        self._memory = EpisodeMemory(env) if isinstance(env, SyncVectorEnv) and not self._same_step else None
        self._observation = np.zeros((self.num_envs, self.sizes.observation))

    # -- Gymnasium -----------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin new episodes everywhere."""
        seed = None if seed is None else seed % SEEDS
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except MISTAKES as error:
            raise explained(self.env, error) from error
        if self._memory is not None:
            self._memory.begin_all(seed)
        self._observation = self._checked(observation)
        self._distance_of = self._find_distance(info)
        distance = self._distance_at(self._observation, info)
        if self._distance is not None and np.isnan(distance).all():
            raise ValueError(
                f"distance {name_of(self._distance)} is NaN for all {self.num_envs} robots after a reset: they would "
                "be outside every region; allowed: numbers of at least 0"
            )
        return self._observation, {"distance": distance}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step everywhere; actions are rows of numbers [E, m], clipped to the bounds."""
        command = self._command(actions)
        if self._memory is not None:
            self._memory.note(command.copy())  # the environment may change what it is given
        try:
            observation, reward, terminated, truncated, info = self.env.step(command)
        except MISTAKES as error:
            raise explained(self.env, error) from error
        observation, reward = self._checked(observation), self._one_each("reward", reward, np.float64)
        if not np.isfinite(reward).all():
            raise FloatingPointError(f"the environment gave a reward that is not finite: {reward}")
        terminated = self._one_each("terminated", terminated, bool)
        truncated = self._one_each("truncated", truncated, bool)
        ended = terminated | truncated
        news: dict[str, Any] = {}
        if not ended.any():
            news["distance"] = self._distance_at(observation, info)
            self._hear(info, news)
        elif self._same_step:
            self._read_finals(observation, info, ended, news)
            news["reached"] = self._ends.reached(terminated, news["final_obs"], info.get("final_info", {}))
        else:
            news["reached"] = self._ends.reached(terminated, observation, info)
            observation = self._begin_again(observation, info, ended, news)
        self._ends.watch(reward, terminated)
        self._observation = observation
        return observation, reward, terminated, truncated, news

    def _command(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs, self.sizes.action):
            raise ValueError(
                f"actions must have shape {(self.num_envs, self.sizes.action)}, got {actions.shape}"
            )
        if np.isnan(actions).any():
            raise ValueError(
                f"actions must be numbers, got NaN for robots {np.flatnonzero(np.isnan(actions).any(1))}"
            )
        return in_space(actions, self.raw_action_space)

    def _checked(self, observation: Any) -> np.ndarray:
        wanted = self.env.observation_space.shape  # None where it has parts
        if wanted is not None and np.shape(observation) != wanted:
            raise ValueError(
                f"the environment gave observations of shape {np.shape(observation)}; "
                f"allowed: {wanted}, one per robot"
            )
        # a copy: some environments reuse their arrays
        return self._finite(flat_rows(observation, self.raw_observation_space, self.env.observation_space))

    def _finite(self, observation: np.ndarray) -> np.ndarray:
        if not np.isfinite(observation).all():
            rows = np.flatnonzero(~np.isfinite(observation).all(1)).tolist()
            raise FloatingPointError(f"the environment gave observations that are not finite, robots {rows}")
        observation.flags.writeable = False  # a distance that wrote into it would change what the policy sees
        return observation

    def _one_each(self, name: str, values: Any, kind: type) -> np.ndarray:
        values = np.asarray(values)
        if values.shape != (self.num_envs,):
            raise ValueError(
                f"the environment gave {name} of shape {values.shape}; allowed: ({self.num_envs},), one per robot"
            )
        if kind is bool and not np.isin(values, (0, 1)).all():
            raise ValueError(f"the environment gave {name} {values}; allowed: true or false")
        return values.astype(kind)  # a copy: some environments reuse their arrays

    # -- the end of an episode -----------------------------------------------------------------------------

    def _read_finals(self, observation: np.ndarray, info: dict, ended: np.ndarray, news: dict) -> None:
        """The environment has begun again by itself, and left its last words in `info`."""
        if "final_obs" not in info:
            raise ValueError("the environment declares AutoresetMode.SAME_STEP but gave no info['final_obs']")
        last = observation.copy()
        for i in np.flatnonzero(ended):
            try:
                final = flatten(self.raw_observation_space, info["final_obs"][i])
            except Exception as error:
                raise ValueError(
                    f"info['final_obs'][{i}] of the environment is no observation: {error!r}"
                ) from error
            if final.shape != last[i].shape:
                raise ValueError(
                    f"the environment gave info['final_obs'][{i}] of shape {np.shape(info['final_obs'][i])}; "
                    f"allowed: {self.raw_observation_space.shape}"
                )
            last[i] = final
        last = self._finite(last)
        final_info = info.get("final_info", {})
        news["distance"] = self._distance_at(observation, info)
        news.update(final_obs=last, _final_obs=ended, _final_info=ended)
        news["final_info"] = {"distance": self._distance_at(last, final_info)}
        for part, rows in ((info, ~ended), (final_info, ended)):
            self._hear(part, news, rows)

    def _begin_again(self, last: np.ndarray, info: dict, ended: np.ndarray, news: dict) -> np.ndarray:
        """Reset those that ended, and only those."""
        distance = self._distance_at(last, info)
        self._hear(info, news)
        if self._memory is not None:
            self._memory.begin(np.flatnonzero(ended))
        observation, info = self.env.reset(options={"reset_mask": ended.copy()})
        observation = self._checked(observation)
        if not np.array_equal(observation[~ended], last[~ended]):
            raise ValueError(
                "the environment reset robots it was not asked to: it must honour options['reset_mask'] of reset(), "
                "or reset by itself and declare AutoresetMode.SAME_STEP"
            )
        news.update(final_obs=last, _final_obs=ended, final_info={"distance": distance}, _final_info=ended)
        news["distance"] = np.where(ended, self._distance_at(observation, info), distance)
        return observation

    # -- what `info` tells ---------------------------------------------------------------------------------

    def _find_distance(self, info: dict[str, Any]) -> Callable[[np.ndarray, dict], np.ndarray]:
        """How D is found: by the caller's function, a key of `info` or a method of the environments.

        Nobody asked for one: the key `distance` if it is there, else NaN.
        """
        source, nowhere = self._distance, np.full(self.num_envs, np.nan)
        if callable(source):
            check_rows("distance", source, self._observation)
            return lambda observation, info: source(observation)
        if source is None or source in info:
            return lambda observation, info: info.get(source or "distance", nowhere)
        if self._has_method(source):
            return lambda observation, info: self.env.call(source)
        keys = ", ".join(sorted(key for key in info if not key.startswith("_"))) or "none"
        raise ValueError(
            f"distance is {source!r}; allowed: a function of the observations, a key of info (after reset: {keys}) "
            "or a method of the environment"
        )

    def _distance_at(self, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """D of each robot, [E]."""
        distance = np.array(self._distance_of(observation, info), np.float64)  # a copy
        if distance.shape != (self.num_envs,):
            raise ValueError(
                f"distance has shape {distance.shape}; allowed: ({self.num_envs},), one per robot"
            )
        if self._distance is not None and (distance < 0).any():
            raise ValueError(
                f"distance {name_of(self._distance)} is {distance.min():g}; allowed: numbers of at least 0 (a robot "
                "with a negative one would be inside every region)"
            )
        return distance

    def _has_method(self, name: str) -> bool:
        """Only where a finished robot can still be asked before it is reset."""
        if not hasattr(self.env, "call"):
            return False
        try:
            self.env.call(name)
        except AttributeError:
            return False
        if self._same_step:
            raise ValueError(
                f"distance is the method {name!r}, which a same-step environment cannot be asked at the end of an "
                "episode; allowed: a function of the observations or a key of info"
            )
        return True

    def _hear(self, info: dict, news: dict, rows: np.ndarray | None = None) -> None:
        """Takeovers that the environment reports, of the given rows."""
        if not speaks(info):
            return
        takeover = takeover_of(info, self.num_envs)
        flag = takeover.flag if rows is None else takeover.flag & rows
        nothing = np.zeros((self.num_envs, self.sizes.action), np.float32)
        executed = news.setdefault("executed_action", nothing)
        news["intervention"] = news.get("intervention", np.zeros(self.num_envs, bool)) | flag
        executed[flag] = self._as_rows(takeover)[flag]

    def _as_rows(self, takeover: Takeover) -> np.ndarray:
        rows = from_space(takeover.action, self.raw_action_space).astype(np.float32)
        if isinstance(self.single_action_space, Discrete):
            rows -= self.single_action_space.start
        return rows

    # -- records and resuming ------------------------------------------------------------------------------

    pose_name = "observation"

    def snapshot(self, ids: Sequence[int]) -> dict[str, np.ndarray]:
        """What is written down about robots at an exit: an environment of others has no state to take."""
        return {"observation": self._observation[np.asarray(ids, int)]}

    def pose(self) -> np.ndarray:
        """What the black box keeps of an instant."""
        return self._observation

    def get_state(self) -> dict[str, np.ndarray]:
        """From which `set_state` goes on; empty where episodes cannot be repeated."""
        episodes = self._memory.get_state() if self._memory is not None else {}
        return {"observation": self._observation, **episodes} if episodes else {}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        """Repeat the episodes in hand up to where they were; False if that is impossible or gives something else."""
        if self._memory is None or not state:
            return False
        repeated = self._memory.repeat(state)
        self._observation = state["observation"]
        return np.array_equal(repeated, state["observation"])
