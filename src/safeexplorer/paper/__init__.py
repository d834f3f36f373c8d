"""Every table and figure of the paper as one declarative entry."""

from safeexplorer.paper.artefact import ARTEFACTS, GROUPS, get_artefacts

__all__ = ["ARTEFACTS", "GROUPS", "get_artefacts"]
