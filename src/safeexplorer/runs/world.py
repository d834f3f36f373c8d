"""What a run is run on, beyond its numbers: the robots, the recovery and who acts when."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import VectorEnv

from safeexplorer import robots
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import (
    Intervention,
    JumpStart,
    NoIntervention,
    ReportedTakeovers,
    SafeRegion,
    Situation,
)
from safeexplorer.acting.policy import Sizes
from safeexplorer.acting.schedules import linear, make_schedule
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.adapters.environments import Environments, Fell, more_rows, vectorise
from safeexplorer.adapters.spaces import columns_of, from_space, sizes_of
from safeexplorer.files.console import notice
from safeexplorer.learning.methods import CONSTRAINED, METHODS
from safeexplorer.recovery import CheckedRecovery, as_recovery, interface_between, load_recovery
from safeexplorer.robots import ROBOTS
from safeexplorer.robots.simulation import Simulation
from safeexplorer.runs.settings import Settings


@dataclass
class World:
    """A built-in robot's (`robot_world`) or the caller's own."""

    env: VectorEnv  # same-step resets, rows of float actions, `distance` in its info
    intervention: Intervention
    recovery: CheckedRecovery | None
    eval_env: VectorEnv | None = None
    make_collector: Callable[..., Any] = Collector
    # A rollout of the `Training` at this progress, and what was learned where that is one and the same function:
    collect: Callable[[Any, float], tuple[Rollout, dict | None]] = lambda run, progress: (
        run.collect(progress),
        None,
    )
    critic_size: int = 0  # numbers that the critic sees, if not the policy's
    begin: Callable[[Any], None] = lambda run: None  # called with the `Training` before its first update
    finish: Callable[[], None] = lambda: None  # and after its last one, whatever happened
    learning_rate: Callable[[float], float] | None = None  # of progress, instead of the settings'

    @property
    def spaces(self) -> tuple[Space, Space]:
        """Of observations and actions, as the environment itself has them."""
        env = self.env
        observation = getattr(env, "raw_observation_space", env.single_observation_space)
        return observation, getattr(env, "raw_action_space", env.single_action_space)

    @property
    def sizes(self) -> Sizes:
        """Of observation and action."""
        return sizes_of(self.env.single_observation_space, self.env.single_action_space)


def robot_world(settings: Settings) -> World:
    """A built-in robot with everything as the settings say."""
    env = robots.make(
        settings.robot, settings.num_envs, threads=settings.threads, action_noise=settings.action_noise
    )
    intervenes = settings.method_row().intervenes
    return World(
        env=env,
        intervention=make_intervention(settings),
        recovery=load_recovery(settings.recovery, env.robot) if intervenes else None,
        eval_env=robots.make(settings.robot, settings.eval_episodes) if settings.eval_every else None,
    )


def make_intervention(settings: Settings) -> Intervention:
    """Who acts when, from the settings."""
    if not settings.method_row().intervenes:
        return NoIntervention()
    if settings.intervention == "jump_start":
        return JumpStart(linear(settings.handoff, -settings.handoff))
    return SafeRegion(
        make_schedule(settings.schedule, settings.initial_radius, settings.max_radius, settings.fraction)
    )


# -- from what a caller of the class gives -----------------------------------------------------------------


def robot_of(env: Any) -> tuple[str | None, Any]:
    """The built-in robot that `env` names, if it does, and what is left of `env` then."""
    if isinstance(env, Simulation):
        return env.robot.name, env
    for robot in ROBOTS.values():
        if env in (robot.name, robot.env_id):
            return robot.name, None
    return None, env


def make_eval_env(env: Any, episodes: int, intervention: Intervention, fell: Fell = None) -> VectorEnv:
    """Environments to evaluate a policy in: as many copies of an id as there are to be episodes."""
    robot, env = robot_of(env)
    if robot is not None:
        return robots.make(robot, episodes) if env is None else env
    return Environments(vectorise(env, episodes), getattr(intervention, "distance", None), fell)


def make_world(
    settings: Settings, env: Any, recovery: Any, intervention: Intervention | None, eval_env: Any, fell: Fell
) -> World:
    """From what the caller gave; what was left out of a built-in robot is the robot's own."""
    if settings.robot is None:
        return own_world(settings, env, recovery, intervention, eval_env, fell)
    if fell is not None:
        raise ValueError(f"fell is {fell!r}; a built-in robot says itself when it fell: leave it out")
    world = robot_world(settings.resolved())
    if isinstance(env, VectorEnv):
        world.env = env
    if settings.method_row().intervenes:
        world.intervention = intervention or world.intervention
        if recovery is not None:
            world.recovery = load_recovery(recovery, world.env.robot)
    return world


