"""All that an audit found, as plain values."""

from dataclasses import asdict, dataclass, field
from typing import Any

from safeexplorer.audit.determinism import Determinism
from safeexplorer.audit.gradients import Fit, Gradients, Importance
from safeexplorer.audit.measures import Falls, Region, SegmentFacts, Shares


@dataclass(frozen=True)
class Suggestion:
    """A setting, and the measurement that speaks for it."""

    rule: str
    setting: str
    reason: str


@dataclass(frozen=True, repr=False)
class Audit:
    """What the recovery did and what the update would make of it; what could not be measured says why.

    Printed, it is the tables of `safeexplorer audit`.
    """

    policy: str  # whose parameters the gradients are taken at
    shares: Shares
    segments: SegmentFacts
    falls: Falls
    determinism: Determinism
    density: bool = False  # were the densities of the recovery's actions recorded
    region: Region | None = None
    fit: Fit | None = None
    gradients: Gradients | None = None
    importance: Importance | None = None
    missing: dict[str, str] = field(default_factory=dict)  # what was not measured -> why
    notes: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Nested plain values, ready for JSON."""
        values = asdict(self)
        values["determinism"]["verdict"] = self.determinism.verdict
        return values

    def __repr__(self) -> str:
        from safeexplorer.audit.display import text

        return text(self)
