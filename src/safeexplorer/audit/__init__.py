"""How a recovery behaves in a rollout, and what a learner would make of it."""

from safeexplorer.audit.auditing import audit, audit_collector
from safeexplorer.audit.findings import Audit, Suggestion
from safeexplorer.audit.recordings import Recording, read_recording

__all__ = ["Audit", "Recording", "Suggestion", "audit", "audit_collector", "read_recording"]
