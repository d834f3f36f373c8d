"""The robots by name: the paper's three, and those that a user registers."""

import os
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import gymnasium

from safeexplorer.robots import ant, go1, half_cheetah
from safeexplorer.robots.robot import Robot, check
from safeexplorer.robots.simulation import Simulation

ROBOTS: dict[str, Robot] = {}
ROBOT_FILES = "SAFEEXPLORER_ROBOT_FILES"  # where processes hand on which files they registered


def register(robot: Robot) -> Robot:
    """Make a robot known to every command by its name, and to Gymnasium by its id."""
    check(robot)
    if robot.name in ROBOTS:
        raise ValueError(f"name is {robot.name!r}; allowed: any but {', '.join(ROBOTS)}")
    gymnasium.register(
        robot.env_id,
        entry_point="safeexplorer.robots.single:SingleRobot",
        vector_entry_point="safeexplorer.robots:make",
        kwargs={"name": robot.name},
    )
    ROBOTS[robot.name] = robot
    return robot


@cache
def register_file(path: Path) -> None:
    """Run a Python file that calls `register`, once; the processes that this one starts will do the same."""
    spec = spec_from_file_location(f"robot_file_{path.stem}", path)
    if spec is None or not path.is_file():
        raise ValueError(f"--robot-file is {str(path)!r}; allowed: a Python file that registers robots")
    known = len(ROBOTS)
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    if len(ROBOTS) == known:
        raise ValueError(f"{path} registers no robot; it must call safeexplorer.robots.register(robot)")
    if str(path) not in robot_files():
        os.environ[ROBOT_FILES] = os.pathsep.join([*robot_files(), str(path)])


def robot_files() -> list[str]:
    """The files of `register_file`, of this process and of the one that started it."""
    return list(filter(None, os.environ.get(ROBOT_FILES, "").split(os.pathsep)))


def get_robot(name: str) -> Robot:
    if name not in ROBOTS:
        raise ValueError(f"no robot {name!r}; known: {', '.join(ROBOTS)}, or your own from a --robot-file")
    return ROBOTS[name]


def make(name: str, num_envs: int = 4, **settings: Any) -> Simulation:
    """E robots of one kind; the settings are those of `Simulation`."""
    return Simulation(get_robot(name), num_envs, **settings)


for module in (half_cheetah, ant, go1):
    register(module.ROBOT)
for file in robot_files():
    register_file(Path(file))
