"""How far the trained return J_mix can be from the deployed return J, on random processes."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.mdp import (
    MDP,
    action_value,
    expected_return,
    mixed_policy,
    outside_region,
    random_mdp,
    random_policy,
    softmax,
    training_reward,
    value,
    visitation,
)

COUNT = 300
EXACT = 1e-10  # linear solves of a few states, gamma up to 0.97
WORST = f"worst of {COUNT} random processes"


class Case(NamedTuple):
    """A process, its two policies and the region's complement."""

    mdp: MDP
    main: np.ndarray  # [S, A]
    mixed: np.ndarray  # [S, A]
    outside: np.ndarray  # [S] bool

    @property
    def gap(self) -> float:
        """J - J_mix."""
        return expected_return(self.mdp, self.main) - expected_return(self.mdp, self.mixed)

    @property
    def beta(self) -> float:
        """The out-of-region rate of the main policy alone."""
        return float(visitation(self.mdp, self.main)[self.outside].sum())

    @property
    def slack(self) -> float:
        """eta: the largest one-step chance of leaving R, over states of R that the main policy reaches."""
        leaves = np.einsum("sa,sap->sp", self.main, self.mdp.transition)[:, self.outside].sum(axis=1)
        reached = visitation(self.mdp, self.main) > 1e-14
        return float(leaves[~self.outside & reached].max())


def random_case(rng: np.random.Generator, radius: float | None = None) -> Case:
    """A random process with a random softmax policy, recovery and radius; episodes start inside R."""
    mdp = random_mdp(rng, states=6, actions=3)
    main = softmax(rng.normal(scale=2.0, size=(6, 3)))
    recovery = random_policy(rng, mdp, deterministic=bool(rng.integers(2)))
    outside = outside_region(mdp, rng.uniform(0.0, 1.2) if radius is None else radius)
    return Case(mdp, main, mixed_policy(main, recovery, outside), outside)


def random_cases(seed: int) -> list[Case]:
    """`COUNT` of them."""
    rng = np.random.default_rng(seed)
    return [random_case(rng) for _ in range(COUNT)]


def lemma_sides(case: Case) -> tuple[float, float, float]:
    """Equation (pdl): J - J_mix, the expected mixed advantage of the main policy, its share inside R."""
    mdp, main = case.mdp, case.main
    v_mix = value(mdp, case.mixed)
    advantage = action_value(mdp, v_mix) - v_mix[:, None]
    per_state = visitation(mdp, main) * (main * advantage).sum(axis=1) / (1 - mdp.gamma)
    return case.gap, float(per_state.sum()), float(np.abs(per_state[~case.outside]).sum())


def performance_difference(seed: int = 1) -> list[Check]:
    """Equation (pdl) holds, and states inside R contribute nothing to it."""
    gaps, lemmas, inside = np.array([lemma_sides(case) for case in random_cases(seed)]).T
    claim, error, largest = "eq. (pdl)", np.abs(gaps - lemmas).max(), np.abs(gaps).max()
    agree = "contribution of the states inside R, where both policies agree"
    return [
        at_most(claim, f"|J - J_mix - E[A_mix]/(1-gamma)|, {WORST}", error, EXACT, largest_gap=largest),
        at_most(claim, agree, inside.max(), EXACT),
    ]


def gap_bound(case: Case) -> float:
    """Theorem 4 (objective gap), right-hand side: 2 r_max beta / (1 - gamma)^2."""
    return 2 * case.mdp.r_max * case.beta / (1 - case.mdp.gamma) ** 2


def worst_ratio(pairs: list[tuple[float, float]]) -> float:
    """max of left / right over inequalities left <= right; a violated 0 <= right counts as infinite."""
    return max(left / right if right > 0 else (0.0 if left <= EXACT else np.inf) for left, right in pairs)


def objective_gap(seed: int = 2) -> list[Check]:
    """Theorem 4 on random processes, and on one that attains the bound: no smaller constant would do."""
    cases, extreme = random_cases(seed), tipping_point(gamma=0.9)
    claim, ratio = "Theorem 4, eq. (convergence)", "|J - J_mix| / (2 r_max beta / (1-gamma)^2)"
    worst = worst_ratio([(abs(case.gap), gap_bound(case)) for case in cases])
    useful, largest = sum(c.beta < 1 - c.mdp.gamma for c in cases), max(abs(case.gap) for case in cases)
    attained = abs(1.0 - abs(extreme.gap) / gap_bound(extreme))
    slip = f"1 - {ratio} where one slip decides everything: attained"
    return [
        at_most(claim, f"{ratio}, {WORST}", worst, 1.0, non_vacuous=useful, largest_gap=largest),
        at_most(claim, slip, attained, EXACT, gap=extreme.gap, beta=extreme.beta),
    ]


