"""Recoveries made elsewhere: ONNX files, models with `predict`, discrete actions; and what is refused of them."""

import hashlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from safeexplorer.export.onnx import export_onnx
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.recovery import RecoveryError, as_recovery, interface_between
from safeexplorer.robots import get_robot

SEEN = Box(-np.inf, np.inf, (3,))
CART = interface_between("cart", SEEN, Box(-2.0, 2.0, (2,)))
SWITCH = interface_between("switch", SEEN, Discrete(3, start=5))
OBSERVATION = np.array([[0.5, 0.0, 1.0], [-1.0, 2.0, 0.0]])
# Actions (o1 + o3, -o2).
LINEAR = """<ir_version: 8, opset_import: ["" : 17]>
catch (float[batch, 3] state) => (float[batch, 2] torque)
<float[3, 2] gain = {1, 0, 0, -1, 1, 0}> { torque = MatMul(state, gain) }"""
CHOOSE = """<ir_version: 8, opset_import: ["" : 17]>
choose (float[batch, 3] state) => (int64[batch] action) <int64 start = {5}>
{ best = ArgMax<axis = 1, keepdims = 0>(state) action = Add(best, start) }"""


def write(path, text):
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_an_onnx_file_acts(tmp_path):
    path = write(tmp_path / "catch.onnx", LINEAR)
    recovery = as_recovery(str(path), CART)
    action = recovery.act(OBSERVATION)
    assert action.dtype == np.float32
    assert action.tolist() == [[1.5, 0.0], [-1.0, -2.0]]  # 0.5 + 1, -0; -1 + 0, -2
    assert recovery.act(OBSERVATION[:1]).tolist() == [[1.5, 0.0]]
    assert recovery.act(OBSERVATION[:0]).shape == (0, 2)
    assert recovery.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (recovery.name, recovery.deterministic, recovery.has_density) == ("catch", True, False)
    options = recovery.policy.session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_an_onnx_file_may_compute_in_doubles_and_have_more_outputs(tmp_path):
    text = LINEAR.replace("float[", "double[").replace("torque)", "action, double[batch, 3] value)")
    text = text.replace("torque =", "value = Tanh(state) action =")
    recovery = as_recovery(write(tmp_path / "catch.onnx", text), CART)
    assert recovery.act(OBSERVATION).tolist() == [[1.5, 0.0], [-1.0, -2.0]]


def test_an_onnx_file_with_its_weights_in_another_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = onnx.parser.parse_model(LINEAR)
    weights = onnx.numpy_helper.from_array(np.ones((3, 2), np.float32), "gain")
    model.graph.initializer[0].CopyFrom(weights)
    onnx.save(model, "catch.onnx", save_as_external_data=True, location="elsewhere.bin", size_threshold=0)
    assert (tmp_path / "elsewhere.bin").is_file()
    key = b"\x0a\x08location"
    whole = Path("catch.onnx").read_bytes()
    at_length = (b"\x0a\x88\x00location", b"\x8a\x00\x88\x80\x80\x00location")  # the same numbers, padded
    for written in (key, *at_length):
        Path("catch.onnx").write_bytes(whole.replace(key, written))
        with pytest.raises(RecoveryError, match=r"catch\.onnx: its weights may lie in other files"):
            as_recovery("catch.onnx", CART)


