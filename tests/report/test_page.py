"""The page: opened in a browser, full of hostile names, and made from two hundred runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from browser import CHROMIUM, Page
from synthetic import write_campaign, write_run

from safeexplorer.learning.methods import METHODS
from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import Arm, Protocol
from safeexplorer.paper.drawing import draw
from safeexplorer.paper.grid import Library, gather
from safeexplorer.paper.palette import COLOURS
from safeexplorer.report import write_page
from safeexplorer.report.content import content
from safeexplorer.runs.results import collect_run, load_results, write_result
from safeexplorer.runs.settings import Settings

HOSTILE = "<script>alert(1)</script>"
SMALL = Settings(steps=120 * 8192, eval_every=4)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Three methods on two robots, a failed run with a hostile error, a run with a hostile name, a film."""
    root = tmp_path_factory.mktemp("report")
    runs = write_campaign(root / "runs", ["ppo", "analytic", "safeexplorer"], ["half_cheetah", "ant"], 2, 120)
    for name in ("film.gif", "fall-3.gif", "holiday.gif"):
        runs[0].joinpath(name).write_bytes(b"GIF89a" + bytes(40))
    hostile = replace(collect_run(write_run(root / "other", replace(SMALL, seed=9))), name=HOSTILE)
    write_result(hostile, root / "runs")
    broken = root / "runs" / "broken"
    broken.mkdir()
    facts = {
        "settings": replace(SMALL, seed=7).resolved().as_dict(),
        "error": f"{HOSTILE} & gone",
        "attempts": 3,
    }
    (broken / "failure.json").write_text(json.dumps(facts))
    path = root / "report.html"
    write_page(load_results([root / "runs"]), path, f"Runs {HOSTILE}")
    return path


def test_the_page_is_one_file_that_names_no_other(page):
    text = page.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"<(script|link|img|iframe)[^>]+src=", text)
    assert HOSTILE not in text and text.count("</script>") == 3


def test_nothing_in_the_data_ends_its_element(page):
    text = page.read_text()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["title"] == f"Runs {HOSTILE}"
    assert HOSTILE in {run["name"] for run in data["runs"]}


def test_the_page_says_what_each_film_shows(page):
    labels = {film["label"] for film in content(load_results([page.parent / "runs"]), "")["films"]}
    assert {label.split(": ")[1] for label in labels} == {
        "the trained policy at work",
        "the last seconds before fall 3",
    }


def test_groups_are_runs_that_differ_in_their_seed_alone(page):
    found = content(load_results([page.parent / "runs"]), "")
    plain = {(g["robot"], g["label"]): g["runs"] for g in found["groups"]}
    assert plain["ant", "SafeExplorer"] == 2
    assert sum(plain.values()) == len(found["runs"]) == 14
    assert [run["status"] for run in found["runs"]].count("failed") == 1
    assert {comparison["robot"] for comparison in found["comparisons"]} == {"HalfCheetah", "Ant"}


def test_groups_are_named_by_what_sets_them_apart_and_safeexplorer_is_red_whatever_its_budget(tmp_path):
    for settings in (
        Settings(steps=20 * 8192),
        Settings(steps=40 * 8192),
        Settings(steps=20 * 8192, sampled_recovery=True),
        Settings(steps=20 * 8192, lambda_compat=0.01, method="safeexplorer", seed=2),
    ):
        write_run(tmp_path, settings)
    groups = {g["label"]: g for g in content(load_results([tmp_path]), "")["groups"]}
    assert list(groups) == [
        "SafeExplorer, 0.32768M steps",
        "SafeExplorer, 0.16384M steps",
        "SafeExplorer, 0.16384M steps, sampled recovery",
        "SafeExplorer, 0.16384M steps, lambda 0.01",
    ]
    assert [g["ours"] for g in groups.values()] == [True, True, False, False]
    assert [g["dashed"] for g in groups.values()] == [False, True, False, False]
    assert [g["colour"] == "#d62839" for g in groups.values()] == [True, True, False, False]
    assert len({g["colour"] for g in groups.values()}) == 3


def test_one_run_has_no_interval_and_no_share_of_pairs(tmp_path):
    for method in ("ppo", "safeexplorer"):
        write_run(tmp_path, replace(SMALL, method=method))
    found = content(load_results([tmp_path]), "")
    assert all(g["reward"]["low"] is g["falls"]["high"] is None for g in found["groups"])
    (comparison,) = found["comparisons"]
    assert comparison["won"] is None and comparison["ours"]["label"] == "SafeExplorer"
    assert comparison["ours"]["falls"]["values"] == [found["groups"][-1]["falls"]["mean"]]


def test_a_measured_radius_stands_in_for_the_schedule_where_it_ran_alone(tmp_path):
    for method in ("ppo", "safeexplorer_auto"):
        write_run(tmp_path, replace(SMALL, method=method))
    found = content(load_results([tmp_path]), "")
    assert [g["ours"] for g in found["groups"]] == [False, True]
    assert found["comparisons"][0]["ours"]["label"] == "SafeExplorer auto"


