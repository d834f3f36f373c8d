"""Every table and figure of the paper as one declarative entry."""

from __future__ import annotations

from safeexplorer.paper.artefact import Artefact
from safeexplorer.paper.figures import FIGURES
from safeexplorer.paper.sweeps import COMPUTE, CURRICULUM, FIXED_RADIUS, LAMBDA_SWEEP, NOISE, NORMALISATION
from safeexplorer.paper.tables import FEASIBILITY, MAIN_RESULTS, OBJECTIVE_GAP, OPERATIONAL, SOFT_VARIANTS

TABLES = (
    *(MAIN_RESULTS, OPERATIONAL, SOFT_VARIANTS),
    *(LAMBDA_SWEEP, FIXED_RADIUS, CURRICULUM, COMPUTE, NORMALISATION, NOISE),
    *(OBJECTIVE_GAP, FEASIBILITY),
)
ARTEFACTS: dict[str, Artefact] = {artefact.name: artefact for artefact in (*TABLES, *FIGURES)}
# Campaigns over several artefacts. The component ablation is 9 methods x 3 robots x 5 seeds = 135 runs.
GROUPS: dict[str, tuple[str, ...]] = {
    "ablation": ("soft-variants", "ablation-pareto", "recovery-rate"),
    "all": tuple(ARTEFACTS),
}


def get_artefacts(names: list[str]) -> list[Artefact]:
    """Artefacts by name; a group stands for its members."""
    for name in names:
        if name not in ARTEFACTS and name not in GROUPS:
            raise ValueError(f"no table or figure {name!r}; known: {', '.join([*ARTEFACTS, *GROUPS])}")
    wanted = [member for name in names for member in GROUPS.get(name, (name,))]
    return [ARTEFACTS[name] for name in dict.fromkeys(wanted)]
