"""The audit of a rollout, and of a collector that makes one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.acting.networks import Params, normalised_observation
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.audit.determinism import (
    Determinism,
    ExitNotes,
    check_determinism,
    has_density,
    recorded_determinism,
)
from safeexplorer.audit.findings import Audit
from safeexplorer.audit.gradients import (
    compare_gradients,
    log_policy,
    measure_fit,
    measure_importance,
    variance_ratio,
)
from safeexplorer.audit.measures import measure_falls, measure_region, measure_segments, measure_shares
from safeexplorer.audit.suggestions import suggest
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.runs.policies import policy_sizes

FLAGS = ("terminated", "truncated", "recovering", "next_outside")


def audit(
    rollout: Rollout,
    params: Params | None = None,
    *,
    policy: str = "given",
    hyper: Hyperparameters | None = None,
    log_prob: np.ndarray | None = None,
    determinism: Determinism | None = None,
    notes: Sequence[str] = (),
    in_options: bool = False,
) -> Audit:
    """Measure a rollout. `params` are those that collected it; without them nothing is said about gradients.

    `distance`, `proposed` and `recovery_log_density` of the rollout may be None. `log_prob` [T, E] is the recorded
    log pi(a_t | s_t) of the stored actions, `policy` names the parameters for the reader. Suggestions name keywords,
    or the options of the command line.
    """
    hyper = hyper or Hyperparameters()
    rollout = rollout._replace(**{name: np.asarray(getattr(rollout, name), bool) for name in FLAGS})
    if rollout.recovery_log_density is None:
        rollout = rollout._replace(recovery_log_density=np.zeros(rollout.recovering.shape))
    missing = unmeasured(rollout, params, log_prob)
    fit = gradients = importance = None
    if params is not None:
        check_policy(params, rollout)
        params, read = as_read(params, rollout)
        fit, gradients = measure_fit(params, read, log_prob), compare_gradients(params, read, hyper)
        if gradients.masked_norm == 0:
            missing["angles"] = f"the masked gradient of {gradients.policy_steps} policy steps is zero"
    if "importance" not in missing:
        own, ratio = log_prob, np.nan
        if params is not None:
            own, ratio = log_policy(params, read), variance_ratio(params, read, hyper)
        importance = measure_importance(rollout, own, ratio)
    findings = Audit(
        policy="none" if params is None else policy,
        shares=measure_shares(rollout),
        segments=measure_segments(rollout),
        falls=measure_falls(rollout),
        determinism=determinism or recorded_determinism(rollout),
        density=has_density(rollout),
        region=None if rollout.distance is None else measure_region(rollout),
        fit=fit,
        gradients=gradients,
        importance=importance,
        missing=missing,
        notes=tuple(notes),
    )
    return replace(findings, suggestions=suggest(findings, in_options))


def check_policy(params: Params, rollout: Rollout) -> None:
    """Could this policy have acted in the rollout?"""
    expected, got = (rollout.observation.shape[-1], rollout.action.shape[-1]), policy_sizes(params)
    if got != expected:
        raise ValueError(
            f"the policy maps {got[0]} observations to {got[1]} actions; the rollout has {expected}"
        )


def as_read(params: Params, rollout: Rollout) -> tuple[Params, Rollout]:
    """Networks, and the rollout as they read it: a policy that normalises observations carries its normaliser."""
    if "normaliser" not in params:
        return params, rollout
    rows = (rollout.observation, rollout.next_observation)
    observation, following = (normalised_observation(params["normaliser"], row) for row in rows)
    networks = {name: part for name, part in params.items() if name != "normaliser"}
    return networks, rollout._replace(observation=observation, next_observation=following)


def unmeasured(rollout: Rollout, params: Params | None, log_prob: np.ndarray | None) -> dict[str, str]:
    """What cannot be measured, and why."""
    missing = {}
    if params is None:
        missing["gradients"] = "they are taken at the policy that acted, and no policy was given"
    elif rollout.proposed is None:
        missing["relabelled"] = "the policy's own proposals at recovery steps were not recorded"
    if not rollout.recovering.any():
        missing["importance"] = "the recovery never acted"
    elif not has_density(rollout):
        missing["importance"] = "no density of the recovery's actions is known: they were not drawn from one"
    elif params is None and log_prob is None:
        missing["importance"] = "log pi of the recovery's actions is needed: the policy, or log_prob"
    return missing


def audit_collector(
    collector: Collector, params: Params, progress: float, rng: np.random.Generator, **how: Any
) -> Audit:
    """Collect one rollout and audit it; the recovery is replayed from some of its exits, bit for bit.

    The collector must have been reset; it is left where the rollout ended. `how` is as for `audit`.
    """
    behind = collector.observer
    collector.observer = seen = ExitNotes(collector, np.random.default_rng(0), behind)
    try:
        rollout = collector.collect(params, progress, rng)
    finally:
        collector.observer = behind
    checked = check_determinism(collector, seen.exits, np.random.default_rng(1))
    if not isinstance(collector.mixed.intervention, SafeRegion):
        rollout = rollout._replace(distance=None)
    return audit(rollout, params, determinism=checked, **how)
