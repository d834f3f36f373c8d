"""The class on other people's environments: autoreset modes, choices, Gymnasium's own, a VecEnv."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from small_agents import SMALL, agent, equal
from toys import Choice, Drift, choose_back, far

from safeexplorer import ReportedTakeovers, SafeExplorer, SafeRegion, linear


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_autoreset_mode_trains_to_the_same_parameters(mode):
    factories = [Drift, Drift]
    env = SyncVectorEnv(factories, autoreset_mode=mode)
    assert equal(agent(env).learn(256).learner.params, agent(factories).learn(256).learner.params)


@pytest.mark.parametrize("method", ["ppo", "recovery_rl", "soft_decomposed", "safeexplorer"])
def test_choices_are_learned_by_a_categorical_policy(method):
    made = agent([Choice, Choice], recovery=choose_back, method=method).learn(256)
    action, _ = made.predict(np.zeros((20, 2)))
    assert set(action.tolist()) <= {5, 6, 7} and action.dtype == np.int64
    assert "log_std" not in made.learner.params


def test_a_categorical_policy_finds_the_better_choice():
    class Bandit(Choice):
        def step(self, action):
            *result, info = super().step(6)
            result[1] = float(int(action) == 7)
            return *result, info

    made = SafeExplorer([Bandit], method="ppo", rollout_steps=64, minibatches=4, learning_rate=0.01).learn(
        1024
    )
    assert made.predict(np.zeros(2), deterministic=True)[0] == 7


def test_takeovers_that_the_environment_reports_need_no_recovery():
    made = agent(recovery=None, region=None, intervention=ReportedTakeovers())
    assert made.learn(64).summary["recovery_rate"] == 0.0


@pytest.mark.parametrize(
    "name", ["Pendulum-v1", "InvertedPendulum-v5", "Hopper-v5", "Reacher-v5", "CartPole-v1"]
)
def test_gymnasiums_own_environments_train_without_special_cases(name):
    made = SafeExplorer(name, method="ppo", num_envs=2, **SMALL).learn(64)
    space = gymnasium.make(name).action_space
    assert space.contains(made.predict(np.zeros(made.observation_space.shape))[0])


def test_a_vector_environment_that_resets_by_steps_is_refused_before_any_work():
    env = gymnasium.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match=r"spends steps on resets.*allowed: an id"):
        SafeExplorer(env, method="ppo", **SMALL)


class OldVecEnv:
    """What Stable-Baselines3 calls a VecEnv, over two of the toys."""

    num_envs, observation_space, action_space = 2, Drift.observation_space, Drift.action_space

    def __init__(self):
        self.envs = [Drift(limit=6), Drift(limit=9)]
        self.seeds = [None, None]

    def seed(self, seed):
        self.seeds = [seed, seed + 1]

    def reset(self):
        got = [env.reset(seed=seed) for env, seed in zip(self.envs, self.seeds, strict=True)]
        self.seeds, self.reset_infos = [None, None], [info for _, info in got]
        return np.stack([observation for observation, _ in got])

    def step(self, actions):
        rows, rewards, dones, infos = [], [], [], []
        for i, env in enumerate(self.envs):
            observation, reward, terminated, truncated, info = env.step(actions[i])
            if terminated or truncated:
                info |= {
                    "terminal_observation": observation,
                    "TimeLimit.truncated": truncated and not terminated,
                }
                observation, self.reset_infos[i] = env.reset()
            row = observation, reward, terminated or truncated, info
            for column, value in zip((rows, rewards, dones, infos), row, strict=True):
                column.append(value)
        return np.stack(rows), np.array(rewards), np.array(dones), infos

    def step_async(self, actions): ...

    def env_is_wrapped(self, wrapper): ...

    def close(self): ...


@pytest.mark.parametrize("distance", [far, "gap"])
def test_an_sb3_vecenv_trains_to_the_same_parameters_as_the_environments_in_it(distance):
    region = SafeRegion(distance=distance, radius=linear(0.1, 0.8))
    ours = agent([lambda: Drift(limit=6), lambda: Drift(limit=9)], region=region).learn(128)
    assert equal(agent(OldVecEnv(), region=region).learn(128).learner.params, ours.learner.params)
