"""The paper's claims, judged by runs."""

from __future__ import annotations

import pytest

from safeexplorer.paper import ARTEFACTS
from safeexplorer.paper.artefact import Protocol
from safeexplorer.paper.claims import verdict, verdicts
from safeexplorer.paper.grid import Library, gather
from safeexplorer.paper.measures import MEASURES
from safeexplorer.runs.results import Result
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import run_spec


def runs(method: str, *numbers: tuple[float, float]) -> list[Result]:
    """One run on HalfCheetah for each (final reward, falls)."""
    return [
        Result(
            "", run_spec(Settings(method=method, seed=seed)), "finished", 1,
            numbers={"final_reward": reward, "falls": falls},
        )
        for seed, (reward, falls) in enumerate(numbers, start=1)
    ]  # fmt: skip


def judged(*results: list[Result]) -> list[str]:
    library = Library([run for group in results for run in group])
    return verdicts(gather(ARTEFACTS["main-results"], library, Protocol(), ["half_cheetah"]))


@pytest.mark.parametrize(
    ("relation", "low", "high", "said"),
    [
        ("<", -3, -1, "holds"), ("<", -3, 1, "undecided"), ("<", 1, 3, "does not hold"),
        (">", 1, 3, "holds"), (">", -3, 1, "undecided"), (">", -3, -1, "does not hold"),
        ("=", -1, 1, "holds"), ("=", 1, 3, "does not hold"),
    ],
)  # fmt: skip
def test_the_side_of_the_interval_decides(relation, low, high, said):
    assert verdict(relation, low, high) == said


def test_falls_are_judged_on_their_logarithm():
    ours, theirs = (
        runs("safeexplorer", (1, 0), (2, 1), (3, 0)),
        runs("recovery_rl", (1, 51), (2, 417), (3, 3385)),
    )
    said = judged(ours, theirs)
    assert said[0] == (
        "HalfCheetah, falls of SafeExplorer below Recovery RL: holds (0 beside 1,284; 3 and 3 runs)"
    )


def test_one_run_decides_nothing():
    ours, theirs = runs("safeexplorer", (9, 0)), runs("ppo", (1, 9999), (2, 9999), (3, 9999))
    (said,) = judged(ours, theirs)
    assert said.startswith(
        "too few runs to judge: HalfCheetah, falls of SafeExplorer below PPO (no recovery)"
    )


@pytest.mark.parametrize("artefact", [a for a in ARTEFACTS.values() if a.claims], ids=lambda a: a.name)
def test_every_claim_names_arms_measures_and_robots_of_its_artefact_and_is_the_papers(artefact):
    labels = {arm.label for arm in artefact.arms}
    for claim in artefact.claims:
        assert claim.measure in MEASURES and claim.measure in artefact.measures
        assert {claim.arm, *(o for o in claim.others if isinstance(o, str))} <= labels
        for robot in claim.robots or artefact.robots:
            theirs = artefact.paper[claim.arm, robot, claim.measure][0]
            for other in claim.others:
                beside = artefact.paper[other, robot, claim.measure][0] if isinstance(other, str) else other
                assert {"<": theirs < beside, ">": theirs > beside, "=": abs(theirs - beside) < 20}[
                    claim.relation
                ]
