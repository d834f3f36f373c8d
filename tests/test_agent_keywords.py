"""Keywords of the class beside the settings: arguments of the environment, dashboards, a rate as a function."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import gymnasium
import pytest
from gymnasium.wrappers import NormalizeObservation
from small_agents import SMALL, agent
from toys import Drift, far

from safeexplorer import SafeExplorer, SafeRegion
from safeexplorer.files.tables import read_columns


def test_arguments_reach_every_environment():
    made = agent(Drift, env_kwargs={"limit": 3}, num_envs=2)
    assert [env.limit for env in made.world.env.env.envs] == [3, 3]
    assert made.settings.environment == "Drift"
    pendulum = SafeExplorer("Pendulum-v1", env_kwargs={"g": 1.5}, method="ppo", num_envs=2, **SMALL)
    assert [env.unwrapped.g for env in pendulum.world.env.env.envs] == [1.5, 1.5]
    assert pendulum.settings.environment == "Pendulum-v1"
    with pytest.raises(ValueError, match="allowed with them: an id or a class"):
        agent([Drift], env_kwargs={"limit": 3})


def test_the_learning_rate_follows_its_function_of_progress(tmp_path):
    agent(learning_rate=lambda progress: 1e-3 * (1 - progress) ** 2).learn(256, folder=tmp_path)
    # 4 updates of 64 steps: progress 0, 1/4, 1/2, 3/4
    rates = [1e-3, 0.5625e-3, 0.25e-3, 0.0625e-3]
    assert read_columns(tmp_path / "metrics.csv")["learning_rate"] == pytest.approx(rates)


@pytest.mark.parametrize("rate", [lambda progress: -progress, lambda progress: None])
def test_what_is_no_rate_somewhere_is_refused(rate):
    with pytest.raises(ValueError, match=r"learning_rate\(\d.*allowed: a number of at least 0"):
        agent(learning_rate=rate)


def test_tensorboard_is_fed_from_the_run_or_from_a_folder_of_its_own(tmp_path, monkeypatch):
    seen = []

    def writer(folder):
        return SimpleNamespace(add_scalar=lambda *call: seen.append((folder, *call)), flush=lambda: None)

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=writer))
    agent(tensorboard=True).learn(128, folder=tmp_path / "run")
    agent(tensorboard=tmp_path / "logs").learn(128)
    homes = [str(tmp_path / name / "tensorboard") for name in ("run", "logs")]
    assert [(home, step) for home, name, _, step in seen if name == "falls"] == [
        (home, step) for home in homes for step in (64, 128)
    ]
    with pytest.raises(ValueError, match="tensorboard is True, which is the run's folder"):
        agent(tensorboard=True).learn(128)


def test_a_dashboard_that_is_missing_is_named_before_the_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"needs wandb: pip install safeexplorer\[wandb\]"):
        agent(wandb=True).learn(128, folder=tmp_path / "run")
    assert not (tmp_path / "run" / "metrics.csv").exists()


def test_normalised_observations_are_warned_about(capsys):
    agent([lambda: NormalizeObservation(Drift())] * 2)
    said = capsys.readouterr().err
    assert "NormalizeObservation hands on normalised observations: distance and recovery see those" in said
    vector = gymnasium.wrappers.vector.NormalizeObservation(gymnasium.vector.SyncVectorEnv([Drift, Drift]))
    agent(vector)
    assert "hands on normalised observations" in capsys.readouterr().err
    agent()
    assert "normalised" not in capsys.readouterr().err


@pytest.mark.parametrize(("half", "warned"), [(0.01, True), (0.4, False), (5.0, False), (300.0, True)])
def test_actions_in_units_far_from_one_are_warned_about(half, warned, capsys):
    class Strong(Drift):
        action_space = gymnasium.spaces.Box(-half, half, (1,))

    agent([Strong, Strong])
    assert (f"half the range of an action is {half:g}" in capsys.readouterr().err) == warned


def test_a_region_without_a_radius_trains_the_method_that_needs_none():
    assert agent(region=SafeRegion(distance=far)).settings.method == "safeexplorer_auto"
    assert agent().settings.method == "safeexplorer"
    assert agent(region=SafeRegion(distance=far), method="masked").settings.method == "masked"
