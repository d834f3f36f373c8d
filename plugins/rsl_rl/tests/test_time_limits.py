"""Time limits: from the final observation where the environment gives it, rsl_rl's own rule where it does not."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scripted import algorithm, observation
from tensordict import TensorDict

ENVS = 4
LIMIT = torch.tensor([True, True, False, False])
OUTSIDE = torch.tensor([False, True, False, True])


def stepped(extras, dones=None, terminated=None, **recovery):
    """The reward stored for one step that pays 1, the value before it, and the algorithm."""
    agent = algorithm(ENVS, 1, recovery)
    if terminated is not None:
        agent.env = SimpleNamespace(reset_terminated=terminated)
    with torch.inference_mode():
        agent.act(observation(OUTSIDE))
        value = agent.transition.values.squeeze(-1)
        dones = LIMIT if dones is None else dones
        agent.process_env_step(observation(torch.zeros(ENVS)), torch.ones(ENVS), dones.long(), extras)
    return agent.storage.rewards[0].squeeze(-1), value, agent


def final(as_array=False):
    obs = observation(torch.zeros(ENVS), torch.Generator().manual_seed(9))
    if not as_array:
        return obs.to_dict(), obs
    rows = np.empty(ENVS, dtype=object)
    rows[:] = [{k: v[e] for k, v in obs.items()} if LIMIT[e] else None for e in range(ENVS)]
    return rows, obs


@pytest.mark.parametrize("as_array", [False, True])
def test_a_time_limit_bootstraps_from_the_final_observation(as_array):
    given, obs = final(as_array)
    reward, _, agent = stepped({"time_outs": LIMIT, "final_obs": given})
    bootstrap = agent.gamma * agent.critic(obs).detach().squeeze(-1)
    # own steps pay 1, recovery steps 0; environments 0 and 1 ended at the limit
    expected = torch.tensor([1.0, 0.0, 1.0, 0.0]) + torch.where(LIMIT, bootstrap, 0.0)
    assert torch.allclose(reward, expected)
    assert torch.allclose(agent.storage.limit_value[0], torch.where(LIMIT, bootstrap / agent.gamma, 0.0))


@pytest.mark.parametrize(
    "extras, recovery", [({}, {}), ({"final_obs": final()[0]}, {"use_final_obs": False})]
)
def test_without_it_the_present_value_stands_in_as_in_rsl_rl(extras, recovery):
    reward, value, agent = stepped({"time_outs": LIMIT, **extras}, **recovery)
    expected = torch.tensor([1.0, 0.0, 1.0, 0.0]) + agent.gamma * torch.where(LIMIT, value, 0.0)
    assert torch.allclose(reward, expected)


def test_a_fall_pays_the_environments_own_reward_and_nothing_after_it():
    dones = torch.tensor([True, True, False, False])
    reward, _, agent = stepped({"time_outs": torch.zeros(ENVS, dtype=torch.bool)}, dones)
    assert reward.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert torch.equal(agent.storage.fell[0], dones)


def test_a_fall_at_the_time_limit_is_a_fall_where_the_environment_says_so():
    """mjlab and Isaac Lab keep `reset_terminated`; on a recovery step the fall wins."""
    reward, _, agent = stepped({"time_outs": LIMIT}, LIMIT, terminated=LIMIT)
    assert torch.equal(agent.storage.fell[0], LIMIT)
    assert reward[1] == 1.0 and agent.storage.limit_value[0].tolist() == [0.0] * ENVS


def test_without_time_outs_an_end_is_a_fall_unless_the_environment_says_otherwise():
    _, _, agent = stepped({}, LIMIT)
    assert torch.equal(agent.storage.fell[0], LIMIT)
    reward, _, agent = stepped({}, LIMIT, terminated=torch.zeros(ENVS, dtype=torch.bool))
    assert not agent.storage.fell.any() and reward[1] == 0.0


@pytest.mark.parametrize(
    "given, message",
    [
        ({"policy": torch.zeros(ENVS, 3)}, "group 'flag' is missing"),
        (TensorDict({"flag": torch.zeros(ENVS, 1)}, [ENVS]), "group 'policy' is missing"),
        (torch.zeros(ENVS, 3), "needs a dictionary of observation groups"),
    ],
)
def test_a_final_observation_of_another_layout_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        stepped({"time_outs": LIMIT, "final_obs": given})


def test_a_final_observation_changes_nothing_but_time_limits():
    given, _ = final()
    nobody = torch.zeros(ENVS, dtype=torch.bool)
    reward, _, _ = stepped({"time_outs": nobody, "final_obs": given}, nobody)
    assert reward.tolist() == [1.0, 0.0, 1.0, 0.0]
