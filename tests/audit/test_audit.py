"""`safeexplorer audit`: rollouts whose answer is known, and planted faults."""

import json
from dataclasses import replace

import numpy as np
import pytest
from recordings import drawn, native, written

from safeexplorer.acting.accounting import Ledger
from safeexplorer.audit import audit
from safeexplorer.audit.determinism import Determinism
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.gradients import (
    Comparison,
    Fit,
    Gradients,
    Importance,
    angle,
    diagnose,
    measure_importance,
)
from safeexplorer.audit.measures import Falls, Region, SegmentFacts, Shares, measure_segments
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED
from safeexplorer.audit.suggestions import RULES, suggest
from safeexplorer.cli import main
from safeexplorer.files.checkpoint import flatten
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import open_run
from safeexplorer.theory.update import example_rollout

# Shares and segments


def test_shares_segments_and_falls_of_a_drawn_rollout():
    found = audit(drawn("..rr.r.rX...", "rL.....F..rr"))
    # Robot 0 recovers in 2-3, 5 and 7-8; robot 1 in 0-1 and 10-11.
    assert (found.shares.steps, found.shares.recovery_steps, found.shares.recovery_rate) == (24, 9, 9 / 24)
    # Episodes: 0-8 of robot 0 with 5 of 9 steps, 0-1 of robot 1 with 2 of 2, 2-7 of robot 1 with none.
    assert (found.shares.episodes, found.shares.episodes_with_recovery) == (3, 2)
    assert [found.shares.episode_quantiles[q] for q in ("min", "median", "max")] == [0, 5 / 9, 1]
    segments = found.segments
    assert (segments.count, segments.reentered, segments.fell, segments.timed_out, segments.open) == (
        5,
        2,
        1,
        1,
        1,
    )
    assert [segments.length_quantiles[q] for q in ("min", "q25", "median", "max")] == [1, 2, 2, 2]
    assert segments.success == 2 / 3
    assert (segments.reexits, segments.reexit_share) == (2, 1.0)
    assert found.falls == Falls(policy=1, recovery=1)


@pytest.mark.parametrize(
    ("robots", "reexits"),
    [
        (["r.....r."], 1),  # five policy steps in between
        (["r......r"], 0),  # six
        (["r.F.r..."], 0),  # another episode
        (["..rr", "rr.."], 0),  # another robot
        (["rXr.r..."], 1),  # the first ended in a fall, the second came back
        (["r.r.r.r."], 3),
    ],
)
def test_reexits_are_within_five_policy_steps_of_the_same_episode(robots, reexits):
    assert measure_segments(drawn(*robots)).reexits == reexits


def test_segments_agree_with_the_ledger_of_training():
    rng = np.random.default_rng(0)
    for _ in range(20):
        letters = rng.choice(list(".....rrrrFXTL"), (3, 30))
        rollout = drawn(*("".join(robot) for robot in letters))
        found, ledger = measure_segments(rollout), Ledger(3)
        ledger.add(rollout, 0)
        counts = ledger.counts
        assert (found.count, found.fell) == (counts.exits, counts.failed)
        assert found.reentered + found.timed_out == counts.succeeded
        assert found.open == ledger.open.sum()


def test_a_rollout_without_recovery_has_no_segments_and_no_verdict():
    found = audit(drawn("..F..", "....."))
    assert (found.segments.count, found.segments.success, found.segments.length_quantiles) == (0, None, None)
    assert found.determinism.verdict == "unknown"
    assert found.missing["importance"] == "the recovery never acted"
    json.dumps(found.as_dict(), allow_nan=False)


def test_region_is_a_threshold_only_if_no_distance_has_both_sides():
    rollout = drawn("..rr")
    apart = audit(rollout._replace(distance=np.array([[0.1], [0.2], [0.3], [np.nan]]))).region
    assert apart == Region(largest_policy=0.2, smallest_recovery=0.3, overlap=0.0)
    # With 0.4 under the policy one of the two recovery steps, 0.3, lies below it.
    assert audit(rollout._replace(distance=np.array([[0.1], [0.4], [0.3], [0.5]]))).region.overlap == 0.5


# Gradients


@pytest.fixture(scope="module")
def small():
    """Three episodes of one step, the last under recovery: observation 0, mean = bias = 0, sigma = 1, V = 0.

    So A = r, and the gradient has two entries: -mean(A a) for the bias and -mean(A (a^2 - 1)) for log sigma.
    """
    params = init_actor_critic(np.random.default_rng(0), 1, 1, ())
    params["critic"][0]["weight"][:] = 0.0
    rollout = drawn("FFX")._replace(
        observation=np.zeros((3, 1, 1), np.float32),
        action=np.float32([[[1]], [[-1]], [[0]]]),
        proposed=np.float32([[[1]], [[-1]], [[2]]]),
        task_reward=np.array([[1.0], [-1.0], [-3.0]]),
    )
    return params, rollout


