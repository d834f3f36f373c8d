"""Gymnasium's own robots in step with ours."""

import gymnasium
import mujoco
import numpy as np

FULL_STATE = mujoco.mjtState.mjSTATE_INTEGRATION.value


def stock_in_state(env_id, simulation, **settings):
    """The stock environment in the state of robot 0."""
    env = gymnasium.make(env_id, disable_env_checker=True, **settings).unwrapped
    env.reset(seed=0)
    mujoco.mj_setState(env.model, env.data, simulation.batch.state[0], FULL_STATE)
    mujoco.mj_kinematics(env.model, env.data)  # the body positions that stock's next step starts from
    return env


def random_actions(size, steps, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, size))
