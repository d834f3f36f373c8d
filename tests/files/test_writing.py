"""Whole files: old or new, never half; growing files: cut back, never filled up."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from records import read_table

import safeexplorer
from safeexplorer.files.locks import exclusive
from safeexplorer.files.tables import Growing, Mark, Table
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


@pytest.mark.parametrize("name", ["lock", "metrics.csv", "exits.bin"])
def test_locks_and_records_do_not_follow_symbolic_links(tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link, which is not followed"):
        if name == "lock":
            with exclusive(tmp_path / "run"):
                pass
        else:
            Growing(tmp_path / "run" / name)
    assert victim.read_text(encoding="utf-8") == "precious"


def text_calls(tree: ast.AST):
    """Calls that open a file as text, by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            words = [word.value for word in node.args[1:2] if isinstance(word, ast.Constant)]
            binary = name == "open" and (
                any("b" in str(word) for word in words) or isinstance(node.func, ast.Attribute)
            )
            method = isinstance(node.func, ast.Attribute)
            if (name == "open" and not binary) or (name in ("read_text", "write_text") and method):
                yield node


def test_utf8_is_said_wherever_a_file_is_opened_as_text():
    source = Path(safeexplorer.__file__).parent
    silent = [
        f"{path.relative_to(source)}:{call.lineno}"
        for path in source.rglob("*.py")
        for call in text_calls(ast.parse(path.read_text(encoding="utf-8")))
        if not any(word.arg == "encoding" for word in call.keywords)
    ]
    assert not silent
