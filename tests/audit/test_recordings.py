"""`safeexplorer audit` of files, in our own and in other people's words."""

import jax
import numpy as np
import pytest
from recordings import drawn, native, written

from safeexplorer.audit import read_recording
from safeexplorer.audit.subjects import audit_file
from safeexplorer.cli import main
from safeexplorer.theory.update import example_rollout


def in_other_words(arrays, flag=None, takeover=None, plural=False, without=()):
    """The same file, `action` being what the policy asked for and the takeover an array of its own."""
    arrays = dict(arrays)
    recovering, executed = arrays.pop("intervention"), arrays["action"]
    arrays["action"] = arrays.pop("proposed")
    if flag is not None:
        arrays[flag] = recovering.astype(np.uint8)
    blank = 0.0 if flag is not None else np.nan
    arrays[takeover] = np.where(recovering[..., None], executed, blank)
    if plural:
        names = ("observation", "action", "reward", "next_observation")
        arrays = {f"{name}s" if name in names else name: array for name, array in arrays.items()}
    return arrays


@pytest.mark.parametrize(
    "words",
    [
        {"takeover": "intervene_action", "plural": True},
        {"takeover": "action_intervention", "flag": "is_intervention"},
        {"takeover": "intervene_action", "flag": "intervene_flag"},
    ],
    ids=["intervene_action", "is_intervention", "intervene_flag"],
)
def test_other_recorders_words_mean_the_same(tmp_path, words):
    rollout = example_rollout()
    ours = read_recording(written(tmp_path, native(rollout)))
    theirs = read_recording(written(tmp_path, in_other_words(native(rollout), **words)))
    jax.tree.map(np.testing.assert_array_equal, theirs.rollout, ours.rollout)
    assert theirs.notes == ours.notes == ()
    for name in ("observation", "action", "proposed", "task_reward", "recovering", "next_observation"):
        np.testing.assert_array_equal(getattr(ours.rollout, name), getattr(rollout, name))


def test_takeovers_already_in_the_action_leave_no_proposals(tmp_path):
    arrays = native(example_rollout())
    recovering = arrays.pop("intervention")
    del arrays["proposed"]
    arrays["intervene_action"] = np.where(recovering[..., None], arrays["action"], np.nan)
    rollout = read_recording(written(tmp_path, arrays)).rollout
    assert rollout.proposed is None
    np.testing.assert_array_equal(rollout.action, example_rollout().action)


def test_one_robot_needs_no_axis_of_robots(tmp_path):
    arrays = {name: array[:, :1] for name, array in native(example_rollout()).items()}
    wide = read_recording(written(tmp_path, arrays))
    flat = read_recording(written(tmp_path, {name: array[:, 0] for name, array in arrays.items()}))
    jax.tree.map(np.testing.assert_array_equal, flat, wide)


def test_clipped_actions_of_the_policy_are_replaced_by_its_proposals(tmp_path):
    arrays = native(example_rollout())
    arrays["action"] = np.clip(arrays["action"], -0.1, 0.1)
    rollout = read_recording(written(tmp_path, arrays)).rollout
    main = ~rollout.recovering
    np.testing.assert_array_equal(rollout.action[main], arrays["proposed"][main])
    np.testing.assert_array_equal(rollout.action[~main], arrays["action"][~main])


def test_what_was_not_recorded_is_assumed_aloud(tmp_path):
    arrays = native(example_rollout())
    del arrays["next_observation"]
    recording = read_recording(written(tmp_path, arrays | {"camera": np.zeros(3)}))
    # Robot 0 ends at step 7, robot 1 at step 6, and both at the end of the recording.
    assert "4 values" in recording.notes[0] and "arrays not used: camera" in recording.notes[1]
    observation, following = recording.rollout.observation, recording.rollout.next_observation
    np.testing.assert_array_equal(following[7, 0], observation[7, 0])
    np.testing.assert_array_equal(following[7, 1], observation[8, 1])
    np.testing.assert_array_equal(following[-1], observation[-1])


def test_a_fall_at_the_time_limit_is_a_fall(tmp_path):
    arrays = native(drawn("..T", "..F"))
    arrays["truncated"] = np.ones_like(arrays["truncated"])
    rollout = read_recording(written(tmp_path, arrays)).rollout
    assert rollout.truncated[2].tolist() == [True, False] and rollout.terminated[2].tolist() == [False, True]


def at(index, value):
    def change(array):
        array = array.astype(np.float64)
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("observation", None, "observation is missing; expected [T, E, n]"),
        ("terminated", None, "a `done` does not tell falls from time limits"),
        ("intervention", None, "intervention is missing; expected one of intervention, is_intervention"),
        ("observation", at((3, 1, 2), np.nan), "observation holds nan at [3, 1, 2]; expected finite numbers"),
        ("reward", at((0, 0), np.inf), "reward holds inf at [0, 0]"),
        ("action", lambda a: a[:-1], "action has shape (9, 2, 2); expected (10, 2, size)"),
        ("action", lambda a: a[..., 0], "action has shape (10, 2); expected (10, 2, size)"),
        ("proposed", lambda a: a[..., :1], "proposed has vectors of 1; expected 2"),
        ("next_observation", lambda a: a[..., :2], "next_observation has vectors of 2; expected 3"),
        ("truncated", lambda a: a[:, :1], "truncated has shape (10, 1); expected (10, 2), as reward"),
        ("intervention", lambda a: 2 * a.astype(int), "intervention holds 2; expected bool, or 0 and 1"),
        ("intervention", lambda a: np.full(a.shape, "no"), "intervention is of type <U2; expected numbers"),
        ("action", lambda a: a.astype(object), "action holds Python objects; expected an array of numbers"),
        ("reward", lambda a: a[..., None], "reward has shape (10, 2, 1); expected [T, E]"),
        ("reward", lambda a: a[:0], "reward has shape (0, 2)"),
        ("is_intervention", lambda a: np.zeros((10, 2)), "is_intervention stands beside intervention"),
        ("intervene_action", lambda a: np.full((10, 2, 2), np.nan), "holds NaN where the recovery acted"),
        ("policy/actor/0/weight", lambda a: np.zeros((3, 2)), "there is no array actor/0/bias"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, capsys, name, change, says):
    arrays = native(example_rollout())
    array = arrays.pop(name, None)
    if change is not None:
        arrays[name] = change(array)
    path = written(tmp_path, arrays)
    assert main(["audit", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"{path}: " in error and says in error


def test_what_is_no_archive_is_never_opened(tmp_path, capsys):
    path = tmp_path / "rollouts.npz"
    path.write_bytes(b"\x80\x04.")  # a pickle
    assert main(["audit", str(path)]) == 2
    assert "not an .npz file" in capsys.readouterr().err


def test_an_audit_says_how_to_find_out_whether_takeovers_look_at_the_action(tmp_path):
    arrays = native(example_rollout())
    known = audit_file(written(tmp_path, arrays | {"distance": np.where(arrays["intervention"], 2.0, 0.0)}))
    arrays.pop("distance", None)
    unknown = audit_file(written(tmp_path, arrays))
    assert any("looked at the proposed action" in note for note in unknown.notes)
    assert not any("looked at the proposed action" in note for note in known.notes)
