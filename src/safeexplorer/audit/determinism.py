"""Does the recovery do the same again? Proposition 6 gives the value in closed form only if it does.

The strongest check that can be made is made: *replay* restores logged exit states and recovers from each twice,
*repeat* asks the recovery twice about equal observations, *recorded* looks for equal observations in a recording, and
*declared* takes a recorded density for what it is: the recovery draws its actions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from safeexplorer.acting.collector import Collector, Observer
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.checkpoint import state_of
from safeexplorer.learning.rerolls import fresh_streams
from safeexplorer.robots.simulation import Simulation

REPLAYED_EXITS = 16
REPLAY_STEPS = 100


@dataclass(frozen=True)
class Determinism:
    """What was compared, bit for bit, and what came out; None is not known."""

    check: str  # replay, repeat, recorded, declared or none
    compared: int = 0  # exits replayed, or pairs of equal observations
    actions_equal: bool | None = None  # on equal observations
    trajectories_equal: bool | None = None  # after equal states and equal actions

    @property
    def verdict(self) -> str:
        if self.actions_equal is None:
            return "unknown"
        if not self.actions_equal:
            return "stochastic recovery"
        return "stochastic world" if self.trajectories_equal is False else "deterministic"


class Exit(NamedTuple):
    """The moment in which robots enter a recovery segment."""

    robots: np.ndarray
    observation: np.ndarray  # [E, n]
    world: dict[str, np.ndarray]  # empty: the world cannot be restored
    memory: dict[str, np.ndarray]  # of the recovery


class ExitNotes:
    """A uniform sample of exits of one rollout; hands everything on to the observer it stands in for."""

    def __init__(self, collector: Collector, rng: np.random.Generator, behind: Observer | None):
        self.collector, self.rng, self.behind = collector, rng, behind
        self.seen, self.exits = 0, []

    def before_step(self, step: int) -> None:
        if self.behind is not None:
            self.behind.before_step(step)

    def on_exit(self, step: int, robots: np.ndarray) -> None:
        if self.behind is not None:
            self.behind.on_exit(step, robots)
        place = self.seen if self.seen < REPLAYED_EXITS else int(self.rng.integers(self.seen + 1))
        self.seen += 1
        if place < REPLAYED_EXITS:
            self.exits[place : place + 1] = [self._note(robots)]

    def _note(self, robots: np.ndarray) -> Exit:
        collector = self.collector
        memory = state_of(collector.mixed.recovery)
        return Exit(robots, collector.observation.copy(), state_of(collector.env), memory)


def check_determinism(collector: Collector, exits: list[Exit], rng: np.random.Generator) -> Determinism:
    """Replay or repeat the recovery at the exits; robots and recovery are put back where they were."""
    if not exits:
        return Determinism("none")
    if not exits[0].world:
        equal = [repeat(collector, exit_, rng) for exit_ in exits]
        return Determinism("repeat", len(exits), actions_equal=all(equal))
    before = state_of(collector)
    outcomes = [replay_twice(collector, exit_, rng) for exit_ in exits]
    collector.set_state(before)
    return Determinism("replay", len(exits), *map(every, zip(*outcomes, strict=True)))


def repeat(collector: Collector, exit_: Exit, rng: np.random.Generator) -> bool:
    """Ask twice about the observations of one exit, with the same memory."""
    before, answers = state_of(collector.mixed.recovery), []
    for _ in range(2):
        remember(collector, exit_.memory)
        action, _ = collector.mixed.recover(exit_.observation[exit_.robots], rng)
        answers.append(np.array(action).tobytes())
    remember(collector, before)
    return answers[0] == answers[1]


def remember(collector: Collector, memory: dict[str, np.ndarray]) -> None:
    """Give the recovery its memory back, if it has one."""
    if memory:
        collector.mixed.recovery.set_state(memory)


def replay_twice(
    collector: Collector, exit_: Exit, rng: np.random.Generator
) -> tuple[bool | None, bool | None]:
    """Are the actions equal as long as the observations are, and the observations as long as the actions are?

    Once one of them differs, nothing is known of the other. In a world whose randomness may be part of the restored
    state, equal trajectories say nothing either.
    """
    first, second = (replay(collector, exit_, rng) for _ in range(2))
    for (action, after), (other_action, other_after) in zip(first, second, strict=False):
        if action.tobytes() != other_action.tobytes():
            return False, None
        if after.tobytes() != other_after.tobytes():
            return True, False
    return True, True if isinstance(collector.env, Simulation) else None


def replay(
    collector: Collector, exit_: Exit, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Actions, and what followed (observation, reward, fall, time limit), of the robots that left the region.

    The package's own world draws fresh random numbers in every replay: restored ones would hide its noise. Where any
    robot's episode ends the replay does too: what it begins with next is chance.
    """
    env, robots, state = collector.env, exit_.robots, exit_.world
    if isinstance(env, Simulation):
        state = state | {"rng": fresh_streams(env, rng, env.num_envs)}
    env.set_state(state)
    remember(collector, exit_.memory)
    observation, ended, steps = exit_.observation, np.zeros(len(exit_.observation), bool), []
    while not ended.any() and len(steps) < REPLAY_STEPS:
        action = np.array(collector.mixed.recover(observation, rng)[0])
        observation, reward, terminated, truncated, _ = env.step(action)
        ended = terminated | truncated
        after = np.where(ended[:, None], 0.0, observation)
        flags = np.stack([reward, terminated, truncated], axis=1)
        steps.append((action[robots], np.concatenate([after, flags], axis=1)[robots]))
    return steps


def every(outcomes: tuple[bool | None, ...]) -> bool | None:
    """False if one is, else not known if one is not."""
    return False if False in outcomes else None if None in outcomes else True


def has_density(rollout: Rollout) -> bool:
    """Was log mu written down? A recovery that is not sampled has zeros there."""
    return bool(np.any(rollout.recovery_log_density[rollout.recovering] != 0))


def recorded_determinism(rollout: Rollout) -> Determinism:
    """Equal observations under a deterministic recovery have equal actions, and its actions have no density."""
    observation, action = rollout.observation[rollout.recovering], rollout.action[rollout.recovering]
    if has_density(rollout):
        return Determinism("declared", actions_equal=False)
    if not len(observation):
        return Determinism("none")
    _, first, group = np.unique(observation, axis=0, return_index=True, return_inverse=True)
    model = first[group.reshape(-1)]
    repeats = model != np.arange(len(model))
    if not repeats.any():
        return Determinism("none")
    equal = (action[repeats] == action[model[repeats]]).all()
    return Determinism("recorded", int(repeats.sum()), actions_equal=bool(equal))
