"""What a recovery policy is, and the checks around it.

The least a recovery must be is a callable, observations [E, n] -> actions [E, m]; where the actions are discrete,
whole numbers [E] will do. It is asked only for the robots that need it, so the number of rows changes from call to
call. Attributes it may also have:

    deterministic                  False if equal observations can give different actions (default True)
    sample(observation, rng)       a sampled action [E, m], or the pair (action, its log-density [E])
    log_density(observation, a)    log mu(a | s) [E], over the box of actions
    get_state(), set_state(state)  a dict of arrays, for controllers with memory
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from safeexplorer.recovery.scripted import Posture

Array = np.ndarray


class RecoveryError(ValueError):
    """A recovery policy that cannot be used, or that answered something it must not."""


class Interface(NamedTuple):
    """What goes into a robot's controller and what may come out. `robot` names any environment."""

    robot: str
    observation_size: int
    low: Array  # [m] float32
    high: Array  # [m] float32
    discrete: bool = False  # one action (m = 1), a whole number from low to high
    posture: Posture | None = None  # with it, the scripted recoveries can act


LARGEST_WHOLE = 2**24  # float32 holds every whole number up to here


def interface_between(robot: str, observation_space: Space, action_space: Space) -> Interface:
    """The interface of any environment: a flat Box of observations, a flat Box or a Discrete of actions."""
    if not isinstance(observation_space, Box) or len(observation_space.shape) != 1:
        raise RecoveryError(f"observation_space is {observation_space}; allowed: a Box with one axis")
    size = observation_space.shape[0]
    if isinstance(action_space, Discrete):
        ends = int(action_space.start), int(action_space.start + action_space.n - 1)
        if max(map(abs, ends)) > LARGEST_WHOLE:
            raise RecoveryError(f"action_space is {action_space}; allowed: numbers up to {LARGEST_WHOLE}")
        low, high = (np.array([end], np.float32) for end in ends)
        return Interface(robot, size, low, high, discrete=True)
    if not isinstance(action_space, Box) or len(action_space.shape) != 1:
        raise RecoveryError(f"action_space is {action_space}; allowed: a Box with one axis, or Discrete")
    return Interface(robot, size, action_space.low.astype(np.float32), action_space.high.astype(np.float32))


class CheckedRecovery:
    """A recovery policy whose every answer is checked: shape, finite, within bounds."""

    def __init__(self, policy: Callable[[Array], Array], interface: Interface, name: str, digest: str = ""):
        self.policy, self.interface, self.name, self.digest = policy, interface, name, digest
        self.robot = interface.robot
        self.bounded = bool(np.isfinite([interface.low, interface.high]).all())
        self.deterministic = bool(getattr(policy, "deterministic", True))
        self.has_density = hasattr(policy, "sample") and hasattr(policy, "log_density")

    def act(self, observation: Array) -> Array:
        """The action to execute, [E, m] float32."""
        try:
            action = self.policy(read_only(observation))
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}") from error
        return self._checked(action, len(observation))

    def sample(self, observation: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """An action drawn from mu(. | s), [E, m] float32, and its log-density, [E] float32."""
        if not self.has_density:
            raise self._error("has no density: it must offer sample(observation, rng) and log_density")
        observation = read_only(observation)
        try:
            drawn = self.policy.sample(observation, rng)
            if not isinstance(drawn, tuple):
                drawn = drawn, self.policy.log_density(observation, drawn)
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}") from error
        action, density = self._checked(drawn[0], len(observation)), np.asarray(drawn[1], np.float32)
        if density.shape != (len(observation),) or not np.isfinite(density).all():
            raise self._error(f"gave a log-density of shape {density.shape} or not finite: {density}")
        return action, density

    def tried(self, observation: Array) -> Array:
        """What it would do; whatever it remembers of being asked is taken back."""
        memory = self.get_state()
        action = self.act(observation)
        if memory:
            self.set_state(memory)
        return action

    def get_state(self) -> dict[str, Array]:
        """The controller's memory; empty for one without."""
        return dict(self.policy.get_state()) if hasattr(self.policy, "get_state") else {}

    def set_state(self, state: dict[str, Array]) -> None:
        """Put back what `get_state` gave."""
        if hasattr(self.policy, "set_state"):
            self.policy.set_state(state)
        elif state:
            raise self._error(f"has no memory, but was given a state with {', '.join(sorted(state))}")

    def _checked(self, action: Any, rows: int) -> Array:
        try:
            if np.iscomplexobj(action):
                raise TypeError("its numbers are complex")
            action = np.asarray(action, np.float32)
        except (TypeError, ValueError) as error:
            raise self._error(f"gave an action that is no array of numbers: {error}") from error
        low, high, discrete = self.interface.low, self.interface.high, self.interface.discrete
        if discrete and action.ndim == 1:
            action = action[:, None]
        if action.shape != (rows, low.size):
            raise self._error(f"gave actions of shape {action.shape}, expected {(rows, low.size)}")
        allowed = (action >= low) & (action <= high)  # a NaN fails both comparisons
        if not self.bounded:
            allowed &= np.isfinite(action)
        if discrete:
            allowed &= action == np.rint(action)
        if np.count_nonzero(allowed) == action.size:
            return action - low if discrete else action  # choices are counted from 0, as the policy does
        row, column = np.argwhere(~allowed)[0]
        bounds = f"[{low[column]:.6g}, {high[column]:.6g}]" + (", whole numbers" if discrete else "")
        raise self._error(f"gave action[{row}, {column}] = {action[row, column]:.6g}, allowed: {bounds}")

    def _error(self, what: str) -> RecoveryError:
        return RecoveryError(f"recovery {self.name!r} of {self.robot} {what}")


def read_only(observation: Array) -> Array:
    """A view that cannot be written through."""
    view = observation.view()
    view.setflags(write=False)
    return view
