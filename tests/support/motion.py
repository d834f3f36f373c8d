"""Robots in motion and how two motions are compared."""

import numpy as np
import pytest

from safeexplorer.robots import ROBOTS

every_robot = pytest.mark.parametrize("name", ROBOTS)
every_flavour = pytest.mark.parametrize(
    ("name", "flavour"), [(name, flavour) for name, robot in ROBOTS.items() for flavour in robot.flavours]
)


def actions_of(simulation, steps, seed=0, noise=0.5):
    """Actions around the holding one, [steps, E, m]."""
    robot = simulation.robot
    shape = (steps, simulation.num_envs, robot.action_size)
    return robot.hold_action() + noise * np.random.default_rng(seed).standard_normal(shape)


def flatten(outcome):
    """All numbers of one step by name, final observations and infos included."""
    observation, reward, terminated, truncated, info = outcome
    numbers = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated}
    numbers |= {f"info {key}": value for key, value in info.items() if key not in ("final_obs", "final_info")}
    numbers |= {f"final {key}": value for key, value in info.get("final_info", {}).items()}
    for i, last in enumerate(info.get("final_obs", ())):
        numbers[f"final_obs {i}"] = last if last is not None else np.zeros(0)
    return numbers


def assert_identical(one, two):
    """Bit for bit."""
    one, two = flatten(one), flatten(two)
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key], err_msg=key, strict=True)
