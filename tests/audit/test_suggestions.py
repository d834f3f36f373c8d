"""Every rule finds its planted fault, alone, and nothing where nothing is wrong."""

from dataclasses import replace

import pytest

from safeexplorer.audit.determinism import Determinism
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.gradients import Comparison, Fit, Gradients, Importance
from safeexplorer.audit.measures import Falls, Region, SegmentFacts, Shares
from safeexplorer.audit.suggestions import RULES, suggest

HEALTHY = Audit(
    policy="given",
    shares=Shares(1000, 4, 200, 0.2, 4, 4, {}),
    segments=SegmentFacts(20, {}, 18, 1, 0, 1, 18 / 19, 2, 1 / 9),
    falls=Falls(policy=0, recovery=1),
    determinism=Determinism("replay", 16, True, True),
    region=Region(0.3, 0.31, 0.0),
    fit=Fit(1.0, 3.0, None),
    gradients=Gradients(
        800, 0.1, 80.0, {"unmasked": Comparison(20.0, 1.0), "relabelled": Comparison(15.0, 1.0)}
    ),
    importance=Importance(0.5, 0.0, 1.0),
)


def but(section, **changes):
    """The healthy audit with another section."""
    return {section: replace(getattr(HEALTHY, section), **changes)}


NOBODY = but("shares", recovery_steps=0, recovery_rate=0.0)
DRAWN = but("determinism", actions_equal=False)
UNMASKED = {"unmasked": Comparison(60.0, 5.0)}
CASES = {
    "recovery never acts, robots fall": NOBODY | but("falls", policy=3),
    "recovery never acts": NOBODY,
    "recovery acts almost always": but("shares", recovery_rate=0.95, recovery_steps=950),
    "recovery too weak": but("segments", success=0.4),
    "recovery does not come back": but("segments", timed_out=20),
    "falls inside the region": but("falls", policy=2),
    "chatter at the boundary": but("segments", reexits=12, reexit_share=12 / 18),
    "trigger is no threshold on D": but("region", overlap=0.1),
    "unmasked update turns the gradient": but("gradients", compared=UNMASKED),
    "importance weights collapse": but("importance", ess_share=0.01),
    "sampled recovery with a density": DRAWN | {"density": True},
    "stochastic recovery without a density": DRAWN,
    "stochastic world": but("determinism", trajectories_equal=False),
    "another policy acted": but("fit", policy=2.5),
}


def test_every_rule_has_a_case_and_nothing_is_suggested_without_a_reason():
    assert [rule.name for rule in RULES] == list(CASES)
    assert suggest(HEALTHY) == ()


@pytest.mark.parametrize("rule", CASES)
def test_a_planted_finding_is_found_alone(rule):
    (suggestion,) = suggest(replace(HEALTHY, **CASES[rule]))
    assert suggestion.rule == rule and suggestion.setting and suggestion.reason


def test_an_angle_that_relabelling_has_too_is_no_finding():
    noisy = UNMASKED | {"relabelled": Comparison(55.0, 1.0)}
    assert suggest(replace(HEALTHY, **but("gradients", compared=noisy))) == ()
