"""An exported policy acts like ours in other people's runtimes, and a file that does not is never left behind."""

import hashlib
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from onnx.reference import ReferenceEvaluator

from safeexplorer import __version__
from safeexplorer.cli import main
from safeexplorer.export import onnx as deploy
from safeexplorer.export.onnx import ExportError, export_onnx
from safeexplorer.learning.networks import init_actor_critic, init_mlp
from safeexplorer.runs.policies import open_policy
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import open_run

LOW, HIGH = np.array([-1.0, -0.2, 0.1], np.float32), np.array([1.0, 0.3, 2.0], np.float32)
BOX, CHOICES = Box(LOW, HIGH), Discrete(4, start=-1)
OBSERVATION = np.random.default_rng(5).standard_normal((50, 5)).astype(np.float32)


def gaussian(hidden=(16, 8), normalised=False, seed=0):
    rng = np.random.default_rng(seed)
    params = init_actor_critic(rng, 5, 3, hidden)
    params["actor"] = init_mlp(rng, [5, *hidden, 3], 1.0)
    if normalised:
        params["normaliser"] = {
            "mean": rng.standard_normal(5).astype(np.float32),
            "deviation": rng.uniform(0.1, 2.0, 5).astype(np.float32),
        }
    return params


def categorical():
    rng = np.random.default_rng(1)
    return {"actor": init_mlp(rng, [5, 16, 4], 1.0), "critic": init_mlp(rng, [5, 16, 1], 1.0)}


def actor_by_hand(params, observation):
    """The actor's output in double precision."""
    x = observation.astype(np.float64)
    if "normaliser" in params:
        x = np.clip((x - params["normaliser"]["mean"]) / params["normaliser"]["deviation"], -5, 5)
    for layer in params["actor"][:-1]:
        x = np.tanh(x @ layer["weight"] + layer["bias"])
    return x @ params["actor"][-1]["weight"] + params["actor"][-1]["bias"]