def own_world(
    settings: Settings, env: Any, recovery: Any, intervention: Intervention | None, eval_env: Any, fell: Fell
) -> World:
    """An environment of the caller's own."""
    distance = getattr(intervention, "distance", None)
    vector = Environments(vectorise(env, settings.num_envs), distance, fell)
    if vector.single_observation_space is not vector.raw_observation_space:
        columns = columns_of(vector.raw_observation_space)
        notice(f"observations are rows of {vector.sizes.observation} numbers; in their columns: {columns}")
    judge, method = None, settings.method_row()
    if settings.eval_every:
        if eval_env is None and not isinstance(env, str):
            raise ValueError(f"eval_every is {settings.eval_every}; allowed without an eval_env: 0")
        judged_in = env if eval_env is None else eval_env
        judge = make_eval_env(judged_in, settings.eval_episodes, intervention, fell)
    if not method.intervenes:
        return World(vector, NoIntervention(), None, judge)
    if intervention is None:
        raise ValueError(
            f"method {method.name!r} needs to know where the policy acts: region=SafeRegion(...) or intervention=..."
        )
    if recovery is None and not isinstance(intervention, ReportedTakeovers):
        raise ValueError(
            f"method {method.name!r} needs a recovery; allowed: a callable, an SB3 model, an .onnx file"
        )
    interface = interface_between(
        "the environment", vector.single_observation_space, vector.single_action_space
    )
    checked = None if recovery is None else as_recovery(in_choices(recovery, vector), interface)
    return World(vector, intervention, checked, judge, begin=probe)


def in_choices(recovery: Any, env: Environments) -> Any:
    """The recovery answers in the environment's own actions; here in the policy's, where they are others."""
    space = env.raw_action_space
    if space == env.single_action_space or isinstance(recovery, str | os.PathLike):
        return recovery
    ask = recovery
    if hasattr(recovery, "predict"):

        def ask(observation: np.ndarray) -> np.ndarray:
            return recovery.predict(np.array(observation), deterministic=True)[0]

    return lambda observation: from_space(ask(observation), space)


def probe(run: Any) -> None:
    """Ask everyone once about another number of robots: what looks along the wrong axis is found before training."""
    rows = more_rows(run.collector.observation)
    count = len(rows)
    situation = Situation(rows, np.zeros(count), np.zeros(count, np.int64))
    answer = np.asarray(run.intervention.takes_over(situation, 0.0))
    if answer.shape != (count,):
        raise ValueError(
            f"takes_over gave the shape {answer.shape} for {count} robots; allowed: ({count},), one per robot"
        )
    if run.recovery is not None:
        run.recovery.tried(rows)


def check_fit(settings: Settings, world: World) -> None:
    """Refuse what this world cannot do."""
    recovery, method = world.recovery, settings.method_row()
    if method.sampled_recovery and recovery is not None and not recovery.has_density:
        raise ValueError(
            f"recovery is {recovery.name!r}, which has no density; with method {settings.method!r} and these settings "
            "its actions are drawn from one"
        )
    if settings.method in CONSTRAINED and world.sizes.choices:
        raise ValueError(
            f"method is {settings.method!r}; allowed with discrete actions: {', '.join(METHODS)}"
        )
    if settings.robot is None:
        for name in ("analytic_samples", "action_noise"):
            value, default = getattr(settings, name), getattr(Settings, name)
            if value != default:
                raise ValueError(f"{name} is {value}; allowed with an environment of your own: {default}")
