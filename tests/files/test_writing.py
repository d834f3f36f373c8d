"""Whole files: old or new, never half; growing files: cut back, never filled up."""

from __future__ import annotations

import pytest
from records import read_table

from safeexplorer.files.tables import Mark, Table
from safeexplorer.files.writing import replacing, write_json, write_text


def test_the_old_content_stands_until_the_new_is_whole(tmp_path):
    path = tmp_path / "summary.json"
    write_json(path, {"a": 1})
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half of")
        file.flush()
        assert path.read_text() == '{\n "a": 1\n}'
        raise KeyboardInterrupt
    assert path.read_text() == '{\n "a": 1\n}'
    assert list(tmp_path.iterdir()) == [path]  # nothing is left lying about


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "a long first version")
    write_text(path, "short")
    assert path.read_text() == "short"


def test_a_table_is_cut_back_to_its_checkpoint(tmp_path):
    table = Table(tmp_path / "t.csv", ["a", "b"])
    table.append({"a": 1, "b": 0.1})
    offset = table.offset()
    table.append({"a": 2, "b": None})
    table.close()
    again = Table(tmp_path / "t.csv", ["a", "b"], Mark(offset))
    again.append({"a": 3, "b": None})
    again.close()
    assert read_table(tmp_path / "t.csv") == [{"a": 1.0, "b": 0.1}, {"a": 3.0, "b": None}]


def test_a_table_shorter_than_its_checkpoint_says_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"t.csv has 4 bytes; the checkpoint needs its first 9"):
        Table(tmp_path / "t.csv", ["a"], Mark(9))
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"


def test_a_table_of_other_columns_is_not_continued(tmp_path):
    Table(tmp_path / "t.csv", ["a", "b"]).close()
    with pytest.raises(ValueError, match=r"t\.csv was begun by a release with other columns: b, c"):
        Table(tmp_path / "t.csv", ["a", "c"], Mark(4))