def test_angles_in_closed_form(small):
    """Masked, a = 1, -1 and A = 1, -1 normalised to +-1/sqrt 2: (-1/sqrt 2, 0).

    Unmasked, the recovery falls with a = 0, r = -3: A = 1, -1, -3 is normalised to 1, 0, -1, which gives
    (-1/3, -1/3): 45 degrees, |.| = sqrt 2 / 3. Relabelled with a = 2 instead: (1/3, 1): 180 - atan 3 degrees,
    |.| = sqrt 10 / 3.
    """
    params, rollout = small
    found = audit(rollout, params)
    gradients = found.gradients
    assert gradients.masked_norm == pytest.approx(np.sqrt(0.5), rel=1e-6)
    expected = {
        "unmasked": (45.0, 2 / 3),
        "relabelled": (180 - np.degrees(np.arctan(3)), np.sqrt(20) / 3),
        "analytic": (0.0, 1.0),  # the overwritten value is of an episode of its own
    }
    for rule, numbers in expected.items():
        row = gradients.compared[rule]
        assert (row.angle, row.norm_ratio) == pytest.approx(numbers, rel=1e-5, abs=1e-5)
    assert gradients.halves_angle is None  # one step alone is no gradient
    # (a - mean) / sigma: sqrt mean(1, 1) under the policy, 0 under the recovery.
    assert found.fit == Fit(policy=1.0, recovery=0.0, log_prob_error=None)


def test_without_recovery_every_rule_has_the_masked_gradient(small):
    params, rollout = small
    calm = rollout._replace(recovering=np.zeros((3, 1), bool), action=rollout.proposed)
    gradients = audit(calm, params).gradients
    assert set(gradients.compared) == {"unmasked", "relabelled", "analytic"}
    for row in gradients.compared.values():
        assert (row.angle, row.norm_ratio) == pytest.approx((0.0, 1.0), abs=1e-4)


def test_angle_of_nearly_equal_directions_is_exact():
    """arccos of a dot product would lose everything below 1e-6 degrees."""
    assert angle(np.array([1.0, 0.0]), np.array([2.0, 2e-10])) == pytest.approx(np.degrees(1e-10), rel=1e-6)
    assert angle(np.zeros(2), np.ones(2)) is None


def test_without_a_policy_nothing_is_said_about_gradients(small):
    found = audit(small[1])
    assert found.gradients is None and found.fit is None and found.importance is None
    assert set(found.missing) == {"gradients", "importance"}


def test_effective_sample_size_by_hand():
    # Weights 1, 1, 2, times e^-800, which no float holds: (1 + 1 + 2)^2 / (3 (1 + 1 + 4)) = 16 / 18, mean 4 / 3.
    rollout = drawn(".rrr")._replace(recovery_log_density=np.full((4, 1), 800.0))
    found = measure_importance(rollout, np.log([[9.0], [1.0], [1.0], [2.0]]))
    assert found.ess_share == pytest.approx(16 / 18)
    assert found.log10_mean == pytest.approx((np.log(4 / 3) - 800) / np.log(10))


def test_recorded_log_probabilities_serve_where_there_is_no_policy(small):
    params, rollout = small
    rollout = rollout._replace(
        recovering=np.array([[False], [True], [True]]), recovery_log_density=np.array([[0.0], [-3.0], [-1.0]])
    )
    # The policy is a standard normal at a = 1, -1, 0.
    log_prob = -0.5 * np.array([[1.0], [1.0], [0.0]]) - 0.5 * np.log(2 * np.pi)
    with_policy, without = audit(rollout, params, log_prob=log_prob), audit(rollout, log_prob=log_prob)
    assert without.importance == replace(with_policy.importance, log10_variance_ratio=None)
    learners = {name: float(x) for name, x in diagnose(params, rollout, Hyperparameters()).items()}
    assert with_policy.importance.ess_share == pytest.approx(learners["importance_ess_share"], rel=1e-5)
    assert with_policy.importance.log10_variance_ratio == learners["importance_log10_variance_ratio"] != 0
    assert with_policy.fit.log_prob_error == 0
    assert audit(rollout, params, log_prob=log_prob + 1.0).fit.log_prob_error == pytest.approx(1.0)


# Suggestions

HEALTHY = Audit(
    policy="given",
    shares=Shares(1000, 4, 200, 0.2, 4, 4, {}),
    segments=SegmentFacts(20, {}, 18, 1, 0, 1, 18 / 19, 2, 1 / 9),
    falls=Falls(policy=0, recovery=1),
    determinism=Determinism("replay", 16, True, True),
    region=Region(0.3, 0.31, 0.0),
    fit=Fit(1.0, 3.0, None),
    gradients=Gradients(
        800, 0.1, 80.0, {"unmasked": Comparison(20.0, 1.0), "relabelled": Comparison(15.0, 1.0)}
    ),
    importance=Importance(0.5, 0.0, 1.0),
)


