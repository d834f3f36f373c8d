"""The pages name only files and commands that exist, and what they show as code runs."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from safeexplorer.cli import build_parser, main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# A block of code, and the comment before it that says why it is not run.
BLOCK = re.compile(r"(<!-- not run: .+ -->\n)?^```(\w*)\n(.*?)^```", re.S | re.M)
SHORT = {"total_timesteps": 2048, "steps": 8192}  # runs of pages, as short as they can be
LONG = re.compile(rf"\b({'|'.join(SHORT)})=[\d_]+")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and code of what a reader can run."""
    return [(spoken, code) for marked, spoken, code in BLOCK.findall(page.read_text()) if not marked]


def follow(page: Path) -> tuple[set[str], set[str]]:
    """Do what a page says; the files that were saved, and those that were run.

    Python that begins with `# name.py` is saved under that name, other Python is typed in. Where files are saved,
    the shell's lines are run too, if they call Python or this package.
    """
    names: dict = {"__name__": "__main__"}
    saved, ran = set(), set()
    for spoken, code in blocks(page):
        code = LONG.sub(lambda found: f"{found[1]}={SHORT[found[1]]}", code)
        file = re.match(r"# (\w+\.py)\n", code)
        if spoken == "python" and file:
            Path(file[1]).write_text(code)
            saved.add(file[1])
        elif spoken == "python":
            exec(code, names)
        elif spoken == "sh" and saved:
            ran |= {run_line(line) for line in code.splitlines()}
    return saved, ran


def run_line(line: str) -> str:
    """Run a line of the shell; the file that it names."""
    command, *words = shlex.split(line, comments=True)
    if command == "python":
        runpy.run_path(words[0], run_name="__main__")
    elif command == "safeexplorer":
        assert main(words) == 0, line
    return words[0]


@pytest.fixture
def reader(tmp_path, monkeypatch) -> Iterator[None]:
    """Someone in an empty folder, whose modules and environments are gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(spoken == "python" for spoken, _ in blocks(page))],
    ids=lambda page: page.name,
)
@pytest.mark.timeout(240)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, reader):
    saved, ran = follow(page)
    imported = {f"{name}.py" for name in sys.modules}
    assert saved <= ran | imported  # no file is shown for nothing


def commands_of(page: Path) -> list[list[str]]:
    """Every line of a shell block that calls `safeexplorer`."""
    lines = [line for spoken, code in blocks(page) if spoken == "sh" for line in code.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("safeexplorer ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.name)
def test_every_command_of_a_page_is_understood(page):
    for words in commands_of(page):
        chosen = next((word for word in words if not word.startswith("-")), None)
        assert build_parser(chosen).parse_args(words), words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page):
    named = re.findall(
        r"\b(?:src|tests|examples|oracles|docs|plugins)/[\w./-]*\w\.(?:py|md|json|xml)\b", page.read_text()
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_first_thing_in_the_readme_is_a_film_that_loads_quickly():
    film = re.search(r"!\[[^]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())[1]
    assert film.endswith(".gif") and 100_000 < (ROOT / film).stat().st_size <= 3_000_000


def test_a_transition_is_followed_in_at_most_fifteen_hops_each_a_function_that_exists():
    hops = re.findall(
        r"^\| \d+ \| `([\w/]+\.py): (\w+)`", (ROOT / "docs" / "architecture.md").read_text(), re.M
    )
    assert 10 <= len(hops) <= 15 and len(set(hops)) == len(hops)
    for file, name in hops:
        source = (ROOT / "src" / "safeexplorer" / file).read_text()
        assert re.search(rf"^\s*(?:def|class) {name}\(", source, re.M), f"{file}: {name}"
