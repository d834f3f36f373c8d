"""A physical robot as the world of a run."""

from dataclasses import replace
from typing import Any

from safeexplorer.acting.interventions import Intervention
from safeexplorer.learning.methods import METHODS
from safeexplorer.realtime.collector import RobotCollector
from safeexplorer.realtime.loop import RobotLoop
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import World


def loop_world(
    settings: Settings, loop: RobotLoop, recovery: Any, intervention: Intervention | None
) -> World:
    """A physical robot, whose loop holds the recovery and knows where the policy may act.

    The learner is compiled before the loop is armed, and the loop disarmed afterwards if it was armed here.
    """
    if recovery is not None or intervention is not None:
        raise ValueError("recovery and region belong to the RobotLoop; allowed here: neither")
    method = settings.method_row()
    if not method.intervenes or method.sampled_recovery:
        allowed = [m.name for m in METHODS.values() if m.intervenes and not m.sampled_recovery]
        raise ValueError(f"method is {method.name!r}; allowed on a physical robot: {', '.join(allowed)}")
    rollout_steps = replace(settings, num_envs=1).resolved().rollout_steps
    collector = RobotCollector(loop, rollout_steps)
    held_before = False

    def begin(run: Any) -> None:
        nonlocal held_before
        held_before = loop.armed
        collector.asked_to_stop = run.asked_to_stop
        run.compile(collector.blank())
        if not held_before:
            collector.arm(run.params)

    def finish() -> None:
        if not held_before:
            loop.disarm()

    return World(
        env=collector,
        intervention=loop.pilot.intervention,
        recovery=None,  # the loop's own
        make_collector=lambda env, recovery, intervention, *_, **__: collector.under(intervention),
        begin=begin,
        finish=finish,
    )