def but(section, **changes):
    """The healthy audit with another section."""
    return {section: replace(getattr(HEALTHY, section), **changes)}


NOBODY = but("shares", recovery_steps=0, recovery_rate=0.0)
DRAWN = but("determinism", actions_equal=False)
UNMASKED = {"unmasked": Comparison(60.0, 5.0)}
CASES = {
    "recovery never acts, robots fall": NOBODY | but("falls", policy=3),
    "recovery never acts": NOBODY,
    "recovery acts almost always": but("shares", recovery_rate=0.95, recovery_steps=950),
    "recovery too weak": but("segments", success=0.4),
    "recovery does not come back": but("segments", timed_out=20),
    "falls inside the region": but("falls", policy=2),
    "chatter at the boundary": but("segments", reexits=12, reexit_share=12 / 18),
    "trigger is no threshold on D": but("region", overlap=0.1),
    "unmasked update turns the gradient": but("gradients", compared=UNMASKED),
    "importance weights collapse": but("importance", ess_share=0.01),
    "sampled recovery with a density": DRAWN | {"density": True},
    "stochastic recovery without a density": DRAWN,
    "stochastic world": but("determinism", trajectories_equal=False),
    "another policy acted": but("fit", policy=2.5),
}


def test_every_rule_has_a_case_and_nothing_is_suggested_without_a_reason():
    assert [rule.name for rule in RULES] == list(CASES)
    assert suggest(HEALTHY) == ()


@pytest.mark.parametrize("rule", CASES)
def test_a_planted_finding_is_found_alone(rule):
    (suggestion,) = suggest(replace(HEALTHY, **CASES[rule]))
    assert suggestion.rule == rule and suggestion.setting and suggestion.reason


def test_an_angle_that_relabelling_has_too_is_no_finding():
    noisy = UNMASKED | {"relabelled": Comparison(55.0, 1.0)}
    assert suggest(replace(HEALTHY, **but("gradients", compared=noisy))) == ()


# The command


def test_a_recording_with_its_policy_is_audited_from_the_command_line(tmp_path, capsys, small):
    params, rollout = small
    weights = {f"policy/{name}": array for name, array in flatten(params).items()}
    path = written(tmp_path, native(rollout) | weights)
    assert main(["audit", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shares"]["recovery_steps"] == 1 and found["falls"] == {"policy": 2, "recovery": 1}
    assert found["gradients"] == audit(rollout, params).as_dict()["gradients"]
    assert main(["audit", str(path)]) == 0
    out = capsys.readouterr().out
    assert "came back" in out and "unmasked" in out and "Suggestions" in out


def test_a_robot_is_tried_out_with_the_policy_of_a_run(tmp_path, capsys):
    run = open_run(Settings(steps=8192, hidden=(8,)).resolved(), tmp_path)
    run.update = 1
    run.save()
    run.close()
    words = ["audit", "half_cheetah", "--policy", str(tmp_path), "--steps", "128", "--radius", "0.15"]
    assert main([*words, "--sampled-recovery", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["policy"] == f"{tmp_path} at 0.0% of its training"
    assert found["determinism"]["verdict"] == "stochastic recovery" and found["density"]
    assert 0 < found["importance"]["ess_share"] <= 1
    assert main(["audit", "ant", "--policy", str(tmp_path)]) == 2
    assert "is a run of half_cheetah, not of ant" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "'nowhere' is no robot and no file"),
        (["half_cheetah", "--steps", "10"], "steps is 10; allowed: a positive multiple of num_envs, 4"),
        (["half_cheetah", "--num-envs", "0"], "num_envs is 0; allowed: a whole number of at least 1"),
        (["half_cheetah", "--radius", "-1"], "radius is -1.0; allowed: a number above 0"),
        (["half_cheetah", "--progress", "2"], "progress is 2.0; allowed: a number from 0 to 1"),
        (["half_cheetah", "--radius", "1", "--progress", "0.5"], "radius and progress are both given"),
        (["half_cheetah", "--recovery", "hold", "--sampled-recovery"], "recovery 'hold' has none"),
        (["half_cheetah", "--policy", "nowhere.npz"], "nowhere.npz"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(capsys, words, says):
    assert main(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and says in error


def test_options_of_a_robot_are_refused_for_a_recording(tmp_path, capsys):
    path = written(tmp_path, native(example_rollout()))
    assert main(["audit", str(path), "--radius", "1"]) == 2
    assert "--radius is for a robot" in capsys.readouterr().err


def test_help_names_every_array(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in REQUIRED | OPTIONAL)