def run(path, **feed):
    """The outputs by name."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("hidden", [(), (16, 8)])
def test_a_gaussian_policy_is_its_mean_within_the_bounds_in_two_runtimes(tmp_path, hidden, normalised):
    params = gaussian(hidden, normalised)
    result = export_onnx(tmp_path / "p.onnx", params, BOX)
    assert result["path"] == str(tmp_path / "p.onnx")
    assert result["max_error"] <= 1e-5 and result["checked"] > 300
    mean = actor_by_hand(params, OBSERVATION)
    assert ((mean < LOW) | (mean > HIGH)).any() and ((mean > LOW) & (mean < HIGH)).any()
    expected = np.clip(mean, LOW, HIGH)
    action = run(tmp_path / "p.onnx", observation=OBSERVATION)["action"]
    assert action.dtype == np.float32
    np.testing.assert_allclose(action, expected, atol=1e-5)
    (other,) = ReferenceEvaluator(str(tmp_path / "p.onnx")).run(None, {"observation": OBSERVATION})
    np.testing.assert_allclose(other, expected, atol=1e-5)


def test_a_categorical_policy_is_its_likeliest_action(tmp_path):
    params = categorical()
    assert export_onnx(tmp_path / "p.onnx", params, CHOICES)["max_error"] <= 1e-5
    action = run(tmp_path / "p.onnx", observation=OBSERVATION)["action"]
    assert action.dtype == np.int64 and action.shape == (50,)
    np.testing.assert_array_equal(action, actor_by_hand(params, OBSERVATION).argmax(1) - 1)
    assert set(action) == {-1, 0, 1, 2}


def test_any_number_of_rows_and_any_observation_go_in(tmp_path):
    export_onnx(tmp_path / "p.onnx", gaussian(), BOX)
    everything = run(tmp_path / "p.onnx", observation=OBSERVATION)["action"]
    for rows in (0, 1, 7):
        action = run(tmp_path / "p.onnx", observation=OBSERVATION[:rows])["action"]
        np.testing.assert_allclose(action, everything[:rows], atol=1e-6)
    lost = np.array([[np.nan, 0, 0, 0, 0], [3e38, 0, 0, 0, 0]], np.float32)
    action = run(tmp_path / "p.onnx", observation=lost)["action"]
    assert np.isnan(action[0]).all()  # seen by whoever runs it, rather than clipped to a bound
    assert ((action[1] >= LOW) & (action[1] <= HIGH)).all()


def test_a_box_far_narrower_than_the_policys_mean_is_no_error(tmp_path):
    # Means of about 1 are rounded by 1e-7, which is more than the tolerance of 1e-5 in a box of 1e-4.
    assert export_onnx(tmp_path / "p.onnx", gaussian(), Box(-1e-4, 1e-4, (3,)))["max_error"] < 1e-5


def test_an_unbounded_box_clips_nothing(tmp_path):
    params = gaussian()
    params["actor"][-1]["weight"] *= 100
    export_onnx(tmp_path / "p.onnx", params, Box(-np.inf, np.inf, (3,)))
    action = run(tmp_path / "p.onnx", observation=OBSERVATION)["action"]
    np.testing.assert_allclose(action, actor_by_hand(params, OBSERVATION), rtol=1e-4, atol=1e-3)
    assert np.abs(action).max() > 20


def test_the_gate_opens_beyond_the_radius_and_for_nan(tmp_path):
    """0.1 lies between two float32 numbers: 0.1000000015 is outside, 0.0999999940 is inside."""
    export_onnx(tmp_path / "p.onnx", gaussian(), BOX, region=0.1)
    above, within = np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(0))
    assert float(above) > 0.1 > float(within)
    distance = np.array([0.0, within, above, 5.0, np.inf, np.nan], np.float32)
    outputs = run(tmp_path / "p.onnx", observation=OBSERVATION[:6], distance=distance)
    assert outputs["recovery_should_act"].tolist() == [False, False, True, True, True, True]
    for radius in (0.0, 0.5):  # these are float32 numbers: on the boundary is inside
        export_onnx(tmp_path / "q.onnx", categorical(), CHOICES, region=radius)
        distance = np.array([radius, np.nextafter(np.float32(radius), np.float32(1))], np.float32)
        outputs = run(tmp_path / "q.onnx", observation=OBSERVATION[:2], distance=distance)
        assert outputs["recovery_should_act"].tolist() == [False, True]


def test_metadata_lie_in_the_file_as_text(tmp_path):
    export_onnx(tmp_path / "p.onnx", gaussian(), BOX, region=0.25, metadata={"method": "ppo", "seed": 3})
    model = onnx.load(tmp_path / "p.onnx")
    assert {entry.key: entry.value for entry in model.metadata_props} == {
        "method": "ppo",
        "seed": "3",
        "safeexplorer": __version__,
        "observation_size": "5",
        "action_size": "3",
        "radius": "0.25",
    }
    export_onnx(tmp_path / "again.onnx", gaussian(), BOX, region=0.25, metadata={"method": "ppo", "seed": 3})
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "p.onnx").read_bytes()


def shifted(monkeypatch):
    mean = deploy.policy_mean
    monkeypatch.setattr(deploy, "policy_mean", lambda *arguments: mean(*arguments) + np.float32(1e-4))


def reordered(monkeypatch):
    mean = deploy.policy_mean
    monkeypatch.setattr(deploy, "policy_mean", lambda *arguments: mean(*arguments)[:, ::-1])


def rounded(monkeypatch):
    """The nearest float32 to 0.1 is larger than 0.1."""
    monkeypatch.setattr("safeexplorer.export.graph.below", np.float32)


def blind(monkeypatch):
    """A policy for which a NaN is nothing special, unlike the file."""
    mean = deploy.policy_mean
    monkeypatch.setattr(deploy, "policy_mean", lambda *arguments: np.nan_to_num(mean(*arguments)))


@pytest.mark.parametrize(
    ("params", "space", "fault", "message"),
    [
        (gaussian(), BOX, shifted, r"differ from the policy's by 0.0004 of their scale; allowed: 1e-05"),
        (gaussian(), BOX, blind, "differ from the policy's by inf"),
        (categorical(), CHOICES, reordered, "differ from the policy's by"),
        (gaussian(), BOX, rounded, "gate differs from the safe region of radius 0.1"),
    ],
)
def test_a_file_that_acts_otherwise_is_not_left_behind(tmp_path, monkeypatch, params, space, fault, message):
    (tmp_path / "p.onnx").write_text("the one before")
    fault(monkeypatch)
    with pytest.raises(ExportError, match=message):
        export_onnx(tmp_path / "p.onnx", params, space, region=0.1)
    assert os.listdir(tmp_path) == ["p.onnx"]
    assert (tmp_path / "p.onnx").read_text() == "the one before"


def broken():
    params = gaussian()
    params["actor"][0]["bias"][2] = np.nan
    return params


@pytest.mark.parametrize(
    ("params", "space", "region", "message"),
    [
        (gaussian(), CHOICES, None, r"action_space is Discrete\(4, start=-1\) for a Gaussian policy; allowed: a Box"),
        (categorical(), BOX, None, "for a categorical policy; allowed"),
        (gaussian(), Box(-1, 1, (3, 1)), None, "allowed: a Box with one axis"),
        (categorical(), MultiDiscrete([4, 4]), None, "Discrete for a categorical one"),
        (gaussian(), Box(-1, 1, (2,)), None, r"the actor has 3 outputs; Box\(.*\) needs 2"),
        (categorical(), Discrete(5), None, "the actor has 4 outputs; .* needs 5"),
        (broken(), BOX, None, "non-finite"),
        (gaussian(), BOX, -0.1, "region is -0.1; allowed: a number from 0 to 1e"),
        (gaussian(), BOX, np.nan, "region is nan"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_is_refused_before_anything_is_written(
    tmp_path, params, space, region, message
):
    with pytest.raises(ExportError, match=message):
        export_onnx(tmp_path / "p.onnx", params, space, region=region)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)  # makes the import fail
    with pytest.raises(ValueError, match=rf"the export needs {module}: pip install safeexplorer\[onnx\]"):
        export_onnx(tmp_path / "p.onnx", gaussian(), BOX)


# -- a run ---------------------------------------------------------------------------------------------------


def start_run(folder, updates, **settings):
    """A run that has come to its last update, as far as its files tell."""
    settings = Settings(
        robot="half_cheetah", num_envs=2, rollout_steps=64, minibatches=2, hidden=(8,), **settings
    )
    run = open_run(settings.resolved(), folder)
    run.update = updates
    run.save()
    run.close()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three updates of 2 * 64 steps; its recovery is itself an ONNX file."""
    folder = tmp_path_factory.mktemp("run")
    recovery = folder / "catch.onnx"
    export_onnx(recovery, init_actor_critic(np.random.default_rng(2), 17, 6, (8,)), Box(-1, 1, (6,)))
    return start_run(folder, 3, steps=384, recovery=str(recovery), initial_radius=0.25, max_radius=0.75)


