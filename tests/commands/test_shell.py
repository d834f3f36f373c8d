"""The command in a shell: its version, completion, narrow terminals, and what it says beside its results."""

from __future__ import annotations

import json
import subprocess

import pytest

import safeexplorer
from safeexplorer.cli import COMMANDS, main
from safeexplorer.files import locks
from safeexplorer.runs.settings import Settings


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"safeexplorer {safeexplorer.__version__}\n"


def completed(script: str, *words: str) -> list[str]:
    """What bash offers after these words; the last one is begun."""
    line = " ".join(f"'{word}'" for word in ("safeexplorer", *words))
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _safeexplorer; printf "%s\\n" "${{COMPREPLY[@]}}"'
    shell = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    return shell.stdout.split()


def test_bash_completes_commands_options_and_their_values(capsys):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    assert set(COMMANDS) <= set(completed(script, ""))
    assert completed(script, "rep") == ["reproduce", "report"]
    assert completed(script, "train", "half") == ["half_cheetah"]
    assert completed(script, "train", "ant", "--sched") == ["--schedule"]
    assert completed(script, "train", "ant", "--schedule", "l") == ["linear", "log"]
    assert completed(script, "train", "ant", "--method", "recov") == ["recovery_rl"]
    assert completed(script, "recovery", "gr") == ["grade"]
    main(["completion", "zsh"])
    assert capsys.readouterr().out.endswith(script)


@pytest.mark.parametrize("words", ["methods", "robots", "recovery list", "paper --runs results"])
def test_listings_fit_80_columns_and_cut_no_name(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    main(words.split())
    table = capsys.readouterr().out.split("All together")[0]
    assert max(map(len, table.splitlines())) <= 80 and "\N{HORIZONTAL ELLIPSIS}" not in table


def test_a_quick_grade_takes_few_resets_and_says_what_it_does(capsys):
    main(["recovery", "grade", "half_cheetah", "--recovery", "passive", "--quick", "--json"])
    output = capsys.readouterr()
    assert json.loads(output.out)[0]["resets"] == 200
    assert output.err == "grading passive from 200 resets\n"


def test_where_there_are_no_locks_a_run_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(locks, "fcntl", None)
    assert main(["train", "half_cheetah", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("on Windows use WSL")


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({"steps": 200_000}, True),
        ({"steps": 8_000_000}, False),
        ({"steps": 200_000, "method": "ppo"}, False),
        ({"steps": 200_000, "schedule": "constant"}, False),
    ],
)
def test_a_short_budget_is_said_to_compress_the_curriculum(changes, warned, capsys):
    from safeexplorer.commands.train import say_what_haste_costs

    say_what_haste_costs(Settings(**changes).resolved())
    text = (
        "200,000 steps are 0.025 of the 8,000,000 that the curriculum is made for: it runs 40 times as fast"
    )
    assert (text in capsys.readouterr().err) is warned
