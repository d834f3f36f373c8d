"""Recoveries and regions as users bring them, and what is said of those that cannot work."""

from types import SimpleNamespace

import pytest
import torch
from balance import Balance, configuration, lean, lqr
from rsl_rl.runners import OnPolicyRunner
from safeexplorer_rsl_rl import SafeExplorerPPO
from scripted import algorithm, observation

NAMED = {"policy": "balance:lqr", "region": "balance:lean", "radius": 0.1}


def built(env=None, **recovery):
    cfg = configuration(class_name="safeexplorer_rsl_rl:SafeExplorerPPO", recovery_cfg={**NAMED, **recovery})
    return OnPolicyRunner(env or Balance(4), cfg, log_dir=None, device="cpu").alg


@pytest.fixture
def exported(tmp_path):
    """A policy that rsl_rl exported, as TorchScript and as ONNX, and the network it came from."""
    runner = OnPolicyRunner(Balance(4), configuration(), log_dir=None, device="cpu")
    runner.export_policy_to_jit(str(tmp_path))
    actor = runner.alg.get_policy()
    model = actor.as_onnx(verbose=False).eval()
    path = str(tmp_path / "policy.onnx")
    torch.onnx.export(model, model.get_dummy_inputs(), path, input_names=["obs"], dynamo=False)
    return tmp_path, actor


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["policy.pt", "policy.onnx"])
def test_an_exported_policy_is_executed_outside_the_region(exported, name):
    folder, actor = exported
    agent = built(policy=str(folder / name), radius=0.0)
    obs = Balance(4).get_observations()
    with torch.inference_mode():
        executed = agent.act(obs)
        assert torch.allclose(executed, actor(obs), atol=1e-6)
    assert not torch.allclose(executed, agent.transition.actions)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_file_reads_the_groups_it_is_told_to(exported):
    folder, actor = exported
    agent = built(policy=str(folder / "policy.pt"), obs_groups=["policy"])
    obs = Balance(4).get_observations()
    with torch.inference_mode():
        assert torch.allclose(agent.recovery(obs), actor(obs), atol=1e-6)
    with pytest.raises(RuntimeError):
        built(policy=str(folder / "policy.pt"), obs_groups=["privileged"])


def test_names_of_functions_are_resolved():
    agent = built()
    assert agent.recovery is lqr and agent.region.measure is lean


def managed(value, manager="reward_manager"):
    """An environment with one manager that has one term."""

    class Manager:
        active_terms = ["lean"]

        def get_term_cfg(self, name):
            if name != "lean":
                raise ValueError(name)
            return SimpleNamespace(func=lambda env, scale: scale * value, params={"scale": 1})

    env = Balance(4)
    setattr(env, manager, Manager())
    return env


def test_a_term_of_a_manager_is_the_distance():
    agent = built(managed(torch.tensor([0.0, 0.1, 0.2, 0.3])), region="reward_manager/lean", radius=0.1)
    assert agent.region.inside(None, 0.1).tolist() == [True, True, False, False]


def test_a_termination_term_says_who_is_outside():
    env = managed(torch.tensor([0, 1, 0, 1], dtype=torch.int32), "termination_manager")
    term = env.termination_manager.get_term_cfg("lean")
    env.termination_manager.get_term_cfg = lambda name: SimpleNamespace(
        func=lambda world, scale: term.func(world, scale).bool(), params=term.params
    )
    agent = built(env, region="termination_manager/lean", radius=None)
    assert agent.region.inside(None, None).tolist() == [True, False, True, False]


def test_the_radius_is_constant_or_linear_in_iterations():
    assert built().radius == 0.1
    agent = built(radius={"initial": 0.1, "final": 0.5, "iterations": 4})
    found = []
    for agent.iteration in (0, 1, 4, 9):
        found.append(agent.radius)
    assert found == pytest.approx([0.1, 0.2, 0.5, 0.5])


