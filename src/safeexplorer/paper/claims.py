"""What the paper claims, judged by the runs that exist.

A claim holds if the 95% interval of the difference lies on its side, and is undecided if the interval has both signs.
Counts are compared as log(1 + count): falls of one method spread over orders of magnitude.
"""

import numpy as np

from safeexplorer.paper.artefact import ROBOT_LABELS, Claim
from safeexplorer.paper.grid import Grid
from safeexplorer.paper.measures import MEASURES
from safeexplorer.paper.statistics import FEWEST, difference

RELATIONS = {"<": "below", ">": "above", "=": "equal to"}
COUNTS = ("falls", "exits")


def verdicts(grid: Grid) -> list[str]:
    """One sentence per claim and robot, and one for all that have too few runs."""
    judged, open_ones = [], []
    for claim in grid.artefact.claims:
        for robot in (r for r in claim.robots or grid.artefact.robots if r in grid.robots):
            name = f"{ROBOT_LABELS[robot]}, {MEASURES[claim.measure].heading} of {claim.arm}"
            found = {other: outcome(grid, claim, robot, other) for other in claim.others}
            words = [f"{RELATIONS[claim.relation]} {other}: {text}" for other, text in found.items() if text]
            judged += [f"{name} {'; '.join(words)}"] if words else []
            missing = [str(other) for other, text in found.items() if not text]
            open_ones += [f"{name} {RELATIONS[claim.relation]} {', '.join(missing)}"] if missing else []
    return judged + ([f"too few runs to judge: {'; '.join(open_ones)}"] if open_ones else [])


def outcome(grid: Grid, claim: Claim, robot: str, other: str | float) -> str | None:
    """The verdict on one comparison and what it rests on; None below three runs."""
    sides = [grid.cell(claim.arm, robot, claim.measure).values]
    sides.append(grid.cell(other, robot, claim.measure).values if isinstance(other, str) else (other,))
    runs = [len(side) for side in sides[: 1 + isinstance(other, str)]]
    if min(runs) < FEWEST:
        return None
    counted = claim.measure in COUNTS
    point, low, high = difference(*(np.log1p(side) if counted else side for side in sides))
    form = MEASURES[claim.measure].form
    seen = f"difference {form.format(point)} [{form.format(low)}, {form.format(high)}]"
    if counted:
        seen = " beside ".join(form.format(np.mean(side)) for side in sides)
    return f"{verdict(claim.relation, low, high)} ({seen}; {' and '.join(map(str, runs))} runs)"


def verdict(relation: str, low: float, high: float) -> str:
    """From the interval of the difference."""
    if relation == "=":
        return "holds" if low <= 0 <= high else "does not hold"
    least, most = (low, high) if relation == ">" else (-high, -low)
    return "holds" if least > 0 else "does not hold" if most < 0 else "undecided"
