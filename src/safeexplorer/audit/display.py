"""An audit as tables."""

from __future__ import annotations

from rich.table import Table

from safeexplorer.audit.findings import Audit
from safeexplorer.audit.measures import REEXIT_STEPS

MEANING = {
    "unmasked": "recovery actions scored as the policy's own",
    "relabelled": "the policy's unused proposals scored instead",
    "analytic": "masked, with the closed-form value at exits",
}


def tables(result: Audit) -> list[Table | str]:
    """For people."""
    gradients = [] if result.gradients is None else [gradient_table(result)]
    missing = [f"{what}: not measured; {why}" for what, why in result.missing.items()]
    if not result.suggestions:
        suggestions = "Nothing stands out: keep the settings."
    else:
        suggestions = Table("what was found", "setting", "because", title="Suggestions", show_lines=True)
        for suggestion in result.suggestions:
            suggestions.add_row(suggestion.rule, suggestion.setting, suggestion.reason)
    return [*result.notes, facts_table(result), *gradients, *missing, suggestions]


def facts_table(result: Audit) -> Table:
    """Who acted, how it ended, whether it repeats."""
    s, g, f = result.shares, result.segments, result.falls
    table = Table("measure", "value", title="Audit", show_header=False)
    table.add_row("steps", f"{s.steps:,} of {s.robots} robots")
    table.add_row("under recovery", f"{s.recovery_steps:,}, {s.recovery_rate:.1%}")
    table.add_row("episodes", f"{s.episodes:,} ended, {s.episodes_with_recovery:,} with recovery")
    table.add_row("recovery share per episode", spelled(s.episode_quantiles, "{:.1%}"))
    table.add_row("segments", f"{g.count:,}")
    table.add_row("steps per segment", spelled(g.length_quantiles, "{:g}"))
    table.add_row("came back", number(g.reentered, g.success, "of those and the fallen"))
    table.add_row("fell, time limit, still open", f"{g.fell:,}, {g.timed_out:,}, {g.open:,}")
    table.add_row(
        f"left again within {REEXIT_STEPS} steps", number(g.reexits, g.reexit_share, "of those back")
    )
    table.add_row("falls", f"{f.policy:,} under the policy, {f.recovery:,} under recovery")
    if result.region is not None:
        inside, outside = result.region.largest_policy, result.region.smallest_recovery
        table.add_row("largest D under the policy", "-" if inside is None else f"{inside:.4g}")
        table.add_row("smallest D under recovery", "-" if outside is None else f"{outside:.4g}")
    d = result.determinism
    table.add_row("determinism", f"{d.verdict} (check: {d.check}, {d.compared} compared)")
    if result.fit is not None:
        spread = [("policy", result.fit.policy), ("recovery", result.fit.recovery)]
        text = ", ".join(f"{who} {x:.3g}" for who, x in spread if x is not None)
        table.add_row("actions from the policy's mean", f"{text} (in sigma, rms)")
    if result.fit is not None and result.fit.log_prob_error is not None:
        table.add_row("log_prob, largest difference", f"{result.fit.log_prob_error:.3g}")
    if result.importance is not None:
        ratio = result.importance.log10_variance_ratio
        table.add_row("importance weights: ESS", f"{result.importance.ess_share:.3%} of recovery steps")
        table.add_row("importance weights: mean", f"10^{result.importance.log10_mean:.1f}")
        table.add_row("variance, log10 of ratio to masked", "-" if ratio is None else f"{ratio:.2f}")
    return table


def gradient_table(result: Audit) -> Table:
    """Each rule's policy gradient beside the masked one."""
    g = result.gradients
    table = Table("rule", "angle to masked", "norm / masked", "what it does", title="Policy gradient")
    table.caption = (
        f"at the parameters: {result.policy}; masked: {g.policy_steps:,} steps, norm {g.masked_norm:.3g}"
    )
    for name, row in g.compared.items():
        angle = "-" if row.angle is None else f"{row.angle:.1f} deg"
        ratio = "-" if row.norm_ratio is None else f"{row.norm_ratio:.3g}"
        table.add_row(name, angle, ratio, MEANING[name])
    halves = "-" if g.halves_angle is None else f"{g.halves_angle:.1f} deg"
    table.add_row("noise", halves, "", "masked, first half of the time against the second")
    return table


def spelled(quantiles: dict[str, float] | None, form: str) -> str:
    if quantiles is None:
        return "-"
    return ", ".join(f"{name} {form.format(quantiles[name])}" for name in ("min", "median", "q90", "max"))


def number(count: int, share: float | None, of_what: str) -> str:
    return f"{count:,}" if share is None else f"{count:,}, {share:.1%} {of_what}"
