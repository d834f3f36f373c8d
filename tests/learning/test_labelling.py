"""From a rollout and a method to a batch: rewards, values, advantages, weights and gates."""

from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safeexplorer.acting.trajectory import Batch, Rollout, blank_rollout
from safeexplorer.learning.labelling import Appraisal, advantages, label, learning_reward, stored_action
from safeexplorer.learning.methods import (
    ANALYTIC,
    METHODS,
    PARTS,
    SAFEEXPLORER,
    SAFEEXPLORER_AUTO,
    SOFT,
    Method,
)
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import appraise
from safeexplorer.theory.update import example_rollout

GAMMA, LAMBDA = 0.9, 0.8
DISCOUNTS = (GAMMA, LAMBDA)


@partial(jax.jit, static_argnums=(1, 3, 4))
def compiled_label(rollout, method, appraisal, discounts=DISCOUNTS, per_segment=False):
    return label(rollout, appraisal, method, discounts, per_segment)[0]


def with_appraisal(
    rollout: Rollout, appraisal: Appraisal, method: Method, per_segment: bool = False
) -> Batch:
    return Batch(*map(np.asarray, compiled_label(rollout, method, appraisal, DISCOUNTS, per_segment)))


def labelled(method: Method, rollout: Rollout | None = None, per_segment: bool = False) -> Batch:
    """The batch of a method on the example rollout, with a critic of as many heads as the method asks for."""
    rollout = example_rollout() if rollout is None else rollout
    params = init_actor_critic(np.random.default_rng(0), 3, 2, (8,), heads=method.critic_heads)
    appraisal = compiled_appraise(params, rollout, stored_action(rollout, method))
    return with_appraisal(rollout, appraisal, method, per_segment)


compiled_appraise = jax.jit(appraise)
example_batch = cache(lambda name: labelled(METHODS[name]))


# Advantages


def reference_gae(reward, value, next_value, terminated, truncated):
    """A_t = sum_k (gamma lambda)^k delta_{t+k} up to the end of the episode, each sum written out."""
    steps, width = reward.shape
    result = np.zeros_like(reward)
    for e in range(width):
        for t in range(steps):
            factor = 1.0
            for k in range(t, steps):
                over = terminated[k, e] or truncated[k, e]
                after = next_value[k, e] if over or k == steps - 1 else value[k + 1, e]
                after = 0.0 if terminated[k, e] else after
                result[t, e] += factor * (reward[k, e] + GAMMA * after - value[k, e])
                if over:
                    break
                factor *= GAMMA * LAMBDA
    return result


gae = jax.jit(partial(advantages, discounts=DISCOUNTS))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), falls=st.floats(0, 0.5), limits=st.floats(0, 0.5))
def test_gae_is_its_definition(seed, falls, limits):
    rng, shape = np.random.default_rng(seed), (9, 3)
    reward, value, next_value = rng.normal(size=(3, *shape)).astype(np.float32)
    terminated = rng.uniform(size=shape) < falls
    truncated = (rng.uniform(size=shape) < limits) & ~terminated
    rollout = blank_rollout(shape, terminated=terminated, truncated=truncated)
    found = gae(reward, value, Appraisal(value, next_value, value), rollout)
    expected = reference_gae(reward, value, next_value, terminated, truncated)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_gae_by_hand():
    """Two steps, then a fall: A_1 = 3 - 2 = 1, A_0 = (1 + 0.9 * 2 - 4) + 0.9 * 0.8 * 1 = -0.48."""
    shape = (2, 1)
    rollout = blank_rollout(shape, terminated=np.array([[False], [True]]))
    value, next_value = np.array([[4.0], [2.0]], np.float32), np.full(shape, np.nan, np.float32)
    reward = np.array([[1.0], [3.0]], np.float32)
    found = gae(reward, value, Appraisal(value, next_value, value), rollout)
    np.testing.assert_allclose(found, [[-0.48], [1.0]], rtol=1e-6)


# Learning rewards


@pytest.mark.parametrize("name", METHODS)
def test_learning_reward(name):
    """Steps: main, recovery, recovery that falls, main that falls; the task pays 7 at each."""
    recovering, terminated = np.array([[0, 1, 1, 0]], bool).T, np.array([[0, 0, 1, 1]], bool).T
    rollout = example_rollout()._replace(
        recovering=recovering, terminated=terminated, task_reward=np.full((4, 1), 7.0)
    )
    expected = {"ppo": [7, 7, 7, 7], "safe_legged": [7, 6, 6, 7]}.get(name, [7, 0, 7, 7])
    assert np.asarray(learning_reward(rollout, METHODS[name]))[:, 0].tolist() == expected


# The value at the triggering state


def test_analytic_value_is_written_at_the_first_step_only():
    """gamma^3 V(s_5) where robot 0 is lost at step 2, gamma^(4-1) r_term where robot 1 is lost at step 3."""
    rollout = example_rollout()
    rng = np.random.default_rng(1)
    value, next_value = rng.normal(size=(2, 10, 2)).astype(np.float32)
    appraisal = Appraisal(value, next_value, np.zeros((10, 2), np.float32))
    batch = with_appraisal(rollout, appraisal, ANALYTIC)
    used = batch.value_target - batch.advantage  # R = A + V
    expected = value.copy()
    expected[2, 0] = GAMMA**3 * next_value[4, 0]
    expected[3, 1] = GAMMA**3 * rollout.task_reward[6, 1]
    np.testing.assert_allclose(used, expected, atol=1e-6)


