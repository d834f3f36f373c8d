"""A bound on beta and on the objective gap from what mixed rollouts show: when the region is first left.

Until then the policy alone and the mixed policy are the same, so the step tau of the first exit has one distribution
under both, whatever the recovery does afterwards: E[gamma^tau] is measured while training.
"""

import numpy as np

from safeexplorer.acting.evidence import bernstein_bound
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.gap import (
    COUNT,
    EXACT,
    Case,
    leaking_region,
    random_cases,
    tipping_point,
    worst_ratio,
)

CLAIM = "observable bound on beta"
EPISODES, TRIALS, HORIZON = 200, 100, 200


def first_exit_discount(case: Case, policy: np.ndarray) -> float:
    """E[gamma^tau], tau the first step outside R: h = 1 outside, h(s) = gamma sum_s' P(s' | s) h(s') inside."""
    step = np.einsum("sa,sap->sp", policy, case.mdp.transition)
    inside = ~case.outside
    within = case.mdp.gamma * step[np.ix_(inside, inside)]
    leaving = case.mdp.gamma * step[np.ix_(inside, case.outside)].sum(axis=1)
    discount = np.ones(case.mdp.states)
    discount[inside] = np.linalg.solve(np.eye(inside.sum()) - within, leaving)
    return float(case.mdp.start @ discount)


def sampled_discounts(case: Case, rng: np.random.Generator) -> np.ndarray:
    """gamma^tau of episodes under the mixed policy, as training sees them; 0 where none left within the horizon."""
    step = np.cumsum(np.einsum("sa,sap->sp", case.mixed, case.mdp.transition), axis=1)
    state = np.full(EPISODES, int(case.mdp.start.argmax()))
    discount, settled = np.zeros(EPISODES), case.outside[state]
    discount[settled] = 1.0
    for t in range(1, HORIZON + 1):
        state = (rng.random((EPISODES, 1)) > step[state]).sum(axis=1)
        leaves = case.outside[state] & ~settled
        discount[leaves], settled = case.mdp.gamma**t, settled | leaves
    return discount


def first_exit_bounds(seed: int = 6) -> list[Check]:
    """beta <= E[gamma^tau] and |J - J_mix| <= 2 r_max E[gamma^tau] / (1 - gamma); both are attained."""
    cases = random_cases(seed)
    seen = [first_exit_discount(case, case.mixed) for case in cases]
    alike = max(abs(first_exit_discount(case, case.main) - x) for case, x in zip(cases, seen, strict=True))
    beta = worst_ratio([(case.beta, x) for case, x in zip(cases, seen, strict=True)])
    gap = worst_ratio([(abs(case.gap), gap_bound(case, x)) for case, x in zip(cases, seen, strict=True)])
    leaky, extreme = leaking_region(eta=0.1, gamma=0.9), tipping_point(gamma=0.9)
    attained = max(
        abs(leaky.beta - first_exit_discount(leaky, leaky.mixed)),
        abs(abs(extreme.gap) - gap_bound(extreme, first_exit_discount(extreme, extreme.mixed))),
    )
    share = f"|J - J_mix| / (2 r_max E[gamma^tau] / (1-gamma)), worst of {COUNT}"
    return [
        at_most(CLAIM, f"E[gamma^tau] alone - E[gamma^tau] mixed, worst of {COUNT}", alike, EXACT),
        at_most(CLAIM, f"beta / E[gamma^tau], worst of {COUNT} random processes", beta, 1.0 + EXACT),
        at_most(CLAIM, share, gap, 1.0 + EXACT),
        at_most(CLAIM, "both bounds less what they bound, where they are attained", attained, EXACT),
    ]


def gap_bound(case: Case, discount: float) -> float:
    """2 r_max E[gamma^tau] / (1 - gamma): from the first exit on, each step may differ by 2 r_max."""
    return 2.0 * case.mdp.r_max * discount / (1.0 - case.mdp.gamma)


def confidence(seed: int = 7) -> Check:
    """How often the bound from 200 episodes under the mixed policy holds beta: 95% of the time, or more."""
    rng, cases = np.random.default_rng(seed), random_cases(seed)[:TRIALS]
    held = [bernstein_bound(sampled_discounts(case, rng), 1.0) >= case.beta - EXACT for case in cases]
    statement = f"share of {TRIALS} bounds from {EPISODES} episodes that hold"
    return Check(CLAIM, statement, float(np.mean(held)), ">=", 0.95)


def first_exit_checks() -> list[Check]:
    """Everything about the bound that training reports."""
    return [*first_exit_bounds(), confidence()]
