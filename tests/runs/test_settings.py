"""Bad settings are refused in one line, before anything starts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from safeexplorer.acting.schedules import make_schedule
from safeexplorer.files.fields import difference
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters, Hyperparameters
from safeexplorer.runs.settings import Settings, from_dict


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robot": "spot"}, "no robot 'spot'; known: half_cheetah, ant, go1"),
        ({"method": "sac"}, "no method 'sac'; known: ppo, recovery_rl"),
        ({"gamma": 1.5}, "gamma is 1.5; allowed: a number from 0 to 1"),
        ({"gamma": math.nan}, "gamma is nan; allowed"),
        ({"epochs": 0}, "epochs is 0; allowed: a whole number from 1 to 10000"),
        ({"minibatches": 33}, "minibatches is 33; allowed: a divisor of num_envs"),
        ({"initial_radius": -0.1}, "initial_radius is -0.1; allowed: a number of at least 0"),
        ({"learning_rate": math.inf}, "learning_rate is inf"),
        ({"steps": 100}, "steps is 100; allowed: at least one update"),
        ({"schedule": "cosine"}, "schedule is 'cosine'; allowed: linear, interpolate, log, step, constant"),
        ({"hidden": ()}, "hidden is"),
        ({"seed": -1}, "seed is -1"),
        ({"num_envs": True}, "num_envs is True"),
        ({"method": "masked", "analytic_samples": 4}, "analytic_samples is 4; allowed: 1 with method masked"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(change, message):
    with pytest.raises(ValueError) as error:
        replace(Settings(), **change).resolved()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_survive_json():
    settings = Settings(hidden=(32, 16), lambda_compat=0.5).resolved()
    assert from_dict(settings.as_dict()) == settings


def test_the_learners_numbers_are_those_of_the_settings():
    assert Settings().resolved().hyperparameters() == Hyperparameters()
    assert Settings(method="cpo").resolved().constrained_hyperparameters() == ConstrainedHyperparameters()


def test_an_unknown_key_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown setting 'lambda'"):
        from_dict({"lambda": 1})


def test_the_difference_is_field_by_field():
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 3}) == ["b: 2 -> 3"]


def test_the_papers_budget_is_976_whole_updates():
    settings = Settings(robot="half_cheetah").resolved()
    assert (settings.steps, settings.batch_size, settings.updates) == (
        8_000_000,
        8192,
        976,
    )  # 8e6 / 8192 = 976.56


def test_schedules_start_and_end_where_they_should():
    end = 1.0
    assert make_schedule("linear", 0.05, 0.15)(0.0) == 0.05
    assert make_schedule("linear", 0.05, 0.15)(end) == pytest.approx(0.20)  # literal: d0 + d_max
    assert make_schedule("interpolate", 0.05, 0.15)(end) == pytest.approx(0.15)
    assert make_schedule("log", 0.0, 1.0)(0.5) == pytest.approx(math.log10(5.5))  # log(1 + 9 / 2) / log 10
    step = make_schedule("step", 0.0, 0.4)
    assert [step(p) for p in (0.0, 0.19, 0.21, 0.41, 0.61, 0.81)] == pytest.approx([0, 0, 0.1, 0.2, 0.3, 0.4])
    assert make_schedule("constant", 0.01, 0.4, 0.25)(0.7) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "num_envs, rollout_steps, minibatches",
    [(1, 2048, 8), (3, 682, 6), (4, 512, 8), (64, 32, 8), (4096, 24, 32)],
)
def test_updates_of_the_handover_are_short_and_minibatches_fit_any_number_of_robots(
    num_envs, rollout_steps, minibatches
):
    """About 2048 steps of all robots, in minibatches of about 256: 3 * 682 = 2046 has the divisors 1, 2, 3, 6, 11."""
    settings = Settings(method="safeexplorer_auto", num_envs=num_envs).resolved()
    assert (settings.rollout_steps, settings.minibatches) == (rollout_steps, minibatches)


def test_a_rollout_that_was_chosen_gets_minibatches_that_fit():
    settings = Settings(method="safeexplorer_auto", num_envs=1, rollout_steps=500).resolved()
    assert settings.minibatches == 1  # 500 // 256
    assert replace(settings, minibatches=5).resolved().minibatches == 5
