"""Checkpoints: atomic, hashed, pickle-free, two kept."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from safeexplorer.files.checkpoint import (
    DamagedCheckpoint,
    checkpoints,
    flatten,
    load_checkpoint,
    load_latest,
    save_checkpoint,
    unflatten_like,
)

ARRAYS = {"a": np.arange(3.0), "b/c": np.array([True, False])}


def test_what_was_saved_comes_back(tmp_path):
    path = save_checkpoint(tmp_path, 7, ARRAYS, {"update": 7})
    arrays, state = load_checkpoint(path)
    assert state == {"update": 7}
    assert all((arrays[k] == v).all() and arrays[k].dtype == v.dtype for k, v in ARRAYS.items())


def test_the_last_two_are_kept(tmp_path):
    for step in range(5):
        save_checkpoint(tmp_path, step, ARRAYS, {})
    assert [int(path.name) for path in checkpoints(tmp_path)] == [3, 4]


@pytest.mark.parametrize("name", ["arrays.npz", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_any_damage_falls_back_with_a_notice(tmp_path, name, damage):
    save_checkpoint(tmp_path, 1, ARRAYS, {"update": 1})
    path = save_checkpoint(tmp_path, 2, ARRAYS, {"update": 2}) / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(content[: len(content) // 2])
    notices = []
    _, state = load_latest(tmp_path, notices.append)
    assert state == {"update": 1}
    assert "damaged checkpoint passed over" in notices[0]


def test_nothing_whole_is_an_error_and_nothing_at_all_is_none(tmp_path):
    assert load_latest(tmp_path) is None
    (save_checkpoint(tmp_path, 1, ARRAYS, {}) / "arrays.npz").write_bytes(b"")
    with pytest.raises(DamagedCheckpoint, match="all 1 are damaged"):
        load_latest(tmp_path, lambda _: None)


def test_a_non_finite_array_is_not_saved(tmp_path):
    save_checkpoint(tmp_path, 1, ARRAYS, {})
    with pytest.raises(FloatingPointError, match="bad holds a non-finite number"):
        save_checkpoint(tmp_path, 2, {"bad": np.array([np.nan])}, {})
    assert [int(path.name) for path in checkpoints(tmp_path)] == [1]


def test_what_was_undone_is_dropped_and_other_names_are_no_checkpoints(tmp_path):
    for step in (1, 5, 10):
        save_checkpoint(tmp_path, step, ARRAYS, {"step": step})
    (tmp_path / "10-copy").mkdir()
    save_checkpoint(tmp_path, 7, ARRAYS, {"step": 7})  # 10 could not be read: the run went on from 5
    assert [path.name for path in checkpoints(tmp_path)] == ["0000000005", "0000000007"]
    assert load_latest(tmp_path)[1] == {"step": 7} and (tmp_path / "10-copy").is_dir()


class Trap:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle was executed')",)


def test_a_pickle_is_never_executed(tmp_path):
    path = save_checkpoint(tmp_path, 1, ARRAYS, {})
    np.savez(path / "arrays.npz", a=np.array([Trap()], dtype=object))
    manifest = json.loads((path / "manifest.json").read_text())
    from safeexplorer.files.checkpoint import sha256

    (path / "manifest.json").write_text(json.dumps(manifest | {"arrays.npz": sha256(path / "arrays.npz")}))
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(path)
    (path / "arrays.npz").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DamagedCheckpoint):
        load_checkpoint(path)


def test_trees_flatten_and_come_back():
    tree = {"x": [np.ones(2), (np.zeros(1), np.int64(3))], "y": np.float32(2)}
    flat = flatten(tree)
    assert sorted(flat) == ["x/0", "x/1/0", "x/1/1", "y"]
    back = unflatten_like(tree, flat)
    assert (back["x"][0] == 1).all() and back["x"][1][1] == 3
    with pytest.raises(DamagedCheckpoint, match="expected float64"):
        unflatten_like(tree, flat | {"x/0": np.ones(3)})