def test_tables_without_a_run_of_their_budget_are_folded(tmp_path):
    write_run(tmp_path / "short", SMALL)
    write_run(tmp_path / "long", Settings())
    short, both = (
        content(load_results(folders), "")["tables"] for folders in ([tmp_path / "short"], [tmp_path])
    )
    assert short and not any(table["whole"] for table in short) and any(table["whole"] for table in both)


def test_a_new_row_of_the_method_table_is_shown_like_any_other(tmp_path, monkeypatch):
    mine = replace(METHODS["analytic"], name="mine", summary="a row of one's own")
    monkeypatch.setitem(METHODS, "mine", mine)
    for method in ("mine", "ppo", "safeexplorer"):
        write_run(tmp_path / "runs", replace(SMALL, method=method))
    results = load_results([tmp_path / "runs"])
    group = next(g for g in content(results, "")["groups"] if g["method"] == "mine")
    assert group["label"] == "mine" and group["colour"] not in COLOURS.values()
    artefact = replace(ARTEFACTS["curves"], arms=(*ARTEFACTS["curves"].arms, Arm("Mine", {"method": "mine"})))
    grid = gather(artefact, Library(results), Protocol(steps=SMALL.steps), ["half_cheetah"])
    assert grid.cell("Mine", "half_cheetah", "falls").values
    assert all(path.stat().st_size > 5000 for path in draw(grid, tmp_path))


@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: the page was not opened in a browser"
)
def test_in_a_browser_it_draws_answers_the_mouse_and_asks_for_nothing(page, tmp_path):
    with Page() as browser:
        browser.open(page)
        assert browser.run("document.querySelectorAll('figure svg').length") >= 12
        assert browser.run("document.querySelectorAll('svg .line').length") > 20
        assert browser.run("document.querySelectorAll('svg .mark').length") > 6
        assert browser.run("document.querySelectorAll('#tables table').length") >= 3

        browser.hover("#half_cheetah figure:nth-of-type(3) svg")
        tip = browser.run("document.getElementById('tip').innerText")
        assert "steps" in tip and re.search(r"SafeExplorer.*\n[\d,.]+", tip)
        browser.hover("#ant .mark")
        assert "final reward" in browser.run("document.getElementById('tip').innerText")
        browser.run("document.querySelector('#half_cheetah .legend button').click()")
        assert browser.run("document.querySelector('#half_cheetah .legend button').ariaPressed") == "false"

        assert HOSTILE in browser.run("document.getElementById('runs').innerText")
        assert f"{HOSTILE} & gone" in browser.run("document.getElementById('failures').innerText")
        assert browser.run("document.querySelector('h1').textContent") == f"Runs {HOSTILE}"
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        time.sleep(0.2)
        assert "lambda_compat" in browser.run("document.getElementById('runs').innerText")
        assert browser.complaints() == []
        assert browser.requests() == []
        browser.picture(tmp_path / "page.png")


@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine: the page was not opened in a browser"
)
def test_on_a_phone_in_the_dark_nothing_sticks_out(page):
    with Page(390, 800, dark=True) as browser:
        browser.open(page)
        assert browser.run("document.documentElement.scrollWidth") <= 390
        assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 23)"
        assert browser.complaints() == []


# VmHWM is the peak of this program alone; ru_maxrss would start from that of the process that launched it.
MAKE = """
import sys
from pathlib import Path
from safeexplorer.cli import main
assert main(["report", sys.argv[1], "--out", sys.argv[2]]) == 0
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(status["VmHWM"].split()[0])
"""


@pytest.mark.slow
def test_two_hundred_runs_of_a_thousand_updates_take_less_than_1_gib(tmp_path):
    methods = ["ppo", "recovery_rl", "safe_legged", "unmasked", "masked", "analytic", "soft", "safeexplorer"]
    models = write_campaign(tmp_path / "runs", methods, ["half_cheetah"], 5, 1000)
    for seed in range(6, 26):  # the records of a method's five runs again under other seeds
        for folder in models[seed % 5 :: 5]:
            facts = json.loads((folder / "run.json").read_text())
            facts["settings"]["seed"] = seed
            copy = tmp_path / "runs" / f"{folder.name}-as-{seed}"
            copy.mkdir()
            for record in folder.iterdir():
                (copy / record.name).hardlink_to(record)
            (copy / "run.json").unlink()
            (copy / "run.json").write_text(json.dumps(facts))
    command = [sys.executable, "-c", MAKE, str(tmp_path / "runs"), str(tmp_path / "report.html")]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(words[-1]) < 1024 * 1024
    assert (tmp_path / "report.html").stat().st_size < 10_000_000
