"""An audit as tables."""

import io

from rich.console import Console
from rich.table import Table

from safeexplorer.audit.findings import Audit
from safeexplorer.audit.measures import REEXIT_STEPS
from safeexplorer.files.console import PlainConsole

MEANING = {
    "unmasked": "recovery actions scored as the policy's own",
    "relabelled": "the policy's unused proposals scored instead",
    "analytic": "masked, with the closed-form value at exits",
}


def text(result: Audit) -> str:
    """As wide as the terminal."""
    console = PlainConsole(file=io.StringIO(), width=Console().width)
    for each in tables(result):
        console.print(each, soft_wrap=isinstance(each, str))
    return console.file.getvalue().rstrip("\n")


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
    s, g, f, d, fit = result.shares, result.segments, result.falls, result.determinism, result.fit
    rows = {
        "steps": f"{s.steps:,} of {s.robots} robots",
        "under recovery": f"{s.recovery_steps:,}, {s.recovery_rate:.1%}",
        "episodes": f"{s.episodes:,} ended, {s.episodes_with_recovery:,} with recovery",
        "recovery share per episode": spelled(s.episode_quantiles, "{:.1%}"),
        "segments": f"{g.count:,}",
        "steps per segment": spelled(g.length_quantiles, "{:g}"),
        "came back": number(g.reentered, g.success, "of those and the fallen"),
        "fell, time limit, still open": f"{g.fell:,}, {g.timed_out:,}, {g.open:,}",
        f"left again within {REEXIT_STEPS} steps": number(g.reexits, g.reexit_share, "of those back"),
        "falls": f"{f.policy:,} under the policy, {f.recovery:,} under recovery",
    }
    if result.region is not None:
        rows["largest D under the policy"] = known(result.region.largest_policy, ".4g")
        rows["smallest D under recovery"] = known(result.region.smallest_recovery, ".4g")
    rows["determinism"] = f"{d.verdict} (check: {d.check}, {d.compared} compared)"
    if fit is not None:
        spread = [f"{who} {x:.3g}" for who in ("policy", "recovery") if (x := getattr(fit, who)) is not None]
        rows["actions from the policy's mean"] = f"{', '.join(spread)} (in sigma, rms)"
    if fit is not None and fit.log_prob_error is not None:
        rows["log_prob, largest difference"] = f"{fit.log_prob_error:.3g}"
    if result.importance is not None:
        rows["importance weights: ESS"] = f"{result.importance.ess_share:.3%} of recovery steps"
        rows["importance weights: mean"] = f"10^{result.importance.log10_mean:.1f}"
        rows["variance, log10 of ratio to masked"] = known(result.importance.log10_variance_ratio, ".2f")
    table = Table("measure", "value", title="Audit", show_header=False)
    for row in rows.items():
        table.add_row(*row)
    return table


def gradient_table(result: Audit) -> Table:
    """Each rule's policy gradient beside the masked one."""
    g = result.gradients
    steps = f"masked: {g.policy_steps:,} steps, norm {g.masked_norm:.3g}"
    columns = ("rule", "angle to masked", "norm / masked", "what it does")
    table = Table(*columns, title="Policy gradient", caption=f"at the parameters: {result.policy}; {steps}")
    for name, row in g.compared.items():
        table.add_row(name, known(row.angle, ".1f", " deg"), known(row.norm_ratio, ".3g"), MEANING[name])
    noise = "masked, first half of the time against the second"
    table.add_row("noise", known(g.halves_angle, ".1f", " deg"), "", noise)
    return table


def known(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def spelled(quantiles: dict[str, float] | None, form: str) -> str:
    shown = ("min", "median", "q90", "max")
    return ", ".join(f"{name} {form.format(quantiles[name])}" for name in shown) if quantiles else "-"


def number(count: int, share: float | None, of_what: str) -> str:
    return f"{count:,}" if share is None else f"{count:,}, {share:.1%} {of_what}"
