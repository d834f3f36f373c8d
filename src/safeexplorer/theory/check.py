"""The record that every check returns: what the paper claims, what was measured, and whether it holds."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Check:
    """One claim of the paper beside a number computed for it."""

    claim: str  # where the paper says it, e.g. "Theorem 1"
    statement: str  # what is compared, in one line
    measured: float
    relation: Literal["<=", ">="]
    bound: float
    numbers: dict[str, float] = field(default_factory=dict)  # what else was computed on the way

    @property
    def passed(self) -> bool:
        """`measured relation bound`; a NaN never passes."""
        holds = self.measured <= self.bound if self.relation == "<=" else self.measured >= self.bound
        return bool(holds)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, which knows no NaN: a measurement that failed is null."""
        measured = float(self.measured) if math.isfinite(self.measured) else None
        return asdict(self) | {"measured": measured, "passed": self.passed}


def at_most(claim: str, statement: str, measured: float, bound: float, **numbers: float) -> Check:
    """The usual check: an error, or a ratio to what the paper allows."""
    return Check(claim, statement, measured, "<=", bound, {name: float(x) for name, x in numbers.items()})
