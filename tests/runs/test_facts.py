"""The small JSON files of a run, with any value replaced by any other kind: read, or a line with the file's name."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import write_run

from safeexplorer.files.reading import NUMBER, misfit, read_json
from safeexplorer.report.content import describe_run
from safeexplorer.runs import stretches
from safeexplorer.runs.likeness import alike
from safeexplorer.runs.policies import run_spaces
from safeexplorer.runs.results import collect_run, read_result, write_result
from safeexplorer.runs.seals import check_seals
from safeexplorer.runs.settings import Settings, stored_settings

WRONG = (None, -1, True, 0.5, 10**30, "x", [], [[]], {}, {"a": 1})
SPACES = [
    {"kind": "discrete", "n": 2, "start": 0},
    {"kind": "box", "dtype": "<f4", "low": ["0"], "high": ["1"]},
]


def test_a_shape_says_where_a_value_does_not_fit_it():
    shape = {"rows": [{"number": NUMBER}], "name?": str, "by_key?": {"*": int}}
    assert (
        misfit({"rows": [{"number": 1}, {"number": 0.5}], "by_key": {"a": 1}, "other": None}, shape) is None
    )
    assert misfit([], shape) == "it holds list, expected dict"
    assert misfit({}, shape) == "it has no rows"
    assert misfit({"rows": [{"number": True}]}, shape) == "it.rows[0].number holds bool, expected int | float"
    assert misfit({"rows": [], "by_key": {"a": "1"}}, shape) == "it.by_key.a holds str, expected int"


def test_a_number_beyond_all_numbers_is_refused(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"falls": 1e999}')
    with pytest.raises(ValueError, match=r"x\.json is damaged: 1e999 is no number"):
        read_json(path)


def places(content: Any, above: tuple = ()) -> Iterator[tuple]:
    """The way to every value, of lists to the first one."""
    keys = (
        content
        if isinstance(content, dict)
        else range(min(1, len(content)))
        if isinstance(content, list)
        else ()
    )
    for key in keys:
        yield (*above, key)
        yield from places(content[key], (*above, key))


def variants(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The content without one of its values, and with others in its place."""
    for way in places(content):
        for wrong in ("missing", *WRONG):
            copy = json.loads(json.dumps(content))
            inner = copy
            for key in way[:-1]:
                inner = inner[key]
            if wrong == "missing":
                del inner[way[-1]]
            else:
                inner[way[-1]] = wrong
            yield copy


def reads(call) -> bool:
    """Or it is refused in one line."""
    try:
        call()
    except (ValueError, OSError) as error:
        assert "\n" not in str(error)
        return False
    return True


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    """A run folder, everything that may lie in one in it."""
    monkeypatch.setattr(stretches, "provenance", lambda: {"numpy": "2.0"})
    folder = write_run(tmp_path, replace(Settings(steps=30 * 8192), seed=1))
    facts = json.loads((folder / "run.json").read_text())
    facts |= {"spaces": SPACES, "stretches": [{"update": 0, "provenance": {"numpy": "2.0"}}]}
    facts |= {"world": {"observation": [[0.0, 1.0]], "radius": [0.1, None], "intervention": "SafeRegion"}}
    (folder / "run.json").write_text(json.dumps(facts))
    replay = {"exits": 4, "survived": {"count": 3, "total": 4}}
    (folder / "replay.json").write_text(json.dumps(replay))
    return folder


READERS = {
    "run.json": (stored_settings, collect_run, lambda folder: stretches.go_on(folder, 3, exact=False)),
    "summary.json": (collect_run, lambda folder: check_seals(folder, ["metrics"])),
    "replay.json": (collect_run,),
}


@pytest.mark.parametrize("name", READERS)
def test_every_value_of_a_file_of_a_run_may_be_of_another_kind(run, name):
    path = run / name
    content = json.loads(path.read_text())
    content = {key: value for key, value in content.items() if key != "settings"}  # their bounds have tests
    settings = (
        {"settings": json.loads((run / "run.json").read_text())["settings"]} if name == "run.json" else {}
    )
    refused = 0
    for variant in variants(content):
        path.write_text(json.dumps(variant | settings))
        for read in READERS[name]:
            refused += not reads(lambda read=read: read(run))
    assert refused > 10


def test_spaces_and_stored_answers_of_another_kind_are_refused_or_differ(run):
    facts = json.loads((run / "run.json").read_text())
    facts["settings"] |= {"robot": None, "environment": "mine"}
    for variant in variants({"spaces": SPACES}):
        (run / "run.json").write_text(json.dumps(facts | variant))
        reads(lambda: run_spaces(run))
    assert not any(alike([0.1, 0.2], wrong) for wrong in (*WRONG, [{}], ["x", 1]))


def test_every_value_of_a_result_file_may_be_of_another_kind(run, tmp_path):
    path = write_result(collect_run(run), tmp_path / "results")
    content = json.loads(path.read_text())
    short = {name: values[:2] for name, values in content["curve"].items()}
    content |= {"settings": {"robot": "ant", "seed": 3}, "curve": short, "levels": content["levels"][:1]}
    refused = 0
    for variant in variants(content):
        path.write_text(json.dumps(variant))
        refused += not reads(lambda: describe_run(read_result(path)))
    assert refused > 100
