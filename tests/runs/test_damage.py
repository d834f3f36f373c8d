"""A bad or foreign run is named and left out; the others are shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import write_run

from safeexplorer.cli import main
from safeexplorer.runs.results import collect_run, load_results, write_result
from safeexplorer.runs.settings import Settings

SMALL = Settings(steps=30 * 8192)


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    return [write_run(tmp_path / "runs", replace(SMALL, seed=seed)) for seed in (1, 2, 3)]


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def change(**values):
    def damage(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return damage


FOLDERS = {
    "torn summary": ("summary.json", tear),
    "summary that is a list": ("summary.json", lambda path: path.write_text("[]")),
    "summary of another run": ("summary.json", change(updates=7)),
    "torn run.json": ("run.json", tear),
    "empty run.json": ("run.json", lambda path: path.write_text("{}")),
    "a robot that nobody knows": ("run.json", change(settings={"robot": "unicorn"})),
    "a setting that nobody knows": ("run.json", change(settings={"wings": 2})),
    "rows of other lengths": ("metrics.csv", lambda path: path.write_text(path.read_text() + "1,2\n")),
    "letters": ("episodes.csv", lambda path: path.write_text(path.read_text() + "a" * 9 + "\n")),
    "no metrics": ("metrics.csv", Path.unlink),
    "bytes": ("run.json", lambda path: path.write_bytes(b"\xff\xfe\x00")),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_damaged_run_folder_is_named_and_the_others_are_read(runs, name):
    file, damage = FOLDERS[name]
    damage(runs[1] / file)
    said = []
    results = load_results([runs[0].parent], said.append)
    assert [result.spec.settings.seed for result in results] == [1, 3]
    assert str(runs[1]) in said[0] and said[0].startswith("left out: ")
    assert said[1:] == ["1 of 3 could not be read and is left out"]


RESULTS = {
    "NaN": lambda v: v["numbers"].update(final_reward=float("nan")),
    "negative falls": lambda v: v["numbers"].update(falls=-3),
    "a text": lambda v: v["numbers"].update(falls="many"),
    "wrong key": lambda v: v.update(colour="red"),
    "no settings": lambda v: v.pop("settings"),
    "status": lambda v: v.update(status="great"),
    "infinite curve": lambda v: v["curve"]["falls"].append(float("inf")),
    "levels": lambda v: v.update(levels=[[100.0, -1]]),
    "another format": lambda v: v.update(format=99),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_damaged_result_file_is_named_and_the_others_are_read(runs, tmp_path, name):
    files = [write_result(collect_run(run), tmp_path / "results") for run in runs]
    values = json.loads(files[0].read_text())
    RESULTS[name](values)
    files[0].write_text(json.dumps(values))
    said = []
    results = load_results([tmp_path / "results"], said.append)
    assert [result.spec.settings.seed for result in results] == [2, 3]
    assert str(files[0]) in said[0] and len(said) == 2


def test_every_command_that_reads_runs_shows_the_others(runs, tmp_path, capsys):
    tear(runs[1] / "summary.json")
    root, page = str(runs[0].parent), tmp_path / "report.html"
    commands = (
        ["render", "main-results", "--runs", root],
        ["report", root, "--out", str(page)],
        ["collect", root, "--out", str(tmp_path / "results")],
        ["paper", "--runs", root],
    )
    for words in commands:
        assert main(words) == 0
        said = capsys.readouterr().err
        assert (
            f"left out: {runs[1] / 'summary.json'} is damaged" in said and "1 of 3 could not be read" in said
        )
    assert page.stat().st_size > 10_000 and len(list((tmp_path / "results").iterdir())) == 2


def test_names_of_others_stop_no_reader_of_runs(tmp_path, capsys, monkeypatch):
    """Markup, mathematics, terminal escapes and paths in the name of an environment; names without end."""
    monkeypatch.chdir(tmp_path)
    names = ("mine", "$x_{$", "<script>[/red]&", "../../escaped", "\u00e9" * 300, "\x1b[31mred", "\ud800")
    for seed, name in enumerate(names, start=1):
        folder = write_run(tmp_path / "runs", replace(SMALL, seed=seed))
        facts = json.loads((folder / "run.json").read_text())
        facts["settings"] |= {"robot": None, "environment": name}
        (folder / "run.json").write_text(json.dumps(facts))
    for words in (["render", "own"], ["report", "runs", "--out", "r.html"], ["collect", "runs"]):
        assert main([*words, *(["--runs", "runs"] if words[0] == "render" else [])]) == 0
        output = capsys.readouterr()
        assert "2 of 7 could not be read" in output.err and "\x1b" not in output.out + output.err
    assert len(list((tmp_path / "results").iterdir())) == 5
    assert "<script>[/red]" not in (tmp_path / "r.html").read_text()
