"""Whatever is typed or lies in a file: a line and exit code 2, or it works. Never a traceback, nothing written."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import fields, replace

import pytest
from short_runs import SHORT

from safeexplorer.audit.subjects import Trial
from safeexplorer.cli import COMMANDS, build_parser, main
from safeexplorer.files.fields import option
from safeexplorer.pretraining.settings import RecoverySettings
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import train

NUMBERS = ("-1", "0", "nan", "inf", "-inf", "1e308", str(10**20), "x", "")
TEXTS = ("", "[/foo]", "\x1b]0;name\x07\x1b[31m", "a\nb", "n" * 5000, "../nowhere", "\u202ehalf_cheetah")
RULES = [
    f for record in (Settings, RecoverySettings, Trial) for f in fields(record) if "at_least" in f.metadata
]
ZERO = {option(f.name) for f in RULES if f.metadata["at_least"] <= 0 and f.metadata["above"] < 0}
ZERO |= {"--snapshot", "--max-seconds", "--radius", "--seconds"}
GOOD = {(name, "0") for name in ZERO} | {
    ("--min-log-std", "-1"),
    ("--max-seconds", "inf"),
    ("--max-seconds", "1e308"),
}
GOOD |= {("--max-seconds", str(10**20)), ("--radius", str(10**20))}
BAD = {("bench sim", "--seconds"), ("film", "--seconds"), ("audit", "--radius")}  # not even zero
WORK = {  # where the work of a command begins
    "commands.robots": ["make"],
    "commands.train": ["train"],
    "commands.evaluate": ["evaluate_run"],
    "commands.quickstart": ["run_jobs"],
    "commands.recovery": ["train_recovery", "select", "grade", "replay", "replay_run"],
    "audit.subjects": ["make_collector", "read_recording"],
    "commands.paper": ["run_jobs", "load_results"],
    "commands.report": ["load_results"],
    "commands.feasibility": ["load_results"],
    "commands.film": ["play", "read_fall", "open_policy"],
    "commands.export": ["open_policy"],
    "commands.bench": ["bench_simulation"],
    "runs.benchmark": ["bench"],
}
WORDS = {  # what a command needs at least
    "show": ["half_cheetah", "--out", "picture.png"],
    "train": ["half_cheetah"],
    "resume": ["run"],
    "evaluate": ["run"],
    "recovery train": ["half_cheetah"],
    "recovery select": ["run", "--out", "best.npz"],
    "recovery grade": ["half_cheetah", "--recovery", "hold"],
    "recovery replay": ["run", "--recovery", "hold"],
    "audit": ["half_cheetah"],
    "reproduce": ["ablation"],
    "render": ["ablation"],
    "collect": ["run"],
    "report": ["run"],
    "film": ["run", "--out", "film.mp4"],
    "export": ["run", "--out", "policy.onnx"],
    "feasibility": ["run"],
}


class Working(Exception):
    """The command accepted its words."""


def leaves() -> dict[str, argparse.ArgumentParser]:
    """Every command that can be run."""
    found = {}
    for name in COMMANDS:
        top = next(a for a in build_parser(name)._actions if isinstance(a, argparse._SubParsersAction))
        parser = top.choices[name]
        below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        found |= (
            {f"{name} {word}": leaf for word, leaf in below[0].choices.items()} if below else {name: parser}
        )
    return found


LEAVES = leaves()


def takes_numbers(action: argparse.Action) -> bool:
    return action.type in (int, float) or getattr(action.type, "__qualname__", "").startswith("between")


def answer(words, capsys, folder):
    """ "works", or "refused" in one clean line that leaves nothing behind."""
    before = sorted(folder.rglob("*"))
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    except Working:
        capsys.readouterr()
        return "works"
    said = capsys.readouterr().err
    assert code == 2, (words, code, said)
    assert said.count("\n") == 1 and "Traceback" not in said and "\x1b" not in said and "\x07" not in said, (
        said
    )
    assert sorted(folder.rglob("*")) == before, words
    return "refused"


@pytest.fixture
def stopped_at_work(monkeypatch, tmp_path):
    """Commands stop where their work would begin, in an empty folder."""

    def work(*_, **__):
        raise Working

    for module, names in WORK.items():
        for name in names:
            monkeypatch.setattr(f"safeexplorer.{module}.{name}", work)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", LEAVES)
def test_every_option_takes_hostile_values_in_one_line(command, stopped_at_work, capsys):
    for action in LEAVES[command]._actions:
        if not action.option_strings or action.nargs == 0 or action.choices:
            continue
        name = action.option_strings[-1]
        numbers = takes_numbers(action)
        for value in NUMBERS if numbers else TEXTS:
            words = [*command.split(), *WORDS.get(command, []), f"{name}={value}"]
            got = answer(words, capsys, stopped_at_work)
            if numbers:
                good = (name, value) in GOOD and (command, name) not in BAD
                assert good or got == "refused", words


@pytest.mark.parametrize("command", LEAVES)
def test_every_command_takes_hostile_words_in_one_line(command, stopped_at_work, capsys):
    options = [word for word in WORDS.get(command, []) if word.startswith("-") or "." in word]
    for text in TEXTS:
        answer([*command.split(), text, *options], capsys, stopped_at_work)
        answer([*command.split(), *WORDS.get(command, []), f"--unknown{text}"], capsys, stopped_at_work)


# -- files ---------------------------------------------------------------------------------------------------


DAMAGES = {
    "emptied": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "flipped": lambda whole: (
        whole[: len(whole) // 2]
        + bytes(x ^ 0x55 for x in whole[len(whole) // 2 :][:1])
        + whole[len(whole) // 2 + 1 :]
    ),
    "an object": lambda whole: b"{}",
    "a list": lambda whole: b"[]",
    "null": lambda whole: b"null",
    "zeros": lambda whole: bytes(len(whole)),
    "text": lambda whole: b"\x1b[31m,[/foo]\n1,\n",
}
READERS = {
    "evaluate": [],
    "export": ["--out", "policy.onnx"],
    "film": ["--fall", "1", "--out", "film.gif"],
    "recovery replay": [],
    "report": [],
    "collect": [],
    "feasibility": [],
}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(replace(SHORT, method="ppo", steps=3 * 256, checkpoint_every=1), folder)
    return folder


@pytest.fixture
def quick_readers(monkeypatch):
    """What comes after the reading is left out."""
    from safeexplorer.acting.evaluation import Evaluation

    monkeypatch.setattr(
        "safeexplorer.runs.policies.evaluate", lambda *_, **__: Evaluation(0.0, 0.0, 0.0, 0.0)
    )
    monkeypatch.setattr(
        "safeexplorer.commands.export.export_onnx", lambda *_, **__: {"max_error": 0.0, "checked": 1}
    )
    monkeypatch.setattr("safeexplorer.commands.film.write_film", lambda *_, **__: None)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_reader_takes_damaged_files_without_a_traceback(
    damage, whole_run, quick_readers, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = sorted(
        path.relative_to(whole_run) for path in whole_run.rglob("*") if path.is_file() and path.name != "lock"
    )
    names = [
        name
        for name in names
        if ("0000000002" not in str(name) and "falls" not in str(name)) or name.stem == "00000001"
    ]
    for name in names:
        folder = tmp_path / "damaged" / "run"
        shutil.copytree(whole_run, folder)
        (folder / name).write_bytes(DAMAGES[damage]((whole_run / name).read_bytes()))
        for command, words in READERS.items():
            code = main([*command.split(), str(folder), *words])
            said = capsys.readouterr().err
            assert code in (0, 2) and "Traceback" not in said and "\x1b" not in said, (name, command, said)
            assert code == 0 or said.count("\n") <= 3, (name, command, said)
        shutil.rmtree(folder)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_recovery_file_is_refused_in_one_line(damage, capsys, tmp_path):
    from safeexplorer.recovery.library import WEIGHTS, shipped

    entry = next(entry for entry in shipped().values() if entry["robot"] == "half_cheetah")
    path = tmp_path / "mine.npz"
    path.write_bytes(DAMAGES[damage]((WEIGHTS / entry["file"]).read_bytes()))
    words = ["recovery", "grade", "half_cheetah", "--recovery", str(path), "--resets", "1"]
    assert answer(words, capsys, tmp_path) == "refused"
