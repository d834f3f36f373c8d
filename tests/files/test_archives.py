"""Archives of others are read with care."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from safeexplorer.files.archives import read_npz


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "some.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match="there is no array 'qpos'"):
        read_npz(tmp_path / "some.npz", ["qpos"])


def test_an_archive_cut_anywhere_or_with_a_flipped_byte_is_one_line_or_whole(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez_compressed(path, a=np.arange(50.0), b=np.array("text"))
    whole = path.read_bytes()
    damaged = [whole[:cut] for cut in range(0, len(whole), 17)]
    for place in range(0, len(whole), 7):
        damaged.append(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            read_npz(path)
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")
    assert refused > 0.7 * len(damaged)


def test_a_small_archive_that_would_fill_the_memory_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(300 * 2**20, np.uint8))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(ValueError, match="would unpack to 314,572,"):
        read_npz(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "evil.npz"
    np.save(path.with_suffix(".npy"), np.array([print], object), allow_pickle=True)
    path.write_bytes(path.with_suffix(".npy").read_bytes())
    with pytest.raises(ValueError, match="never opened"):
        read_npz(path)
