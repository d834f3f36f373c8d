"""The class: the command's training loop on an environment, a recovery and an intervention of one's own."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from records import read_table
from small_agents import REGION, agent, equal
from toys import Choice, Drift, far, pull_back

import safeexplorer
from safeexplorer import JumpStart, SafeExplorer, SafeRegion, StateShield, linear
from safeexplorer.files.checkpoint import checkpoints
from safeexplorer.runs.policies import paid_params
from safeexplorer.runs.settings import Settings, usual_method
from safeexplorer.runs.training import train


def test_the_class_and_the_command_give_bit_identical_parameters(tmp_path):
    small = {
        "robot": "half_cheetah",
        "rollout_steps": 64,
        "epochs": 1,
        "hidden": (8,),
        "seed": 3,
        "steps": 1024,
    }
    run = train(Settings(**small, method=usual_method(None)), tmp_path)
    steps, robot = small.pop("steps"), small.pop("robot")
    for name in (robot, "SafeExplorer/HalfCheetah-v0"):
        assert equal(SafeExplorer(name, **small).learn(steps).learner.params, run.params)


@pytest.mark.parametrize(
    "intervention",
    [JumpStart(linear(5, -5)), StateShield(lambda observation: np.abs(observation[:, 0]) > 0.4), REGION],
)
def test_each_intervention_lets_the_recovery_act_on_its_steps_alone(intervention, tmp_path):
    agent(region=None, intervention=intervention).learn(256, folder=tmp_path)
    assert 0.0 < read_table(tmp_path / "metrics.csv")[0]["recovery_rate"] < 1.0


def test_an_intervention_of_ones_own_needs_one_method():
    class EveryOther:
        def takes_over(self, situation, progress):
            return situation.step % 2 == 1

    rows = []
    agent(region=None, intervention=EveryOther()).learn(64, callback=lambda _, row: rows.append(row))
    assert 0.3 < rows[0]["recovery_rate"] <= 0.5


def test_callbacks_see_the_agent_and_the_metrics_and_may_stop_it():
    seen = []
    made = agent()
    made.learn(
        640, callback=[lambda who, row: seen.append((who, row["update"])), lambda _, row: row["update"] < 3]
    )
    assert seen == [(made, 1), (made, 2), (made, 3)]
    assert made.num_timesteps == 192


def test_learning_again_goes_on_from_the_parameters_it_has():
    made = agent().learn(128)
    before = jax.tree.map(np.copy, made.learner.params)
    made.learn(64, callback=lambda who, row: False)
    moved = [
        np.abs(a - b).max()
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(made.learner.params), strict=True)
    ]
    assert 0 < max(moved) < 0.1


def test_an_evaluation_environment_is_judged_without_the_recovery(tmp_path):
    agent(eval_env=[Drift] * 3, eval_every=2).learn(256, folder=tmp_path)
    rows = read_table(tmp_path / "evaluations.csv")
    assert [(row["update"], row["deterministic"]) for row in rows] == [(2, 0), (2, 1), (4, 0), (4, 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"region": None}, "needs to know where the policy acts"),
        ({"recovery": None}, "needs a recovery"),
        ({"intervention": JumpStart(linear(5, -5))}, "region and intervention are both given"),
        ({"region": 0.3}, "region is 0.3; allowed: an object with takes_over"),
        ({"env": "Pendulum-v1", "num_envs": 0}, "num_envs is 0"),
        ({"method": "sac"}, "no method 'sac'"),
        ({"gama": 0.9}, "unknown setting 'gama'"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"env": [Choice, Choice], "method": "cpo"}, "method is 'cpo'; allowed with discrete actions"),
        ({"action_noise": 0.1}, "action_noise is 0.1; allowed with an environment of your own: 0.0"),
        ({"eval_every": 2}, "eval_every is 2; allowed without an eval_env: 0"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(changes, message):
    with pytest.raises(ValueError, match=message):
        agent(**changes)


def test_a_region_whose_distance_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="distance is 'height'"):
        agent(region=SafeRegion(distance="height", radius=0.5)).learn(64)


def test_an_infinite_distance_is_outside_every_region_and_the_run_is_saved(tmp_path):
    lost = SafeRegion(distance=lambda o: np.where(far(o) > 0.3, np.inf, far(o)), radius=0.5)
    made = agent(region=lost, checkpoint_every=1).learn(128, folder=tmp_path)
    assert made.summary["recovery_steps"] > 0


class Later:
    """A function that answers otherwise after so many calls."""

    def __init__(self, good, bad, calls: int = 100):
        self.good, self.bad, self.left = good, bad, calls

    def __call__(self, observation):
        self.left -= 1
        return self.good(observation) if self.left >= 0 else self.bad(observation)


LATER = {  # what goes wrong in the middle of training -> what is said
    "a complex action": (
        {"recovery": Later(pull_back, lambda o: pull_back(o) + 1j)},
        "its numbers are complex",
    ),
    "a NaN action": (
        {"recovery": Later(pull_back, lambda o: np.full((len(o), 1), np.nan))},
        "= nan, allowed",
    ),
    "no action": ({"recovery": Later(pull_back, lambda o: None)}, r"gave actions of shape \(\)"),
    "an error": ({"recovery": Later(pull_back, lambda o: 1 / 0)}, "raised ZeroDivisionError"),
    "D of no robot": (
        {"region": SafeRegion(0.5, Later(far, lambda o: np.full(len(o), np.nan)))},
        "the distance was NaN at every step of update 4",
    ),
    "a negative D": (
        {"region": SafeRegion(0.5, Later(far, lambda o: far(o) - 5.0))},
        "allowed: numbers of at least 0",
    ),
    "a shield without an answer": (
        {"region": None, "intervention": StateShield(Later(lambda o: far(o) > 0.3, lambda o: None))},
        r"takes_over gave the shape \(\) for 2 robots",
    ),
}


@pytest.mark.parametrize("what", LATER)
def test_what_goes_wrong_in_the_middle_of_training_is_named_and_the_last_checkpoint_stands(what, tmp_path):
    changes, message = LATER[what]
    with pytest.raises(ValueError, match=message):
        agent(checkpoint_every=1, **changes).learn(1280, folder=tmp_path)
    assert checkpoints(tmp_path / "checkpoints")


@pytest.mark.parametrize(
    "made", [lambda s: {"region": SafeRegion(s, far)}, lambda s: {"intervention": JumpStart(s)}]
)
def test_a_schedule_that_is_no_number_later_in_training_stops_it_there(made):
    late = {"region": None} | made(lambda progress: np.nan if 0.2 < progress < 0.4 else 3.0)
    rows = []
    with pytest.raises(ValueError, match=r"(radius|handoff) is nan at progress 0\.25; allowed: a number"):
        agent(**late).learn(256, callback=lambda _, row: rows.append(row))  # 4 updates
    assert len(rows) == 1


@pytest.mark.parametrize("radius", [np.nan, linear(np.nan, 0.1), linear(0.1, -0.5), lambda progress: -1.0])
def test_a_radius_that_is_no_number_of_at_least_0_is_refused(radius):
    with pytest.raises(ValueError, match=r"radius is .* allowed: .* of at least 0"):
        SafeRegion(radius, far)


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((2, 2, 2)), np.array([np.nan, 0.0])])
def test_predict_refuses_observations_that_no_action_follows_from(bad):
    with pytest.raises(ValueError, match="observation"):
        agent().predict(bad)


def test_every_public_name_is_there():
    assert all(getattr(safeexplorer, name) is not None for name in safeexplorer.__all__)
    assert Path(safeexplorer.__file__).name == "__init__.py"


def test_a_whole_number_of_steps_may_be_written_as_a_float():
    made = agent()
    assert made.learn(1.28e2).num_timesteps == 128
    with pytest.raises(ValueError, match=r"steps is 64\.5; allowed: a whole number"):
        made.learn(64.5)


def test_an_audit_of_ones_own_environment_counts_what_the_recovery_does():
    made = agent(region=SafeRegion(distance=far, radius=0.3))
    found = made.audit(512)
    assert 0.1 < found.shares.recovery_rate < 0.9
    assert found.segments.count > 10 and found.gradients.masked_norm > 0
    with pytest.raises(ValueError, match="steps is 511; allowed: a positive multiple of the 2 environments"):
        made.audit(511)


def test_the_spread_of_the_policy_stays_above_its_floor():
    """A recovery that always does the same is imitated ever more closely."""
    still = {"recovery": lambda observation: np.zeros((len(observation), 1)), "region": SafeRegion(0.0, far)}
    free, held = (
        agent(min_log_std=floor, learning_rate=0.01, **still).learn(256).learner.params["log_std"]
        for floor in (-20.0, -0.02)
    )
    assert free.min() < -0.05 and held.min() == pytest.approx(-0.02)


def test_an_audit_reads_observations_rewards_and_radius_as_a_handed_over_agent_does():
    made = agent(method="safeexplorer_auto", region=SafeRegion(distance=far, radius="auto"), gamma=0.9)
    made.learn(256)
    made.learner.handover.alone, made.learner.handover.radius = False, 0.3
    found = made.audit(128)
    # The policy's own actions lie one standard deviation from its mean if it is read through its normaliser.
    assert 0.7 < found.fit.policy < 1.3
    assert found.region.largest_policy <= 0.3 < found.region.smallest_recovery
    scale = made.learner.scale.scale
    paid = paid_params(made.learner)["critic"][-1]
    np.testing.assert_allclose(paid["weight"], scale * made.learner.params["critic"][-1]["weight"], rtol=1e-6)
    assert scale != 1.0


def test_minibatches_are_checked_against_the_robots_that_are_there():
    """Three robots make 3 * 32 = 96 steps an update, of which 6 is a divisor and 64 is none."""
    given = {"recovery": pull_back, "region": SafeRegion(0.5, far), "rollout_steps": 32}
    assert SafeExplorer([Drift] * 3, minibatches=6, **given).settings.num_envs == 3
    with pytest.raises(
        ValueError, match="minibatches is 64; allowed: a divisor of num_envs \\* rollout_steps = 96"
    ):
        SafeExplorer([Drift] * 3, minibatches=64, **given)
