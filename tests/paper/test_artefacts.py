"""The registry of tables and figures, and what is rendered from it."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from synthetic import write_campaign, write_run

from safeexplorer.cli import main
from safeexplorer.paper import ARTEFACTS, GROUPS, get_artefacts
from safeexplorer.paper.artefact import ALL, Protocol
from safeexplorer.paper.drawing import DRAWINGS, draw
from safeexplorer.paper.grid import Library, gather
from safeexplorer.paper.measures import MEASURES
from safeexplorer.paper.pages import fill_page
from safeexplorer.paper.palette import COLOURS, arm_colours
from safeexplorer.paper.sheet import FORMATS, escape_latex, lay_out, terminal
from safeexplorer.runs.results import load_results
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.summary import enough_recovery

METHODS = ["ppo", "recovery_rl", "safe_legged", "cpo", "ppo_lagrangian", "analytic", "safeexplorer"]
UPDATES = 150
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Library:
    """Three seeds of 150 updates: shorter than the paper's, so that they stand in."""
    root = tmp_path_factory.mktemp("runs")
    write_campaign(root, METHODS, ["half_cheetah", "ant"], 3, UPDATES)
    return Library(load_results([root]))


@pytest.fixture(scope="module")
def protocol() -> Protocol:
    return Protocol(steps=UPDATES * 8192)


def sheet(name: str, library: Library, protocol: Protocol):
    return lay_out(gather(ARTEFACTS[name], library, protocol))


def test_eleven_tables_and_eight_figures():
    kinds = [artefact.kind for artefact in ARTEFACTS.values()]
    assert (kinds.count("table"), kinds.count("figure")) == (11, 8)


@pytest.mark.parametrize("artefact", ARTEFACTS.values(), ids=lambda a: a.name)
def test_every_artefact_is_whole(artefact):
    labels = [arm.label for arm in artefact.arms]
    assert len(set(labels)) == len(labels)
    assert set(artefact.measures) <= set(MEASURES)
    assert {(arm, robot) for arm, robot, _ in artefact.paper} <= {
        (a, r) for a in labels for r in artefact.robots
    }
    assert (artefact.drawing in DRAWINGS) == (artefact.kind == "figure")
    assert set(arm_colours(artefact.arms)) == set(labels)
    assert len(artefact.specs(Protocol())) == len(labels) * len(artefact.robots) * artefact.seeds


def test_the_papers_numbers_are_there_for_every_cell_of_every_table():
    for artefact in (a for a in ARTEFACTS.values() if a.kind == "table"):
        papers = [
            arm for arm in artefact.arms if arm.method != "safeexplorer_auto"
        ]  # our own, which it does not have
        assert len(artefact.paper) == len(papers) * len(artefact.robots) * len(artefact.measures), (
            artefact.name
        )


def test_the_component_ablation_is_the_papers_135_runs():
    specs = {s.key for a in get_artefacts(["ablation"]) for s in a.specs(Protocol())}
    assert len(specs) == 9 * 3 * 5
    assert set(GROUPS["all"]) == set(ARTEFACTS)


def test_every_run_of_a_campaign_is_evaluated():
    for spec in (spec for artefact in ARTEFACTS.values() for spec in artefact.specs(Protocol(seeds=1))):
        settings = spec.settings
        assert settings.updates // settings.eval_every >= 25, spec.label
    for spec in ARTEFACTS["objective-gap"].specs(Protocol(seeds=1)):
        assert (spec.settings.eval_every, spec.settings.eval_episodes) == (4, 5)  # as the paper does


def test_artefacts_share_equal_runs():
    specs = {name: {s.key for s in ARTEFACTS[name].specs(Protocol())} for name in ARTEFACTS}
    ours = {s.key for s in ARTEFACTS["objective-gap"].specs(Protocol())}
    assert ours <= specs["main-results"] & specs["soft-variants"] & specs["fixed-d"] & specs["headline"]
    wide = {s.key for s in ARTEFACTS["action-noise"].specs(Protocol()) if "action_noise" not in s.identity}
    assert wide <= specs["compat-norm"] & specs["compute-scaling"]
    assert specs["intervals"] == specs["curves"] == specs["main-results"]


