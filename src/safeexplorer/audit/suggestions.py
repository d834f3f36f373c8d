"""From measurements to settings: one row per rule."""

from collections.abc import Callable
from typing import NamedTuple

from safeexplorer.audit.findings import Audit, Suggestion
from safeexplorer.audit.measures import REEXIT_STEPS

MOSTLY = 0.9  # share of steps above which the policy hardly acts
WEAK = 0.5  # share of recoveries that come back, below which the gate has little to imitate
CHATTER = 0.5  # share of re-entries that leave again at once
TURNED_ANGLE, BEYOND_NOISE = 30.0, 10.0  # degrees, and so many more than relabelling
COLLAPSED_ESS = 0.1
NOT_THE_POLICY = (0.8, 1.25)  # root mean square of standardised actions outside which another policy acted
ENOUGH_STEPS = 100  # to tell whose actions they are
RERUNS = 8  # re-rolled recoveries to average over


class Rule(NamedTuple):
    """When the audit looks so, this setting, for this reason."""

    name: str
    applies: Callable[[Audit], bool]
    option: str  # in words of the command line
    keyword: str  # in words of Python
    reason: str | Callable[[Audit], str]  # a text with the audit's numbers, as {a.falls.policy}


def turned(audit: Audit) -> bool:
    if audit.gradients is None or audit.shares.recovery_steps == 0:
        return False
    unmasked, relabelled = (audit.gradients.compared.get(rule) for rule in ("unmasked", "relabelled"))
    noise = 0.0 if relabelled is None else relabelled.angle or 0.0  # relabelling adds noise and no bias
    return unmasked.angle is not None and unmasked.angle > max(TURNED_ANGLE, noise + BEYOND_NOISE)


def turned_reason(audit: Audit) -> str:
    g = audit.gradients
    unmasked, relabelled = g.compared["unmasked"], g.compared.get("relabelled")
    text = f"recovery actions scored as the policy's turn its gradient by {unmasked.angle:.0f} degrees"
    if relabelled is not None and relabelled.angle is not None:
        text += f"; relabelling, which adds noise but no bias, by {relabelled.angle:.0f}"
    if g.halves_angle is not None:
        text += f"; the halves of this rollout differ by {g.halves_angle:.0f}"
    return text


def another_policy(audit: Audit) -> bool:
    if audit.fit is None or audit.gradients.policy_steps < ENOUGH_STEPS:
        return False
    low, high = NOT_THE_POLICY
    return not low <= audit.fit.policy <= high


