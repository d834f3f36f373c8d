"""What the policy learns from: its own steps, each counted as if they were all there is."""

import pytest
import torch
from safeexplorer_rsl_rl.imitation import Imitation, Rows, Settled
from safeexplorer_rsl_rl.storage import MixedStorage
from safeexplorer_rsl_rl.views import OwnStepsActor
from scripted import algorithm, observation, play, random_rollout
from tensordict import TensorDict

ALONE = {"entropy_coef": 0.0, "value_loss_coef": 0.0, "schedule": "fixed"}


def parameters(agent):
    return torch.cat([p.detach().flatten() for p in agent.actor.parameters()]).clone()


@pytest.mark.parametrize("per_batch", [False, True])
def test_the_surrogates_gradient_is_exactly_zero_on_recovery_rows(per_batch):
    """Of every row of every minibatch, also when the policy has moved so far that a ratio overflows."""
    agent = algorithm(8, 12, {"imitation": 0.0}, normalize_advantage_per_mini_batch=per_batch, **ALONE)
    play(agent, random_rollout(12, 8, seed=1))
    agent.storage.normalise_per_batch = per_batch
    seen = 0
    for batch in agent.storage.mini_batch_generator(4, 1):
        own, old = agent.storage.own_weight > 0, batch.old_actions_log_prob.squeeze(-1)
        log_prob = torch.where(own, old, 500.0).requires_grad_()
        advantage, ratio = batch.advantages.squeeze(-1), torch.exp(log_prob - old)
        loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
        (gradient,) = torch.autograd.grad(loss, log_prob)
        assert (gradient[~own] == 0).all() and (gradient[own] != 0).all()
        seen += int((~own).sum())
    assert seen > 20


def test_a_rollout_of_recovery_steps_alone_leaves_the_policy_untouched():
    agent = algorithm(8, 12, {"imitation": 0.0}, entropy_coef=0.1, schedule="adaptive")
    rollout = random_rollout(12, 8, seed=2)
    rollout["recovering"][:] = True
    before, critic = parameters(agent), next(agent.critic.parameters()).detach().clone()
    rate = agent.learning_rate
    play(agent, rollout)
    losses = agent.update()
    assert torch.equal(parameters(agent), before)
    assert agent.learning_rate == rate, "there is no step of the policy to measure a divergence on"
    assert not torch.equal(next(agent.critic.parameters()), critic), "the value is learned on all steps"
    assert losses["recovery_share"] == 1.0 and losses["surrogate"] == 0.0


