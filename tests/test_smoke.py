"""Every table and figure of the paper: launched with --smoke, then rendered."""

from __future__ import annotations

import json

import pytest

from safeexplorer.cli import main
from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import Protocol
from safeexplorer.recovery import load_recovery
from safeexplorer.robots import get_robot
from safeexplorer.runs.results import load_results


def has_density(robot: str) -> bool:
    return load_recovery("default", get_robot(robot)).has_density


@pytest.mark.slow
@pytest.mark.timeout(1200)  # three dozen runs in processes of their own
def test_every_artefact_launches_and_renders(tmp_path, capsys):
    """On HalfCheetah, and on Ant what the paper shows on Ant alone; artefacts share the runs they have in common."""
    runs, figures = tmp_path / "runs", tmp_path / "figures"
    shared = ["--smoke", "--runs", str(runs)]
    everything = [name for name, artefact in ARTEFACTS.items() if "half_cheetah" in artefact.robots]
    sampled = {
        s.key for s in ARTEFACTS["is-training"].specs(Protocol(seeds=1, smoke=True), ("half_cheetah",))
    }

    code = main(["reproduce", *everything, "--robot", "half_cheetah", "--workers", "2", *shared])
    failed = {r.spec.key for r in load_results([runs]) if r.status == "failed"}
    # A recovery without a density cannot be sampled: those runs fail, and the tables say so.
    assert failed == (set() if has_density("half_cheetah") else sampled)
    assert code == (1 if failed else 0)
    assert main(["reproduce", "curriculum-shape", "--robot", "ant", "--workers", "2", *shared]) == 0

    capsys.readouterr()
    assert main(["render", *ARTEFACTS, "--format", "json", "--figures", str(figures), *shared]) == 0
    text, decoder, place, pages = capsys.readouterr().out, json.JSONDecoder(), 0, {}
    while place < len(text.rstrip()):
        page, place = decoder.raw_decode(text, place)
        pages[page["artefact"]] = page
        place += 1
    assert set(pages) == set(ARTEFACTS)
    for name, artefact in ARTEFACTS.items():
        robot = "half_cheetah" if name in everything else "ant"
        cells = [c for c in pages[name]["cells"] if c["robot"] == robot]
        notes = " ".join(pages[name]["notes"])
        if failed and artefact.name in ("is-variance", "is-training"):
            assert "no density" in notes
        else:
            assert all(c["finished"] == c["wanted"] == 1 for c in cells), name
        if artefact.kind == "figure":
            assert (figures / f"{name}.png").stat().st_size > 5000
