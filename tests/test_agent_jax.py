"""The class on an environment with Brax's interface: like any other."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax_toys import JaxDrift, far, pull_back, too_weak
from small_agents import equal

from safeexplorer import SafeExplorer, SafeRegion, linear

REGION = SafeRegion(distance=far, radius=linear(0.2, 0.3))
SMALL = {
    "num_envs": 16,
    "rollout_steps": 4,
    "minibatches": 4,
    "epochs": 2,
    "hidden": (8,),
    "episode_length": 20,
}
STEPS = 16 * 4 * 6


def agent(env=None, **changes) -> SafeExplorer:
    return SafeExplorer(env or JaxDrift(), **({"recovery": pull_back, "region": REGION} | SMALL | changes))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[SafeExplorer, list[dict], object]:
    rows, folder = [], tmp_path_factory.mktemp("run")
    made = agent(activation="elu", desired_kl=0.01, learning_rate=1e-3)
    made.learn(STEPS, callback=lambda agent, row: rows.append(row), folder=folder)
    return made, rows, folder


def test_it_learns_and_counts(trained):
    made, rows, _ = trained
    assert len(rows) == 6 and made.num_timesteps == STEPS and made.summary["falls"] == rows[-1]["falls"]
    assert rows[0]["radius"] == pytest.approx(0.2) and rows[3]["radius"] == pytest.approx(0.2 + 0.3 / 2)
    assert all(row["main_steps"] + row["recovery_steps"] == row["steps"] for row in rows)
    assert rows[-1]["recovery_steps"] > 0 and rows[-1]["episodes"] > 0
    assert rows[-1]["learning_rate"] == pytest.approx(
        1e-2
    )  # from 1e-3, by factors of 1.5: the divergence is small


def test_it_predicts_evaluates_saves_and_exports(trained, tmp_path):
    made, _, folder = trained
    rows = np.random.default_rng(0).uniform(-1, 1, (5, 2)).astype(np.float32)
    action, _ = made.predict(rows, deterministic=True)
    assert action.shape == (5, 1) and np.abs(action).max() <= 1
    assert 1 <= made.evaluate().length <= 20
    assert made.export(tmp_path / "policy.onnx")["max_error"] < 1e-5
    for source in (made.save(tmp_path / "agent"), folder):
        again = SafeExplorer.load(source)
        np.testing.assert_array_equal(again.predict(rows, deterministic=True)[0], action)


def test_a_loaded_agent_goes_on_in_the_environment(trained, tmp_path):
    made, _, _ = trained
    again = SafeExplorer.load(made.save(tmp_path / "agent"), JaxDrift(), recovery=pull_back, region=REGION)
    assert equal(again.learner.params, made.learner.params) and again.settings.desired_kl == 0.01
    again.learn(16 * 4)
    assert not equal(again.learner.params, made.learner.params)


def test_an_unfinished_run_goes_on_with_new_episodes(trained, tmp_path, capsys):
    """The gate waits for nothing from before: those episodes will have no end."""
    made, _, _ = trained
    made.learn(16 * 4 * 3, callback=lambda agent, row: row["update"] < 2, folder=tmp_path)
    assert made.num_timesteps == 16 * 4 * 2
    made.learn(16 * 4 * 3, folder=tmp_path)
    assert made.num_timesteps == 16 * 4 * 3 and "goes on with new episodes" in capsys.readouterr().err


def test_plain_ppo_needs_neither_region_nor_recovery():
    made = agent(method="ppo", recovery=None, region=None, start_states=5)
    made.learn(16 * 4 * 2)
    assert made.summary["falls"] >= 0 and not made.settings.wait_for_outcomes


def test_a_privileged_critic_is_found_saved_and_loaded(tmp_path):
    made = agent(JaxDrift(privileged=True))
    assert made.settings.critic_observations == 3 and made.predict(np.zeros(2))[0].shape == (1,)
    assert equal(SafeExplorer.load(made.save(tmp_path / "agent")).learner.params, made.learner.params)
    with pytest.raises(ValueError, match="an audit needs a critic that sees what the policy sees"):
        made.audit()


REFUSED = [
    ({"recovery": None}, "method 'safeexplorer' needs a recovery"),
    ({"region": None}, "method 'safeexplorer' needs where the policy acts"),
    ({"recovery": "hold"}, "recovery is 'hold'; allowed with a JAX environment: a function of jax.numpy"),
    ({"recovery": lambda rows: np.asarray(rows)[:, :1]}, "recovery cannot be compiled by JAX"),
    ({"method": "safeexplorer_auto"}, "begin_as_recovery is True; allowed with a JAX environment: False"),
    ({"method": "cpo"}, "method is 'cpo'; allowed with a JAX environment"),
    ({"region": SafeRegion("auto", far)}, "schedule is 'auto'; allowed with a JAX environment"),
    ({"falls_kept": 3}, "falls_kept is 3; allowed with a JAX environment: 0"),
    ({"episode_length": 0}, "episode_length is 0"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message[:24] for _, message in REFUSED])
def test_what_does_not_fit_is_refused_in_one_line(changes, message):
    with pytest.raises(ValueError) as caught:
        agent(**changes)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_settings_of_jax_environments_are_refused_elsewhere():
    with pytest.raises(ValueError, match=r"desired_kl is 0.01; allowed: None but in a JAX environment"):
        SafeExplorer("half_cheetah", desired_kl=0.01)


def test_starts_that_are_not_finite_are_refused():
    class Broken(JaxDrift):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs=state.obs * jnp.nan)

    with pytest.raises(FloatingPointError, match=r"env.reset gave observations that are not finite"):
        agent(Broken(), recovery=too_weak).learn(16 * 4)