def test_ratios_of_the_text_follow_from_the_papers_table():
    paper = ARTEFACTS["main-results"].paper
    falls = lambda arm, robot: paper[arm, robot, "falls"][0]  # noqa: E731
    ratios = [falls("PPO (no recovery)", robot) / falls("SafeExplorer", robot) for robot in ALL]
    assert [round(ratio) for ratio in ratios] == [236, 48, 26]  # the text says 233 for the first: 3311 / 14.2


def test_every_method_has_its_own_colour():
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_names_that_do_not_exist_are_refused_with_those_that_do():
    with pytest.raises(
        ValueError, match=r"no table or figure 'table-9'; known: main-results, .*ablation, all"
    ):
        get_artefacts(["table-9"])


# -- rendering ---------------------------------------------------------------------------------------------


def test_a_cell_is_the_mean_and_deviation_of_its_runs(library, protocol):
    grid = gather(ARTEFACTS["main-results"], library, protocol)
    cell = grid.cell("SafeExplorer", "ant", "falls")
    runs = [r for r in library.by_key.values() if r.spec.settings.method == "safeexplorer"]
    falls = [r.numbers["falls"] for r in runs if r.spec.settings.robot == "ant"]
    assert cell.values == tuple(falls) and (cell.finished, cell.wanted) == (3, 5)
    assert cell.summary == pytest.approx((np.mean(falls), np.std(falls, ddof=1)))
    assert cell.paper == (754, 463)


def test_markdown_marks_what_is_missing_and_sets_the_paper_beside_it(library, protocol):
    text = FORMATS["md"](sheet("main-results", library, protocol))
    ours = next(line for line in text.splitlines() if line.startswith("|SafeExplorer|"))
    assert "(3/5)" in ours and ours.count("|") == 8 and ours.endswith("|-|-|")  # no runs on Go1
    assert "*14 ± 8*" in text


def test_the_best_of_a_column_is_bold(library, protocol):
    text = FORMATS["md"](sheet("main-results", library, protocol))
    ours = next(line for line in text.splitlines() if line.startswith("|SafeExplorer|"))
    assert ours.split("|")[4].startswith("**")  # Ant falls... and reward


def test_shorter_runs_stand_in_and_say_so(library):
    page = FORMATS["md"](sheet("main-results", library, Protocol()))
    assert "1.2288M)" in page and "the artefact asks for 8M" in page


def test_the_success_bar_is_80_percent_of_the_best_baseline_or_ours(library, protocol):
    grid, labels = gather(ARTEFACTS["headline"], library, protocol), {}
    for arm in ARTEFACTS["main-results"].arms:
        labels[arm.method] = arm.label
    rewards = {method: [] for method in labels}
    for run in library.by_key.values():
        if run.spec.settings.robot == "ant" and run.spec.settings.method in labels:
            rewards[run.spec.settings.method].append(run.numbers["final_reward"])
    best = max((method for method in rewards if rewards[method]), key=lambda method: np.mean(rewards[method]))
    assert grid.bars["ant"] == (pytest.approx(0.8 * np.mean(rewards[best])), labels[best])


def test_runs_that_never_succeed_are_shown_not_averaged(library, protocol):
    rows = {row.label: row.ours for row in sheet("headline", library, protocol).rows}
    assert rows["PPO (no recovery)"][1] == "never (0/3)"  # Ant


def test_latex_is_escaped_and_balanced(library, protocol):
    text = FORMATS["latex"](sheet("operational-recovery", library, protocol))
    assert text.count(r"\\") == 1 + 2 * 3 and r"survived \%" in text
    assert escape_latex("a_b & 5% ± ^") == r"a\_b \& 5\% $\pm$ \textasciicircum{}"