def test_our_own_export_is_a_recovery(tmp_path):
    params = init_actor_critic(np.random.default_rng(0), 3, 2, (8,))
    params["actor"][-1]["bias"][:] = 0.25, 3.0
    export_onnx(tmp_path / "p.onnx", params, Box(-2.0, 2.0, (2,)))
    action = as_recovery(tmp_path / "p.onnx", CART).act(OBSERVATION)
    np.testing.assert_allclose(action, [[0.25, 2.0]] * 2, atol=0.05)  # gain 0.01; 3 is out of bounds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINEAR.replace("batch, 3", "1, 3"), r"catch.onnx: its input has the shape \[1, 3\]; allowed: \[any, 3\]"),
        (LINEAR.replace("3]", "4]").replace("{1, 0,", "{1, 0, 0, 0,").replace("[3, 2]", "[4, 2]"),
         r"its input has the shape \['batch', 4\]"),
        (LINEAR.replace("state)", "state, float[batch] distance)"), "its inputs are state, distance; allowed: one"),
        (LINEAR.replace("torque)", "torque, float[batch, 3] v)").replace("torque =", "v = Tanh(state) torque ="),
         "its outputs are torque, v; allowed: one, or one called action"),
        (CHOOSE.replace("float[", "int32["), r"its input is a tensor\(int32\); allowed: tensor\(float\), tensor"),
    ],
)  # fmt: skip
def test_a_graph_of_another_form_is_refused_at_once(tmp_path, text, message):
    with pytest.raises(RecoveryError, match=message):
        as_recovery(write(tmp_path / "catch.onnx", text), CART)


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "p.onnx").write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(RecoveryError, match=r"p.onnx: not a model that onnxruntime can run"):
        as_recovery(tmp_path / "p.onnx", CART)
    with pytest.raises(RecoveryError, match=r"nowhere.onnx: cannot be read: No such file"):
        as_recovery(tmp_path / "nowhere.onnx", CART)


def test_a_missing_runtime_is_named_with_its_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "catch.onnx", LINEAR)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # makes the import fail
    with pytest.raises(
        ValueError, match=r"an .onnx file needs onnxruntime: pip install safeexplorer\[onnx\]"
    ):
        as_recovery(path, CART)


def test_a_wrong_answer_of_a_graph_is_refused_by_name(tmp_path):
    recovery = as_recovery(write(tmp_path / "catch.onnx", LINEAR), CART)
    with pytest.raises(RecoveryError, match=r"'catch' of cart gave action\[0, 0\] = 3, allowed: \[-2, 2\]"):
        recovery.act(np.array([[1.0, 0.0, 2.0]]))
    with pytest.raises(RecoveryError, match=r"'catch' of cart gave action\[0, 0\] = nan"):
        recovery.act(np.full((1, 3), np.nan))
    narrow = as_recovery(tmp_path / "catch.onnx", CART._replace(low=-np.ones(1), high=np.ones(1)))
    with pytest.raises(RecoveryError, match=r"gave actions of shape \(2, 2\), expected \(2, 1\)"):
        narrow.act(OBSERVATION)


class Model:
    """Has the `predict` of Stable-Baselines3 and, like its policies, may also be called with a tensor."""

    observation_space, action_space = SEEN, Box(-2.0, 2.0, (2,))
    state = None

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert deterministic and observation.dtype == np.float32
        observation[:] *= 1  # its own to write to
        return observation[:, :2], self.state

    def __call__(self, tensor):
        raise AssertionError("predict is what acts")


def test_a_model_with_predict_acts_deterministically():
    recovery = as_recovery(Model(), CART)
    assert recovery.act(OBSERVATION).tolist() == [[0.5, 0.0], [-1.0, 2.0]]
    assert (recovery.name, recovery.deterministic, recovery.digest) == ("Model", True, "")


def test_a_model_with_memory_is_refused():
    model = Model()
    model.state = (np.zeros(4),)
    with pytest.raises(
        RecoveryError, match="'Model' of cart raised RecoveryError: it keeps a state between steps"
    ):
        as_recovery(model, CART).act(OBSERVATION)


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"observation_space": Box(-1, 1, (4,))}, "'Model' was made for 4 observations .*; cart has 3 observations"),
        ({"action_space": Box(-1, 1, (2,))}, "made for .* 2 actions from -1 to 1; cart has .* from -2 to 2"),
        ({"action_space": Discrete(3)}, "was made for 3 observations and discrete actions from 0 to 2"),
        ({"observation_space": Dict(x=SEEN)}, r"observation_space is Dict\(.*\); allowed: a Box with one axis"),
    ],
)  # fmt: skip
def test_a_model_made_for_other_spaces_is_refused_at_once(spaces, message):
    model = Model()
    vars(model).update(spaces)
    with pytest.raises(RecoveryError, match=message):
        as_recovery(model, CART)


