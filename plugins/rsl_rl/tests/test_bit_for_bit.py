"""While nobody intervenes the plugin is rsl_rl's PPO, bit for bit."""

import copy

import pytest
import torch
from balance import Balance, configuration, lean, lqr
from rsl_rl.runners import OnPolicyRunner

NOBODY = {
    "class_name": "safeexplorer_rsl_rl:SafeExplorerPPO",
    "recovery_cfg": {"policy": lqr, "region": lean, "radius": float("inf")},
}


def mirrored(env, obs, actions):
    """The pole seen from behind."""
    if obs is not None:
        obs = torch.cat([obs, obs.apply(torch.neg)])
    return obs, None if actions is None else torch.cat([actions, -actions])


SYMMETRY = {
    "data_augmentation_func": mirrored,
    "use_data_augmentation": True,
    "use_mirror_loss": True,
    "mirror_loss_coeff": 0.1,
}
RND = {"num_outputs": 4, "predictor_hidden_dims": [8], "target_hidden_dims": [8], "weight": 0.5}
VARIANTS = {
    "plain": {},
    "fixed rate, unclipped value": {"algorithm": {"schedule": "fixed", "use_clipped_value_loss": False}},
    "normalised per minibatch": {"algorithm": {"normalize_advantage_per_mini_batch": True}},
    "symmetry": {"algorithm": {"symmetry_cfg": SYMMETRY}},
    "rnd": {"algorithm": {"rnd_cfg": RND}, "obs_groups": {"rnd_state": ["policy"]}},
    "privileged critic": {"obs_groups": {"critic": ["policy", "privileged"]}},
    "normalised observations": {"actor": {"obs_normalization": True}, "critic": {"obs_normalization": True}},
    "state-dependent spread": {
        "actor": {"distribution_cfg": {"class_name": "HeteroscedasticGaussianDistribution"}},
        "algorithm": {"entropy_coef": 0.01},
    },
    "recurrent": {
        "actor": {"class_name": "RNNModel", "rnn_type": "gru", "rnn_hidden_dim": 8},
        "critic": {"class_name": "RNNModel", "rnn_type": "gru", "rnn_hidden_dim": 8},
        "recovery_cfg": {"imitation": 0.0},
    },
}


def varied(variant: dict, **algorithm) -> dict:
    """The toy's configuration, changed in one variant; a copy, since rsl_rl writes into what it is given."""
    variant = copy.deepcopy(variant)
    cfg = configuration(**algorithm)
    for section, changes in variant.items():
        if section == "recovery_cfg":
            if section in cfg["algorithm"]:
                cfg["algorithm"][section] = {**cfg["algorithm"][section], **changes}
        else:
            cfg[section] = {**cfg[section], **changes}
    return cfg


def trained(variant: dict, iterations: int = 3, num_envs: int = 8, final_obs: bool = False, **algorithm):
    torch.manual_seed(3)
    env = Balance(num_envs, seed=1, final_obs=final_obs)
    runner = OnPolicyRunner(env, varied(variant, **algorithm), log_dir=None, device="cpu")
    runner.learn(iterations, init_at_random_ep_len=True)
    return runner


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("name", VARIANTS)
def test_nobody_intervenes_and_nothing_differs(name):
    plain, ours = trained(VARIANTS[name]), trained(VARIANTS[name], **NOBODY)
    assert type(ours.alg).__name__ == "SafeExplorerPPO"
    expected, found = plain.alg.save(), ours.alg.save()
    found.pop("safeexplorer")
    assert same(expected, found)
    assert plain.alg.learning_rate == ours.alg.learning_rate
    assert torch.equal(plain.env.state, ours.env.state)


@pytest.mark.parametrize("name", VARIANTS)
def test_interventions_run_with_every_setting_and_change_the_result(name):
    """The same variants with a recovery that acts."""
    acting = {**NOBODY, "recovery_cfg": {**NOBODY["recovery_cfg"], "radius": 0.05}}
    plain, ours = trained(VARIANTS[name]), trained(VARIANTS[name], **acting)
    expected, found = plain.alg.save(), ours.alg.save()
    assert not same(expected["actor_state_dict"], found["actor_state_dict"])
    assert all(torch.isfinite(p).all() for p in ours.alg.actor.parameters())