def test_csv_and_json_hold_every_cell(library, protocol):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](sheet("main-results", library, protocol)))))
    cells = json.loads(FORMATS["json"](sheet("main-results", library, protocol)))["cells"]
    assert len(rows) == len(cells) == 7 * 3 * 2
    assert float(rows[0]["mean"]) == cells[0]["mean"] and len(cells[0]["values"]) == 3


def test_failed_and_unfinished_runs_are_listed_in_every_table_that_needed_them(tmp_path):
    settings = Settings(method="safeexplorer", steps=UPDATES * 8192)
    write_run(tmp_path, settings, finished=False, updates=75)
    broken = tmp_path / "broken"
    broken.mkdir()
    facts = {"settings": replace(settings, seed=2).resolved().as_dict(), "error": "it | broke", "attempts": 3}
    (broken / "failure.json").write_text(json.dumps(facts))
    library = Library(load_results([tmp_path]))
    half = next(r for r in library.by_key.values() if r.updates).curve
    reached = f"return {half['return_trailing'][-1]:,.0f} (last 100 episodes), {half['falls'][-1]} falls"
    for name in ("main-results", "soft-variants", "fixed-d", "headline"):
        grid = gather(ARTEFACTS[name], library, Protocol(steps=UPDATES * 8192))
        assert any(f"seed 1: 0.61M of 1.2288M steps, {reached}" in note for note in grid.notes()), name
        assert any(note.startswith("failed: ") and "seed 2: it | broke" in note for note in grid.notes()), (
            name
        )
    cell = gather(ARTEFACTS["main-results"], library, Protocol(steps=UPDATES * 8192)).cell(
        "SafeExplorer", "half_cheetah", "falls"
    )
    assert cell.values == () and cell.wanted == 5
    assert r"it \| broke" in FORMATS["md"](lay_out(grid))


def test_effective_shares_count_only_where_many_steps_recovered():
    metrics = {"steps": np.array([1000.0, 2000.0, 3000.0]), "recovery_rate": np.array([0.5, 0.1, 0.2])}
    assert enough_recovery(metrics).tolist() == [True, False, True]  # 500, 100 and 200 steps


@pytest.mark.parametrize("name", [a.name for a in ARTEFACTS.values() if a.kind == "figure"])
def test_figures_are_drawn_from_what_there_is(name, library, protocol, tmp_path):
    for found in (library, Library([])):
        paths = draw(gather(ARTEFACTS[name], found, protocol), tmp_path)
        assert [path.suffix for path in paths] == [".pdf", ".png"]
        assert all(path.stat().st_size > 5000 for path in paths)


def test_the_list_counts_runs_and_hours(tmp_path, capsys):
    write_campaign(tmp_path, ["ppo"], ["half_cheetah"], 2, UPDATES)
    assert main(["paper", "--json", "--steps", str(UPDATES * 8192), "--runs", str(tmp_path)]) == 0
    listing = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in listing["artefacts"]}
    assert (rows["main-results"]["done"], rows["main-results"]["runs"]) == (2, 105)
    assert listing["all"]["core_hours_left"] > rows["main-results"]["core_hours_left"] > 0
    assert listing["all"]["runs_left"] < sum(row["runs"] - row["done"] for row in listing["artefacts"])


def test_collected_results_render_like_the_runs(tmp_path, capsys):
    runs = tmp_path / "runs"
    write_campaign(runs, ["ppo", "safeexplorer"], ["half_cheetah"], 2, UPDATES)
    assert main(["collect", str(runs), "--out", str(tmp_path / "results")]) == 0
    assert len(list((tmp_path / "results").iterdir())) == 4
    capsys.readouterr()
    words = [
        "render",
        "main-results",
        "headline",
        "objective-gap",
        "--format",
        "md",
        "--figures",
        str(tmp_path),
    ]
    pages = []
    for source in (runs, tmp_path / "results"):
        assert main([*words, "--runs", str(source)]) == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1] and "(2/5" in pages[0]