RULES: tuple[Rule, ...] = (
    Rule(
        "recovery never acts, robots fall",
        lambda a: a.shares.recovery_steps == 0 and a.falls.policy > 0,
        "smaller --initial-radius and --max-radius",
        "a smaller radius of the region, from its start to its end",
        "0 of {a.shares.steps:,} steps under recovery but {a.falls.policy:,} falls: the region holds states from which "
        "robots fall",
    ),
    Rule(
        "recovery never acts",
        lambda a: a.shares.recovery_steps == 0 and a.falls.policy == 0,
        "--method ppo, or a smaller --initial-radius",
        "method='ppo', or a smaller radius of the region at its start",
        "0 of {a.shares.steps:,} steps under recovery: the update is plain PPO",
    ),
    Rule(
        "recovery acts almost always",
        lambda a: a.shares.recovery_rate > MOSTLY,
        "larger --initial-radius",
        "a larger radius of the region at its start",
        "the recovery acts on {a.shares.recovery_rate:.1%} of steps: {a.shares.policy_steps:,} of {a.shares.steps:,} "
        "steps are left to learn the task from",
    ),
    Rule(
        "recovery too weak",
        lambda a: a.segments.success is not None and a.segments.success < WEAK,
        "a stronger --recovery (`safeexplorer recovery grade`), or a smaller --max-radius",
        "a stronger recovery=..., or a smaller radius of the region at its end",
        "{a.segments.reentered:,} of {a.segments.decided:,} recoveries came back before a fall: the gate finds little "
        "to imitate",
    ),
    Rule(
        "recovery does not come back",
        lambda a: a.segments.timed_out > a.segments.decided,
        "another --recovery, or a larger --initial-radius",
        "another recovery=..., or a larger radius of the region at its start",
        "{a.segments.timed_out:,} of {a.segments.count:,} segments lasted until the time limit: robots stay up but "
        "stay outside",
    ),
    Rule(
        "falls inside the region",
        lambda a: a.shares.recovery_steps > 0 and a.falls.policy > a.falls.recovery,
        "smaller --max-radius",
        "a smaller radius of the region at its end",
        "{a.falls.policy:,} of {a.falls.total:,} falls came while the policy acted",
    ),
    Rule(
        "chatter at the boundary",
        lambda a: a.segments.reexit_share is not None and a.segments.reexit_share > CHATTER,
        "larger --initial-radius",
        "a larger radius of the region at its start",
        f"{{a.segments.reexits:,}} of {{a.segments.reentered:,}} re-entries left again within {REEXIT_STEPS} steps; a "
        "second, inner threshold is no remedy: the trigger would depend on the past, outside the theorem",
    ),
    Rule(
        "trigger is no threshold on D",
        lambda a: a.region is not None and a.region.overlap > 0,
        "a trigger on state and time alone",
        "a trigger on state and time alone",
        "{a.region.overlap:.1%} of recovery steps lie at a D up to which the policy acted too: either the radius moved "
        "while this was recorded, or the trigger looks at more than D; at the proposed action or the past it must not",
    ),
    Rule(
        "unmasked update turns the gradient",
        turned,
        "--method safeexplorer (or masked, analytic), not unmasked",
        "method='safeexplorer' (or 'masked', 'analytic'), not 'unmasked'",
        turned_reason,
    ),
    Rule(
        "importance weights collapse",
        lambda a: a.importance is not None and a.importance.ess_share < COLLAPSED_ESS,
        "the mask, not --method truncated_is",
        "the mask, not method='truncated_is'",
        "the weights of recovery steps are worth {a.importance.ess_share:.2%} of their number",
    ),
    Rule(
        "sampled recovery with a density",
        lambda a: a.determinism.verdict == "stochastic recovery" and a.density,
        f"--sampled-recovery --analytic-samples {RERUNS}",
        f"sampled_recovery=True, and on robots of the package analytic_samples={RERUNS}",
        "equal states give different recoveries, and their density is known: average the closed-form value",
    ),
    Rule(
        "stochastic recovery without a density",
        lambda a: a.determinism.verdict == "stochastic recovery" and not a.density,
        f"--analytic-samples {RERUNS}",
        f"on robots of the package analytic_samples={RERUNS}",
        "equal states give different recoveries: one of them is a noisy closed-form value",
    ),
    Rule(
        "stochastic world",
        lambda a: a.determinism.verdict == "stochastic world",
        f"--analytic-samples {RERUNS}",
        f"on robots of the package analytic_samples={RERUNS}",
        "equal states and equal actions end differently: one recovery is a noisy closed-form value",
    ),
    Rule(
        "another policy acted",
        another_policy,
        "--policy of the run that made this recording",
        "the parameters of the policy that made this recording",
        "the policy's steps lie {a.fit.policy:.2f} standard deviations from its mean (1 expected): the gradients are "
        "not those of the policy that acted, or its actions were stored clipped",
    ),
)


def suggest(audit: Audit, in_options: bool = False) -> tuple[Suggestion, ...]:
    """Every rule that applies, in the words of Python or of the command line."""
    found = []
    for rule in RULES:
        if rule.applies(audit):
            reason = rule.reason.format(a=audit) if isinstance(rule.reason, str) else rule.reason(audit)
            found.append(Suggestion(rule.name, rule.option if in_options else rule.keyword, reason))
    return tuple(found)
