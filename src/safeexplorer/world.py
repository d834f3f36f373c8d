"""What a run is run on, beyond its numbers: the robots, the recovery and who acts when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gymnasium.vector import VectorEnv

from safeexplorer import envs
from safeexplorer.environments import sizes_of
from safeexplorer.interventions import Intervention, JumpStart, NoIntervention, SafeRegion
from safeexplorer.policy import Sizes
from safeexplorer.realtime import RobotCollector, RobotLoop
from safeexplorer.recovery import CheckedRecovery, load_recovery
from safeexplorer.rollout import Collector
from safeexplorer.schedules import linear, make_schedule
from safeexplorer.settings import Settings


@dataclass
class World:
    """A built-in robot's (`robot_world`) or the caller's own."""

    env: VectorEnv  # same-step resets, rows of float actions, `distance` in its info
    intervention: Intervention
    recovery: CheckedRecovery | None
    evaluation_env: VectorEnv | None = None
    make_collector: Callable[..., Any] = Collector
    begin: Callable[[Any], None] = lambda run: None  # called with the `Training` before its first update
    finish: Callable[[], None] = lambda: None  # and after its last one, whatever happened

    @property
    def sizes(self) -> Sizes:
        """Of observation and action."""
        return sizes_of(self.env.single_observation_space, self.env.single_action_space)


def robot_world(settings: Settings) -> World:
    """A built-in robot with everything as the settings say."""
    env = envs.make(
        settings.robot, settings.num_envs, threads=settings.threads, action_noise=settings.action_noise
    )
    intervenes = settings.method_row().intervenes
    return World(
        env=env,
        intervention=make_intervention(settings),
        recovery=load_recovery(settings.recovery, env.robot) if intervenes else None,
        evaluation_env=envs.make(settings.robot, settings.eval_episodes) if settings.eval_every else None,
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


def physical_world(loop: RobotLoop, rollout_steps: int) -> World:
    """One physical robot: the learner is compiled before the loop is armed, and the loop disarmed afterwards."""
    collector = RobotCollector(loop, rollout_steps)
    held_before = False

    def begin(run: Any) -> None:
        nonlocal held_before
        held_before = loop.armed
        run.rehearse(collector.blank())
        if not held_before:
            collector.arm(run.params)

    def finish() -> None:
        if not held_before:
            loop.disarm()

    return World(
        env=collector,
        intervention=loop.pilot.intervention,
        recovery=None,  # the loop's own
        make_collector=lambda *_, **__: collector,
        begin=begin,
        finish=finish,
    )