def test_re_rolled_recoveries_join_the_realised_one():
    """Three re-rolls of mean 5 and the realised value v give (v + 3 * 5) / 4 at the first step."""
    rollout = example_rollout()
    once = labelled(ANALYTIC, rollout)
    count, mean = np.zeros((2, 10, 2))
    count[2, 0], mean[2, 0] = 3, 5.0
    again = labelled(ANALYTIC, rollout._replace(reroll_count=count, reroll_value=mean))
    before = (once.value_target - once.advantage)[2, 0]
    after = (again.value_target - again.advantage)[2, 0]
    assert after == pytest.approx((before + 15.0) / 4.0, abs=1e-6)


# Gates and the normaliser of the imitation


def test_gates():
    hard, always, soft = (example_batch(name) for name in ("safeexplorer", "dagger", "soft"))
    recovering = example_rollout().recovering
    np.testing.assert_array_equal(hard.gate[:, 0], recovering[:, 0])  # robot 0 came back
    np.testing.assert_array_equal(hard.gate[:, 1], 0.0)  # robot 1 fell
    np.testing.assert_array_equal(always.gate[recovering], 1.0)
    assert (soft.gate[recovering] != hard.gate[recovering]).all()


def test_soft_gate_by_hand():
    """At step 3 robot 0 has two steps left, gamma^2 V(s_5) - V(s_3); robot 1 has four, gamma^3 r_term - V."""
    rollout, rng = example_rollout(), np.random.default_rng(2)
    value, next_value = rng.normal(size=(2, 10, 2)).astype(np.float32)
    appraisal = Appraisal(value, next_value, np.zeros((10, 2), np.float32))
    gate = with_appraisal(rollout, appraisal, SOFT).gate
    assert gate[3, 0] == pytest.approx(GAMMA**2 * next_value[4, 0] - value[3, 0], abs=1e-6)
    assert gate[3, 1] == pytest.approx(GAMMA**3 * rollout.task_reward[6, 1] - value[3, 1], abs=1e-6)


def test_per_segment_normalisation_counts_each_segment_once():
    """Lengths 3 and 4: 3 * 1/3 + 4 * 1/4 = 2 segments, instead of 7 steps."""
    assert example_batch("safeexplorer").imitation_norm.sum() == 7
    assert labelled(SAFEEXPLORER, per_segment=True).imitation_norm.sum() == pytest.approx(2.0)


# The table of methods


def differing_fields(first: str, second: str) -> set[str]:
    a, b = example_batch(first), example_batch(second)
    return {name for name in Batch._fields if not np.array_equal(getattr(a, name), getattr(b, name))}


LABELLED = [name for name in METHODS if name != "safeexplorer_auto"]  # which differs around the batch


@pytest.mark.parametrize(("first", "second"), list(combinations(LABELLED, 2)))
def test_every_pair_of_methods_yields_a_different_batch(first, second):
    assert differing_fields(first, second)


def test_the_automatic_row_is_safeexplorer_with_every_part_on():
    named = {"name": "safeexplorer_auto", "summary": SAFEEXPLORER_AUTO.summary}
    assert replace(SAFEEXPLORER, **named, **dict.fromkeys(PARTS, True)) == SAFEEXPLORER_AUTO


@pytest.mark.parametrize(
    ("first", "second", "fields"),
    [
        ("ppo", "unmasked", {"advantage", "value_target"}),  # the reward on recovery steps
        ("unmasked", "recovery_rl", {"action", "log_prob"}),
        ("recovery_rl", "safe_legged", {"advantage", "value_target"}),
        ("unmasked", "masked", {"policy_weight", "value_weight"}),
        ("masked", "analytic", {"advantage", "value_target", "value_weight"}),
        ("analytic", "safeexplorer", {"imitation_norm", "gate"}),
        ("safeexplorer", "dagger", {"gate"}),
        ("safeexplorer", "truncated_is", {"importance_weight", "log_cap"}),
        ("analytic", "soft", {"imitation_norm", "gate", "gate_centred"}),
        (
            "soft",
            "soft_decomposed",
            {"advantage", "value_target", "gate"},
        ),  # through the critic's second head
    ],
)
def test_a_rung_changes_what_it_says_and_nothing_else(first, second, fields):
    assert differing_fields(first, second) == fields


def test_rows_of_the_table_differ_beyond_their_names():
    rows = {replace(method, name="", summary="") for method in METHODS.values()}
    assert len(rows) == len(METHODS)


def test_only_ppo_leaves_the_recovery_out_and_only_truncated_is_samples_it():
    assert [name for name, method in METHODS.items() if not method.intervenes] == ["ppo"]
    assert [name for name, method in METHODS.items() if method.sampled_recovery] == ["truncated_is"]


@pytest.mark.parametrize("name", METHODS)
def test_main_steps_always_count_fully(name):
    batch, main = example_batch(name), ~example_rollout().recovering
    assert (batch.policy_weight[main] == 1).all()
    assert (batch.value_weight[main] == 1).all()
    assert (batch.importance_weight[main] == 0).all()
    assert (batch.imitation_norm[main] == 0).all()
