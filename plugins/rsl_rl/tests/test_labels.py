"""Labels beside those of the safeexplorer package, exchanged by a file (see make_labels.py)."""

import numpy as np
import pytest
import torch
from make_labels import DISCOUNTS, FILE, ROLLOUTS
from safeexplorer_rsl_rl.labels import find_segments, learning_reward, normalised
from scripted import algorithm


@pytest.fixture(scope="module")
def exchanged():
    with np.load(FILE) as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}


def labelled(one, monkeypatch):
    """An algorithm whose storage holds the rollout, after `compute_returns`."""
    steps, envs = one["recovering"].shape
    agent = algorithm(
        envs, steps, gamma=DISCOUNTS[0], lam=DISCOUNTS[1], normalize_advantage_per_mini_batch=True
    )
    storage = agent.storage
    storage.recovering, storage.fell = one["recovering"], one["terminated"]
    storage.dones = (one["terminated"] | one["truncated"]).byte().unsqueeze(-1)
    storage.task_reward, storage.values = one["task_reward"], one["value"].unsqueeze(-1)
    storage.limit_value = torch.where(one["truncated"], one["limit_value"], 0.0)
    reward = learning_reward(one["task_reward"], 0.0, one["recovering"], one["terminated"])
    storage.rewards = (reward + agent.gamma * storage.limit_value).unsqueeze(-1)
    monkeypatch.setattr(agent, "critic", FixedCritic(one["last_value"]))
    agent.compute_returns(None)
    return agent


class FixedCritic:
    def __init__(self, value):
        self.value = value

    def __call__(self, obs):
        return self.value.unsqueeze(-1)

    def get_hidden_state(self):
        return None

    def reset(self, hidden_state=None):
        pass


@pytest.mark.parametrize("r", range(ROLLOUTS))
def test_advantages_targets_and_gates_equal_the_packages(exchanged, r, monkeypatch):
    one = {name: array[r] for name, array in exchanged.items()}
    agent = labelled(one, monkeypatch)
    assert (agent.storage.advantages.squeeze(-1) - one["advantage"]).abs().max() < 1e-5
    assert (agent.storage.returns.squeeze(-1) - one["value_target"]).abs().max() < 1e-5
    decided = agent.segments.decided
    assert torch.equal(agent.segments.succeeded[decided].float(), one["gate"][decided])
    assert torch.equal(agent.storage.values.squeeze(-1), one["value"]), "the learned values stay for the clip"


def test_the_file_has_what_matters(exchanged):
    """Falls and limits inside segments, segments of both outcomes, and segments that the end cuts."""
    recovering = exchanged["recovering"]
    assert (recovering & exchanged["terminated"]).sum() > 20
    assert (recovering & exchanged["truncated"]).sum() > 20
    assert recovering[:, -1].sum() > 10
    assert 0.2 < recovering.float().mean() < 0.8


def test_a_segment_cut_by_the_end_is_undecided_and_no_other(exchanged):
    one = {name: array[0] for name, array in exchanged.items()}
    ended = one["terminated"] | one["truncated"]
    segments = find_segments(
        rollout_of(one, ended)._replace(limit_value=torch.where(one["truncated"], one["limit_value"], 0.0))
    )
    for env in range(one["recovering"].shape[1]):
        undecided, t = set(), one["recovering"].shape[0] - 1
        while t >= 0 and one["recovering"][t, env] and not ended[t, env]:
            undecided.add(t)
            t -= 1
        found = {int(i) for i in (one["recovering"] & ~segments.decided)[:, env].nonzero()}
        assert found == undecided


def rollout_of(one, ended):
    from safeexplorer_rsl_rl.labels import MixedRollout

    names = ("recovering", "task_reward", "value", "limit_value", "last_value")
    return MixedRollout(fell=one["terminated"], ended=ended, **{name: one[name] for name in names})


def test_advantages_are_normalised_over_the_policys_own_steps():
    """Own advantages 1 and 3: mean 2, standard deviation sqrt(2); the recovery step's 100 plays no part."""
    result = normalised(torch.tensor([1.0, 100.0, 3.0]), torch.tensor([True, False, True]))
    assert torch.allclose(result, torch.tensor([-(0.5**0.5), 0.0, 0.5**0.5]))
    assert normalised(torch.tensor([7.0, 5.0]), torch.tensor([True, False])).tolist() == [0.0, 0.0]
    assert normalised(torch.tensor([7.0, 5.0]), torch.tensor([False, False])).tolist() == [0.0, 0.0]