def test_a_page_is_filled_with_the_tables_its_blocks_name_and_nothing_else_changes():
    page = "before\n<!-- render a --seeds 2 -->\nold\n<!-- end -->\nbetween\n<!-- render b -->\n<!-- end -->\nafter\n"
    filled = fill_page(page, lambda words: f"made of {words}\n")
    assert filled == (
        "before\n<!-- render a --seeds 2 -->\n\nmade of ['a', '--seeds', '2']\n\n<!-- end -->\nbetween\n"
        "<!-- render b -->\n\nmade of ['b']\n\n<!-- end -->\nafter\n"
    )
    assert fill_page(filled, lambda words: f"made of {words}\n") == filled
    with pytest.raises(ValueError, match="no block to fill"):
        fill_page("nothing here", lambda words: "")


@pytest.mark.parametrize("name", ["results.md", "sweeps.md"])
def test_pages_of_results_say_what_the_committed_files_say(name, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "safeexplorer.paper.drawing.draw", lambda grid, folder, kinds: [folder / f"{grid.artefact.name}.png"]
    )
    page, committed = tmp_path / name, ROOT / "docs" / name
    page.write_text(committed.read_text())
    assert main(["render", "--into", str(page), "--runs", str(ROOT / "results")]) == 0
    assert page.read_text() == committed.read_text()


def test_every_figure_of_a_page_is_there():
    for page in (ROOT / "docs").glob("*.md"):
        for path in re.findall(r"\]\((figures/[^)]+)\)", page.read_text()):
            assert (page.parent / path).is_file(), f"{page.name} shows {path}"


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize(
    "name", ["main-results", "objective-gap", "operational-recovery", "headline", "is-variance"]
)
def test_tables_fit_the_terminal_and_no_cell_is_broken(name, width, library, protocol, capsys):
    page = sheet(name, library, protocol)
    Console(width=width).print(*terminal(page, width))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    for row in page.rows:
        for text in (*row.ours, *(row.theirs or ())):
            assert text in out


def test_the_hint_repeats_what_was_asked_for(tmp_path, capsys, monkeypatch):
    launched = []
    monkeypatch.setattr("safeexplorer.commands.paper.run_jobs", lambda jobs, *_: launched.extend(jobs) or [])
    words = ["--seeds", "2", "--robot", "half_cheetah", "--smoke"]
    assert main(["reproduce", "curves", *words, "--runs", str(tmp_path)]) == 0
    hint = capsys.readouterr().err.splitlines()[-1]
    asked = f"safeexplorer render curves --robot half_cheetah --seeds 2 --smoke --runs {tmp_path}"
    assert hint == f"Look at it with: {asked}"
    assert {job.spec.settings.seed for job in launched} == {1, 2}


def test_runs_whose_results_are_at_hand_are_not_launched_again(tmp_path, capsys, monkeypatch):
    committed = ROOT / "results"
    words = ["--seeds", "3", "--robot", "half_cheetah", "--runs", str(tmp_path)]
    assert main(["reproduce", "main-results", *words, "--results", str(committed)]) == 0
    said = capsys.readouterr().err
    assert f"runs were finished before, in {committed}" in said and said.endswith(f"--runs {committed}\n")

    launched = []
    monkeypatch.setattr("safeexplorer.commands.paper.run_jobs", lambda jobs, *_: launched.extend(jobs) or [])
    monkeypatch.setattr("safeexplorer.commands.paper.replay_missing", lambda *_: None)
    # A result is enough only where it holds what the artefact reads.
    unread = tmp_path / "unread"
    unread.mkdir()
    for path in committed.glob("half_cheetah-safeexplorer-seed[12]-*.json"):
        known = json.loads(path.read_text()) | {"replay": None}
        (unread / path.name).write_text(json.dumps(known))
    assert main(["reproduce", "main-results", *words, "--results", str(unread)]) == 0
    main_seeds = {j.spec.settings.seed for j in launched if j.spec.settings.method == "safeexplorer"}
    assert main_seeds == {3}
    launched.clear()
    assert main(["reproduce", "operational-recovery", *words, "--results", str(unread)]) == 0
    assert ("safeexplorer", 1) in {(j.spec.settings.method, j.spec.settings.seed) for j in launched}