def tipping_point(gamma: float) -> Case:
    """States start, edge, good, bad. The main policy slips from the edge into losing 1 for ever, the recovery
    would win 1 for ever: J - J_mix = -2 gamma / (1 - gamma), and beta = (1 - gamma) gamma."""
    slip, rescue = 0, 1
    transition, reward = np.zeros((4, 2, 4)), np.zeros((4, 2, 4))
    transition[0, :, 1] = transition[1, slip, 3] = transition[1, rescue, 2] = 1.0
    transition[2, :, 2] = transition[3, :, 3] = 1.0
    reward[1, slip] = reward[3] = -1.0
    reward[1, rescue] = reward[2] = 1.0
    mdp = MDP(transition, reward, np.eye(4)[0], gamma, np.eye(4)[1], np.zeros(4, bool))
    main, recovery = np.tile([1.0, 0.0], (4, 1)), np.tile([0.0, 1.0], (4, 1))
    outside = outside_region(mdp, 0.5)
    return Case(mdp, main, mixed_policy(main, recovery, outside), outside)


def beta_bounds(eta: float, gamma: float) -> tuple[float, float, float]:
    """eta gamma / (1 - gamma (1 - eta)) <= eta gamma / (1 - gamma) <= eta / (1 - gamma)."""
    return eta * gamma / (1 - gamma * (1 - eta)), eta * gamma / (1 - gamma), eta / (1 - gamma)


def invariance_slack(seed: int = 3) -> list[Check]:
    """Assumption 2 bounds beta, and the tightest bound is attained by a region that leaks evenly."""
    cases = random_cases(seed)
    pairs = [(case.beta, beta_bounds(case.slack, case.mdp.gamma)[0]) for case in cases]
    leaky = leaking_region(eta=0.1, gamma=0.9)
    attained = abs(leaky.beta - beta_bounds(0.1, 0.9)[0])
    claim, ratio = "Assumption 2, beta bound", f"beta / (eta gamma / (1-gamma(1-eta))), {WORST}"
    leaks = "beta - its bound where R leaks eta = 0.1 everywhere and nothing returns"
    return [
        at_most(claim, ratio, worst_ratio(pairs), 1.0 + EXACT),
        at_most(claim, leaks, attained, EXACT, beta=leaky.beta, eta=leaky.slack),
    ]


def leaking_region(eta: float, gamma: float) -> Case:
    """Two states: inside, left with probability eta at every step, and outside, never left."""
    transition = np.array([[[1 - eta, eta]], [[0.0, 1.0]]])
    mdp = MDP(transition, np.ones_like(transition), np.eye(2)[0], gamma, np.eye(2)[1], np.zeros(2, bool))
    only = np.ones((2, 1))
    return Case(mdp, only, only, outside_region(mdp, 0.5))


def fixed_point(seed: int = 4) -> list[Check]:
    """Corollary 5. (R-A) If R covers what is reachable, J_mix = J. (R-B) Else the slack bounds the gap."""
    rng = np.random.default_rng(seed)
    everything = max(abs(random_case(rng, radius=np.inf).gap) for _ in range(COUNT))
    reachable = max(abs(unreachable_outside(rng).gap) for _ in range(COUNT))
    cases = random_cases(seed)
    ratio = worst_ratio([(abs(c.gap), 2 * c.mdp.r_max * c.slack / (1 - c.mdp.gamma) ** 3) for c in cases])
    slack = f"|J - J_mix| / (2 r_max eta / (1-gamma)^3), worst of {COUNT}"
    return [
        at_most("Corollary 5 (R-A)", "|J - J_mix| with R = everything, exactly", everything, 0.0),
        at_most("Corollary 5 (R-A)", "|J - J_mix| with R = every reachable state", reachable, EXACT),
        at_most("Corollary 5 (R-B)", slack, ratio, 1.0),
    ]


def unreachable_outside(rng: np.random.Generator) -> Case:
    """A random case in which no action leads out of R, though there are states outside."""
    case = random_case(rng, radius=0.5)
    transition = case.mdp.transition.copy()
    inside = ~case.outside
    transition[inside] = np.where(case.outside, 0.0, transition[inside])
    transition[inside, :, 0] += 1.0 - transition[inside].sum(axis=-1)
    return case._replace(mdp=replace(case.mdp, transition=transition))


def reward_gap(seed: int = 5) -> Check:
    """The footnote: under the main policy the reward conventions differ by (r_max + |r_term|) beta / (1 - gamma) at
    most."""
    rng, pairs = np.random.default_rng(seed), []
    for _ in range(COUNT):
        case, r_term = random_case(rng), rng.uniform(-5.0, 1.0)
        learnt = expected_return(training_reward(case.mdp, case.outside, r_term), case.main)
        gap = abs(learnt - expected_return(case.mdp, case.main))
        pairs.append((gap, (case.mdp.r_max + abs(r_term)) * case.beta / (1 - case.mdp.gamma)))
    ratio = f"|J task - J learning| / ((r_max + |r_term|) beta / (1-gamma)), worst of {COUNT}"
    return at_most("train-to-deploy footnote", ratio, worst_ratio(pairs), 1.0)


def gap_checks() -> list[Check]:
    """Everything about J against J_mix."""
    return [*performance_difference(), *objective_gap(), *invariance_slack(), *fixed_point(), reward_gap()]