@pytest.mark.parametrize("per_batch", [False, True])
def test_the_policys_gradient_is_that_of_its_own_rows_alone(per_batch):
    """One minibatch, surrogate and entropy: beside a plain average over the own rows, written out."""
    settings = {
        "normalize_advantage_per_mini_batch": per_batch,
        "num_mini_batches": 1,
        "num_learning_epochs": 1,
    }
    agent = algorithm(
        8, 12, {"imitation": 0.0}, **{**ALONE, **settings, "entropy_coef": 0.2}, max_grad_norm=1e9
    )
    play(agent, random_rollout(12, 8, seed=3))
    storage = agent.storage
    own = ~storage.recovering
    advantage = storage.advantages.squeeze(-1)[own]
    if per_batch:
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    agent.actor(storage.observations[own], stochastic_output=True)
    log_prob = agent.actor.get_output_log_prob(storage.actions[own])
    ratio = torch.exp(log_prob - storage.actions_log_prob.squeeze(-1)[own])
    loss = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    loss = loss - 0.2 * agent.actor.output_entropy.mean()
    expected = torch.autograd.grad(loss, list(agent.actor.parameters()))
    agent.update()
    for parameter, gradient in zip(agent.actor.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_the_recovery_is_executed_and_the_policys_sample_is_stored():
    agent = algorithm(8, 12)
    rollout = random_rollout(12, 8, seed=4)
    executed = play(agent, rollout)
    recovering = rollout["recovering"]
    assert (executed[recovering] == 0.5).all() and recovering.any()
    assert torch.equal(executed[~recovering], agent.storage.actions[~recovering])
    assert not (agent.storage.actions[recovering] == 0.5).any()
    assert torch.equal(agent.storage.executed, executed)


def test_imitation_raises_the_likelihood_of_recoveries_that_succeeded():
    agent = algorithm(8, 12, {"imitation": 1.0}, **ALONE, learning_rate=1e-2)
    rollout = random_rollout(12, 8, seed=5)
    rollout["terminated"][:] = False
    play(agent, rollout)
    rows = agent.storage.observations[agent.segments.decided]

    def likelihood():
        agent.actor(rows, stochastic_output=True)
        return agent.actor.get_output_log_prob(torch.full((len(rows), 2), 0.5)).mean().item()

    before = likelihood()
    losses = agent.update()
    assert likelihood() > before + 0.1
    assert losses["imitated_rows"] == len(rows) and losses["imitation"] != 0


def test_the_imitation_gradient_is_the_compatibility_loss():
    """-lambda / N sum of log pi over the rows of successes, N counts those of failures too; nothing else acts."""
    settings = {"num_mini_batches": 1, "num_learning_epochs": 1, "max_grad_norm": 1e9}
    agent = algorithm(8, 12, {"imitation": 0.3}, **ALONE, **settings)
    rollout = random_rollout(12, 8, seed=6)
    rollout["recovering"][:] = True
    play(agent, rollout)
    segments = agent.segments
    assert (segments.decided & ~segments.succeeded).any() and (segments.decided & segments.succeeded).any()
    good = segments.decided & segments.succeeded
    agent.actor(agent.storage.observations[good], stochastic_output=True)
    log_prob = agent.actor.get_output_log_prob(agent.storage.executed[good])
    loss = -0.3 * log_prob.sum() / segments.decided.sum()
    expected = torch.autograd.grad(loss, list(agent.actor.parameters()))
    agent.update()
    for parameter, gradient in zip(agent.actor.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_advantages_of_the_rollout_are_normalised_over_the_policys_own_steps():
    agent = algorithm(8, 12)
    play(agent, random_rollout(12, 8, seed=8))
    own = ~agent.storage.recovering
    advantages = agent.storage.advantages.squeeze(-1)
    assert advantages[own].mean().abs() < 1e-6 and (advantages[own].std() - 1).abs() < 1e-5
    assert (advantages[~own] == 0).all()


def test_the_divergence_that_sets_the_learning_rate_is_that_of_the_policys_own_steps():
    agent = algorithm(8, 12)
    play(agent, random_rollout(12, 8, seed=9))
    batches = agent.storage.mini_batch_generator(1, 1)
    batch = next(batches)
    own, view = agent.storage.own_weight > 0, OwnStepsActor(agent.actor, agent.storage)
    old = batch.old_distribution_params
    new = (old[0] + torch.rand(len(own), 2), old[1] * 0.9)
    expected = agent.actor.get_kl_divergence(tuple(p[own] for p in old), tuple(p[own] for p in new)).mean()
    assert torch.isclose(view.get_kl_divergence(old, new).mean(), expected, rtol=1e-5)
    assert not torch.isclose(agent.actor.get_kl_divergence(old, new).mean(), expected, rtol=1e-5)


def test_every_row_to_imitate_is_dealt_to_one_minibatch_of_an_epoch():
    rows = Rows(torch.arange(10), TensorDict({"policy": torch.arange(10.0)}, [10]), torch.zeros(10, 2))
    seen = []

    def actor(obs, stochastic_output):
        seen.append(obs["policy"].tolist())

    actor.get_output_log_prob = lambda actions: torch.zeros(len(actions), requires_grad=True)
    imitation = Imitation(Settled(rows, 20), 1.0, num_mini_batches=4)
    for _ in range(8):
        imitation.backward(actor)
    assert len(seen) == 8
    for epoch in (seen[:4], seen[4:]):
        assert sorted(row for share in epoch for row in share) == list(range(10))


def test_the_bonus_of_rnd_is_paid_on_the_policys_own_steps():
    """The environment pays 1 and gives a final observation; the recovery acts in environments 1 and 3."""
    cfg = {
        "rnd_cfg": {"num_outputs": 2, "predictor_hidden_dims": [4], "target_hidden_dims": [4], "weight": 5.0}
    }
    agent = algorithm(4, 1, obs_groups={"rnd_state": ["policy"]}, **cfg)
    limit, obs = torch.tensor([True, True, False, False]), observation(torch.zeros(4))
    with torch.inference_mode():
        agent.act(observation(torch.tensor([0, 1, 0, 1])))
        agent.process_env_step(obs, torch.ones(4), limit.long(), {"time_outs": limit, "final_obs": obs})
        bootstrap = agent.gamma * agent.critic(obs).squeeze(-1) * limit
    own = torch.tensor([1.0, 0.0, 1.0, 0.0])
    assert (agent.intrinsic_rewards > 0).all()
    expected = own * (1.0 + agent.intrinsic_rewards) + bootstrap
    assert torch.allclose(agent.storage.rewards.flatten(), expected)


def test_minibatches_of_the_storage_are_rsl_rls_where_nobody_intervenes():
    agent = algorithm(8, 12)
    rollout = random_rollout(12, 8, seed=7)
    rollout["recovering"][:] = False
    play(agent, rollout)
    torch.manual_seed(0)
    ours = list(agent.storage.mini_batch_generator(4, 1))
    torch.manual_seed(0)
    theirs = list(super(MixedStorage, agent.storage).mini_batch_generator(4, 1))
    assert all(torch.equal(a.advantages, b.advantages) for a, b in zip(ours, theirs, strict=True))
    assert len(ours[0].old_distribution_params) == len(theirs[0].old_distribution_params)