def test_the_radius_grows_with_every_update():
    env = Balance(4)
    cfg = configuration(
        class_name="safeexplorer_rsl_rl:SafeExplorerPPO",
        recovery_cfg={**NAMED, "radius": {"initial": 0.1, "final": 0.5, "iterations": 4}},
    )
    runner = OnPolicyRunner(env, cfg, log_dir=None, device="cpu")
    runner.learn(2)
    assert runner.alg.radius == pytest.approx(0.3)


def test_the_curriculum_goes_on_where_a_checkpoint_left_it():
    agent = built(radius={"initial": 0.1, "final": 0.5, "iterations": 4})
    agent.iteration = 3
    other = built(radius={"initial": 0.1, "final": 0.5, "iterations": 4})
    assert other.load(agent.save(), None, True) and other.radius == pytest.approx(0.4)
    plain = agent.save() | {"iter": 1}
    del plain["safeexplorer"]
    assert other.load(plain, None, True) and other.iteration == 2
    assert not other.load(agent.save(), {"actor": True}, True) and other.iteration == 2


def test_a_recurrent_actor_must_do_without_imitation():
    with pytest.raises(
        ValueError, match=r"recovery_cfg\.imitation: got 0.001, needs 0 with a recurrent actor"
    ):
        actor = SimpleNamespace(is_recurrent=True)
        SafeExplorerPPO(actor, None, None, recovery_cfg=NAMED)


@pytest.mark.parametrize(
    "recovery, message",
    [
        ({"policy": "balance:lqrr"}, r"policy: cannot resolve 'balance:lqrr'"),
        ({"policy": "no_such_module:act"}, r"policy: cannot resolve"),
        ({"policy": "gone.onnx"}, r"policy: no file 'gone.onnx'"),
        ({"policy": lambda obs: torch.zeros(4, 3)}, r"policy: returned \(4, 3\), needs \(4, 1\)"),
        ({"policy": lambda obs: None}, r"policy: returned NoneType"),
        ({"policy": lambda obs: torch.full((4, 1), torch.nan), "radius": 0.0}, "not finite"),
        (
            {"region": lambda obs: torch.zeros(3)},
            r"region: returned \(3,\), needs one number per environment \(4\)",
        ),
        ({"region": lambda obs: 0.5}, r"region: returned float"),
        ({"region": lambda obs: torch.full((4,), torch.nan)}, r"region: the distance is NaN"),
        ({"radius": None}, r"radius is missing"),
        (
            {"region": lambda obs: torch.ones(4, dtype=torch.bool)},
            r"radius: got 0.1, but the region returns a bool",
        ),
        (
            {"region": "reward_manager/lean"},
            r"needs a manager-based environment, Balance has no reward_manager",
        ),
        ({"region": "moon_manager/lean"}, r"no manager 'moon_manager'"),
        ({"obs_groups": ["pixels"]}, r"obs_groups: no group 'pixels'; known: policy, privileged"),
    ],
)
def test_what_cannot_work_is_refused_at_the_start(recovery, message):
    with pytest.raises(ValueError, match=message):
        built(**recovery)


def test_an_unknown_term_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no term 'tilt' in reward_manager; known: \['lean'\]"):
        built(managed(torch.zeros(4)), region="reward_manager/tilt")


def test_a_checkpoint_is_no_exported_policy(tmp_path):
    torch.save({"actor_state_dict": {}}, tmp_path / "model_1.pt")
    with pytest.raises(ValueError, match="is no TorchScript file"):
        built(policy=str(tmp_path / "model_1.pt"))


def test_trying_the_recovery_out_leaves_the_random_stream_alone():
    torch.manual_seed(0)
    built(policy=lambda obs: torch.rand(4, 1))
    after = torch.rand(1)
    torch.manual_seed(0)
    built()
    assert torch.equal(after, torch.rand(1))


def test_a_recovery_that_nobody_needs_is_not_asked():
    asked = []

    def policy(obs):
        asked.append(1)
        return torch.zeros(4, 2)

    agent = algorithm(4, 2, {"policy": policy})
    asked.clear()
    with torch.inference_mode():
        agent.act(observation(torch.zeros(4)))
    assert not asked