def test_discrete_actions_become_one_column(tmp_path):
    wanted = [[2.0], [1.0]]  # choices from 5 on, counted from 0
    path = write(tmp_path / "choose.onnx", CHOOSE)
    model = SimpleNamespace(name="chooser", predict=lambda o, deterministic: (o.argmax(1) + 5, None))
    for thing in (path, model, lambda o: o.argmax(1) + 5, lambda o: o.argmax(1)[:, None] + 5):
        action = as_recovery(thing, SWITCH).act(OBSERVATION)
        assert action.dtype == np.float32 and action.tolist() == wanted
    assert as_recovery(model, SWITCH).name == "chooser"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([5, 8], r"gave action\[1, 0\] = 8, allowed: \[5, 7\], whole numbers"),
        ([4, 5], r"gave action\[0, 0\] = 4"),
        ([5, 6.5], r"gave action\[1, 0\] = 6.5, allowed: \[5, 7\], whole numbers"),
        ([5, np.nan], r"gave action\[1, 0\] = nan"),
        ([5], r"gave actions of shape \(1, 1\), expected \(2, 1\)"),
        (5, r"gave actions of shape \(\), expected \(2, 1\)"),
    ],
)
def test_a_discrete_action_that_is_not_there_is_refused(answer, message):
    with pytest.raises(RecoveryError, match=message):
        as_recovery(lambda o: np.array(answer), SWITCH).act(OBSERVATION)


def test_infinity_is_refused_even_where_no_bound_is():
    free = interface_between("free", SEEN, Box(-np.inf, np.inf, (2,)))
    assert as_recovery(lambda o: 1e30 * np.ones((2, 2)), free).act(OBSERVATION)[0, 0] == np.float32(1e30)
    with pytest.raises(RecoveryError, match=r"gave action\[0, 0\] = inf"):
        as_recovery(lambda o: np.full((2, 2), np.inf), free).act(OBSERVATION)


def test_names_belong_to_the_robot_of_the_interface():
    cheetah = get_robot("half_cheetah").interface()
    recovery = as_recovery("half_cheetah", cheetah)
    assert recovery.has_density and as_recovery(recovery, cheetah) is recovery
    with pytest.raises(RecoveryError, match="'half_cheetah' is for half_cheetah, not for cart"):
        as_recovery(recovery, CART)
    with pytest.raises(RecoveryError, match="recovery 'half_cheetah' is for half_cheetah, not for cart"):
        as_recovery("half_cheetah", CART)
    with pytest.raises(RecoveryError, match="cart has no recovery 'default'; known: a file"):
        as_recovery("default", CART)


@pytest.mark.parametrize("thing", [None, 3, object()])
def test_what_cannot_act_is_refused(thing):
    with pytest.raises(
        RecoveryError, match=r"recovery is .*; allowed: a name, an \.npz, \.onnx or \.pt file, a callable"
    ):
        as_recovery(thing, CART)


@pytest.mark.parametrize(
    ("observation", "action", "message"),
    [
        (
            Box(0, 255, (8, 8), np.uint8),
            Discrete(2),
            "observation_space is Box.*; allowed: a Box with one axis",
        ),
        (SEEN, Dict(a=SEEN), "action_space is Dict.*; allowed: a Box with one axis, or Discrete"),
        (SEEN, Discrete(2, start=2**24), "allowed: numbers up to 16777216"),
    ],
)
def test_spaces_that_no_recovery_can_serve_are_refused(observation, action, message):
    with pytest.raises(RecoveryError, match=message):
        interface_between("x", observation, action)