def test_a_run_can_have_an_onnx_recovery(folder):
    content = (folder / "catch.onnx").read_bytes()
    facts = json.loads((folder / "run.json").read_text())
    assert facts["recovery"] == {"name": "catch", "sha256": hashlib.sha256(content).hexdigest()}


def test_export_writes_the_policy_of_a_run_with_the_radius_it_reached(folder, tmp_path, capsys):
    path = tmp_path / "p.onnx"
    assert main(["export", str(folder), "--out", str(path), "--gate", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["path"] == str(path) and printed["max_error"] <= 1e-5
    assert printed["radius"] == pytest.approx(0.75)  # update 3 of 3: 0.25 + 2/3 * 0.75
    facts = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    expected = {"robot": "half_cheetah", "method": "safeexplorer", "seed": "1", "steps": "384"}
    assert expected.items() <= facts.items() and facts["radius"] == str(printed["radius"])
    observation = np.random.default_rng(0).standard_normal((4, 17)).astype(np.float32)
    outputs = run(path, observation=observation, distance=np.array([0.0, 0.7, 0.8, np.nan], np.float32))
    params = open_policy(folder).params
    expected = np.clip(actor_by_hand(params, observation), -1, 1)
    np.testing.assert_allclose(outputs["action"], expected, atol=1e-5)
    assert outputs["recovery_should_act"].tolist() == [False, False, True, True]


def test_export_says_what_it_wrote(folder, tmp_path, capsys):
    path = tmp_path / "p.onnx"
    assert main(["export", str(folder), "--out", str(path), "--radius", "0.3"]) == 0
    line = capsys.readouterr().out
    assert "half_cheetah, safeexplorer, seed 1, 384 steps; gate at distance 0.3; largest error" in line
    assert main(["export", str(folder), "--out", str(path)]) == 0
    assert "no gate" in capsys.readouterr().out
    assert [value.name for value in onnx.load(path).graph.input] == ["observation"]


def test_a_policy_that_normalises_its_observations_is_exported_with_them(tmp_path, capsys):
    folder = start_run(tmp_path, 1, steps=128, method="ppo_lagrangian")
    path = tmp_path / "p.onnx"
    assert main(["export", str(folder), "--out", str(path), "--gate"]) == 2
    assert "--gate: the run has no safe region (ppo_lagrangian); give --radius R" in capsys.readouterr().err
    assert main(["export", str(folder), "--out", str(path)]) == 0
    params = open_policy(folder).params
    assert "normaliser" in params
    observation = 5 * np.random.default_rng(0).standard_normal((20, 17)).astype(np.float32)
    expected = np.clip(actor_by_hand(params, observation), -1, 1)
    np.testing.assert_allclose(run(path, observation=observation)["action"], expected, atol=1e-5)


@pytest.mark.parametrize(("words", "message"), [(["--out", "p.pt"], "--out must end in .onnx, got 'p.pt'")])
def test_mistakes_are_explained(folder, words, message, capsys):
    assert main(["export", str(folder), *words]) == 2
    assert message in capsys.readouterr().err


BY_HAND = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "swish": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("activation", BY_HAND)
def test_other_activations_are_exported_as_they_act(activation, tmp_path):
    actor = init_mlp(np.random.default_rng(2), [5, 16, 3], 1.0, activation)
    params = gaussian() | {"actor": actor}
    assert export_onnx(tmp_path / "policy.onnx", params, Box(-9, 9, (3,)))["max_error"] < 1e-5
    hidden = BY_HAND[activation](OBSERVATION.astype(np.float64) @ actor[0]["weight"])
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    got = session.run(None, {"observation": OBSERVATION})[0]
    np.testing.assert_allclose(got, np.clip(hidden @ actor[1]["weight"], -9, 9), rtol=1e-4, atol=1e-5)
