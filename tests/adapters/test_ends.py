"""Success is not a fall."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Drift, far, pull_back

from safeexplorer import SafeExplorer, SafeRegion
from safeexplorer.acting.accounting import Ledger
from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.adapters.ends import Ends, info_of
from safeexplorer.learning.labelling import Appraisal, label
from safeexplorer.learning.methods import METHODS

SMALL = {"rollout_steps": 32, "minibatches": 2, "epochs": 1, "hidden": (8,), "num_envs": 2}


class Errand(Drift):
    """`Drift` with a goal: beyond 1 on the right it is done, on the left it has fallen."""

    def _info(self):
        over = abs(self.x) > 1.0
        return {"is_success": bool(over and self.x > 0), "crashed": bool(over and self.x < 0)}


def learn(fell, mode=AutoresetMode.DISABLED, steps=512):
    env = SyncVectorEnv([lambda: Errand(40)] * 2, autoreset_mode=mode)
    agent = SafeExplorer(env, method="ppo", fell=fell, **SMALL)
    counted = []
    agent.learn(steps, callback=lambda _, row: counted.append((row["falls"], row["episodes"])))
    return counted


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_key_its_negation_and_a_function_count_the_same_falls_in_every_mode(mode):
    every = learn(None, mode)
    counted = [learn(fell, mode) for fell in ("crashed", "not is_success", lambda o, info: o[0] < 0)]
    assert counted[0] == counted[1] == counted[2]
    assert 0 < counted[0][-1][0] < every[-1][0] and counted[0][-1][1] == every[-1][1]


def test_the_notice_comes_once_and_only_if_nothing_was_said(capsys):
    learn(None)
    assert capsys.readouterr().err.count("say so with fell='not is_success'") == 1
    learn("crashed")
    assert "fell=" not in capsys.readouterr().err


def ends_after(rewards, last, fell=None):
    """Steps of two robots with these rewards, then one of them terminates with the last."""
    ends = Ends(fell)
    for reward in rewards:
        ends.watch(np.full(2, reward), np.array([False, False]))
    for _ in range(2):
        ends.watch(np.array([rewards[0], last]), np.array([False, True]))


@pytest.mark.parametrize(
    ("rewards", "last", "said"),
    [
        ([0.0] * 60, 0.9, True),  # MiniGrid
        ([-1.0] * 60, 0.0, True),  # Acrobot
        ([-0.1, 0.0] * 30, 100.0, True),  # MountainCarContinuous
        ([1.0] * 60, 1.0, False),  # CartPole
        ([-1.0, 3.0] * 30, 6.9, False),  # within 3 + (3 + 1)
        ([-1.0, 3.0] * 30, 7.1, True),
        ([0.0] * 40, 0.9, False),  # 80 steps are too few to tell
    ],
)
def test_a_last_reward_far_above_all_before_is_taken_for_a_goal_and_said_once(rewards, last, said, capsys):
    ends_after(rewards, last)
    assert capsys.readouterr().err.count("far above all before") == said
    ends_after(rewards, last, fell="crashed")
    assert not capsys.readouterr().err


def test_a_recovery_that_ends_at_a_goal_succeeded_and_its_last_reward_is_all_that_follows():
    column = np.array([[False], [True], [True]])
    rollout = blank_rollout(
        (3, 1), recovering=column, task_reward=np.array([[0.0], [0.0], [5.0]]), reached=column & [[0], [0], [1]] > 0,
        terminated=np.array([[False], [False], [True]]),
    )  # fmt: skip
    nothing = jnp.zeros((3, 1))
    appraisal = Appraisal(value=nothing + 7.0, next_value=nothing + 9.0, log_prob=nothing)
    batch, segments = label(rollout, appraisal, METHODS["safeexplorer"], (0.9, 0.95))
    assert segments.succeeded[:, 0].tolist() == [False, True, True]
    assert batch.gate[:, 0].tolist() == [0.0, 1.0, 1.0]
    # V at the trigger is 0.9^(2-1) * 5 = 4.5, so the step before it has A = 0 + 0.9 * 4.5 - 7 + 0.855 * A(trigger),
    # and A(trigger) = 0 + 0.9 * 7 - 4.5 + 0.855 * (5 - 7) = 0.09.
    np.testing.assert_allclose(batch.advantage[:, 0], [4.05 - 7 + 0.855 * 0.09, 0.09, -2.0], rtol=1e-5)
    ledger = Ledger(1)
    ledger.add(rollout, 1)
    assert (ledger.counts.falls, ledger.counts.succeeded, ledger.counts.failed) == (0, 1, 0)


def test_evaluations_count_falls_by_the_same_rule():
    env = [lambda: Errand(40)] * 4
    region = SafeRegion(distance=far, radius=0.5)
    agent = SafeExplorer(env, recovery=pull_back, region=region, fell=lambda o, info: False, **SMALL)
    assert agent.evaluate().falls == 0.0
    assert SafeExplorer(env, recovery=pull_back, region=region, **SMALL).evaluate().falls > 0.0


@pytest.mark.parametrize("bad", [3, "", "not "])
def test_what_cannot_say_falls_is_refused(bad):
    with pytest.raises(ValueError, match="fell is"):
        Ends(bad)


def test_a_key_that_info_lacks_is_refused_with_those_it_has():
    with pytest.raises(ValueError, match=r"'spilled'.*crashed, is_success"):
        learn("spilled")


def test_one_robots_info_holds_only_what_was_told_of_it():
    info = {"a": np.array([1, 0]), "_a": np.array([True, False]), "b": {"c": np.array([3, 4])}, "d": "words"}
    assert info_of(info, 0) == {"a": 1, "b": {"c": 3}}
    assert info_of(info, 1) == {"b": {"c": 4}}
