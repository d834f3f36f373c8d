"""The robots of the paper, by name."""

from __future__ import annotations

from typing import Any

import gymnasium

from safeexplorer.robots import ant, go1, half_cheetah
from safeexplorer.robots.robot import Robot
from safeexplorer.robots.simulation import Simulation

ROBOTS: dict[str, Robot] = {module.ROBOT.name: module.ROBOT for module in (half_cheetah, ant, go1)}

for robot in ROBOTS.values():
    gymnasium.register(
        robot.env_id,
        entry_point="safeexplorer.robots.single:SingleRobot",
        vector_entry_point="safeexplorer.robots:make",
        kwargs={"name": robot.name},
    )


def get_robot(name: str) -> Robot:
    if name not in ROBOTS:
        raise ValueError(f"no robot {name!r}; known: {', '.join(ROBOTS)}")
    return ROBOTS[name]


def make(name: str, num_envs: int = 4, **settings: Any) -> Simulation:
    """E robots of one kind; the settings are those of `Simulation`."""
    return Simulation(get_robot(name), num_envs, **settings)
