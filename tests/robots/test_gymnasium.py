"""The robots under their Gymnasium ids, as a stranger would use them."""

import os
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from safeexplorer.robots import ROBOTS
from safeexplorer.robots.simulation import Simulation

every_id = pytest.mark.parametrize("env_id", [robot.env_id for robot in ROBOTS.values()])


@every_id
def test_gymnasiums_checker_passes(env_id):
    """But for two opinions: stock robots have unbounded observations too, and the paper's Go1 takes joint angles."""
    env = gymnasium.make(env_id, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Box observation space m.*infinity.*")
        warnings.filterwarnings("ignore", message=".*symmetric and normalized space.*")
        check_env(env.unwrapped)
    env.close()


@every_id
def test_one_robot_by_id(env_id):
    env = gymnasium.make(env_id, flavour="recovery")
    observation, info = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(observation, again)
    assert info["episode_length"] == 0
    for _ in range(250):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert type(reward) is float and type(terminated) is bool and type(truncated) is bool
        if terminated or truncated:
            break
    assert terminated or truncated
    assert info["cost"] == terminated
    assert info["episode_length"] <= 250


@every_id
def test_many_robots_by_id(env_id):
    env = gymnasium.make_vec(env_id, num_envs=3, threads=2, action_noise=0.1)
    assert isinstance(env.unwrapped, Simulation)
    assert env.unwrapped.batch.nthread == 2
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    observation, *_ = env.step(env.action_space.sample())
    assert observation in env.observation_space
    env.close()


@every_id
def test_frames_without_a_screen(env_id):
    env = gymnasium.make_vec(env_id, num_envs=2, render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert len(frames) == 2
    for frame in frames:
        assert frame.shape == (480, 640, 3) and frame.dtype == np.uint8
        assert frame.std() > 10, "a picture of something"
    assert (frames[0] != frames[1]).any()
    env.close()


def test_rendering_without_a_mode_says_which_there_are():
    env = gymnasium.make_vec("SafeExplorer/Ant-v0", num_envs=1)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="made without a render_mode; known: rgb_array"):
        env.render()


WITHOUT_EGL = """
import ctypes, sys
load = ctypes.CDLL.__init__
def hide(self, name, *rest, **options):
    if "EGL" in str(name):
        raise OSError(f"{name}: cannot open shared object file")
    load(self, name, *rest, **options)
ctypes.CDLL.__init__ = hide
from safeexplorer.cli import main
sys.exit(main())
"""


def without_egl(*words):
    """A command on a machine that has neither a screen nor EGL."""
    environment = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "DISPLAY")}
    program = [sys.executable, "-c", WITHOUT_EGL, *words]
    return subprocess.run(program, capture_output=True, text=True, env=environment)


def test_a_robot_learns_where_nothing_can_be_drawn(tmp_path):
    small = [
        "--num-envs",
        "2",
        "--rollout-steps",
        "32",
        "--epochs",
        "1",
        "--minibatches",
        "2",
        "--steps",
        "64",
    ]
    done = without_egl("train", "half_cheetah", *small, "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "summary.json").exists()


def test_a_picture_where_nothing_can_be_drawn_is_refused_in_one_line(tmp_path):
    done = without_egl("show", "ant", "--out", str(tmp_path / "ant.png"), "--seconds", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("safeexplorer show: nothing can be drawn") and done.stderr.count("\n") == 1
    assert "install EGL" in done.stderr


def test_an_id_with_the_module_name_needs_no_import():
    program = (
        "import gymnasium; print(gymnasium.make('safeexplorer:SafeExplorer/Ant-v0').reset(seed=0)[0].shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(27,)"
