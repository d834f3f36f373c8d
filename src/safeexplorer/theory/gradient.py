"""Theorem 1 and its corollaries, and the estimators side by side, by exact enumeration."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from safeexplorer.acting.interventions import Intervention, JumpStart, SafeRegion, StateShield
from safeexplorer.acting.schedules import constant
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.enumeration import (
    Trajectories,
    enumerate_trajectories,
    finite_difference,
    finite_horizon_return,
    importance_sampled,
    masked,
    mean_and_variance,
    relabelled,
    unmasked,
)
from safeexplorer.theory.mdp import (
    MDP,
    action_value,
    leaning_robot,
    random_mdp,
    random_policy,
    recovering_table,
    softmax,
)

HORIZON = 4
ROUNDING = 1e-8  # central differences in float64 are good to about 1e-10
CAP = 2.0
VISIBLE = 0.01  # a bias counts as shown from this share of the gradient's norm

STAND, WALK, RUN = 0, 1, 2
# A main policy that prefers to walk, and two recoveries: stand up at once, or with some hesitation.
THETA = np.array([[0.1, 0.4, 0.2], [0.0, 0.5, -0.3], [0.3, 0.6, 0.0], [-0.2, 0.2, 0.4], [0.0, 0.0, 0.0]])
RECOVERIES = {"deterministic": [1.0, 0.0, 0.0], "stochastic": [0.7, 0.25, 0.05]}
RECOVERIES = {name: np.tile(row, (5, 1)) for name, row in RECOVERIES.items()}
INTERVENTIONS: dict[str, tuple[str, Intervention]] = {
    "safe region": ("Corollary 2", SafeRegion(constant(1.0))),
    "jump start": ("Corollary 8", JumpStart(constant(2))),
    "state shield": ("Corollary 9", StateShield(lambda observation: observation[:, 0] == 1)),
}
Estimator = Callable[[Trajectories, np.ndarray], np.ndarray]


class Quality(NamedTuple):
    """How good an estimator of the gradient of J_mix is."""

    bias: float  # |E[estimate] - finite difference|
    variance: float  # trace of the covariance over trajectories
    gradient_norm: float


def quality(
    mdp: MDP, theta: np.ndarray, recovery: np.ndarray, recovering: np.ndarray, estimator: Estimator
) -> Quality:
    """Enumerate all trajectories and compare the estimator with the finite difference of J_mix."""
    paths = enumerate_trajectories(mdp, theta, recovery, recovering)
    mean, variance = mean_and_variance(paths, estimator(paths, softmax(theta)))
    truth = finite_difference(lambda t: finite_horizon_return(mdp, t, recovery, recovering), theta)
    return Quality(float(np.linalg.norm(mean - truth)), variance, float(np.linalg.norm(truth)))


def bias_check(claim: str, statement: str, found: Quality, unbiased: bool) -> Check:
    """Zero bias, or for a counterexample a bias that cannot be overlooked."""
    return Check(
        claim=claim,
        statement=statement if unbiased else f"{statement}, not zero",
        measured=found.bias,
        relation="<=" if unbiased else ">=",
        bound=ROUNDING if unbiased else VISIBLE * found.gradient_norm,
        numbers={"variance": found.variance, "gradient_norm": found.gradient_norm},
    )


def leaning(
    intervention: str = "safe region", recovery: str = "stochastic"
) -> tuple[MDP, np.ndarray, np.ndarray, np.ndarray]:
    """The leaning robot, its main policy's logits, its recovery, and when that takes over."""
    mdp = leaning_robot()
    return mdp, THETA, RECOVERIES[recovery], recovering_table(mdp, INTERVENTIONS[intervention][1], HORIZON)


def masked_gradient(intervention: str, recovery: str, estimator: Estimator = masked) -> Check:
    """Theorem 1 for one intervention and one recovery on the leaning robot."""
    found = quality(*leaning(intervention, recovery), estimator)
    statement = f"|E[masked] - finite difference of J_mix|, {intervention}, {recovery} recovery"
    return bias_check(f"Theorem 1, {INTERVENTIONS[intervention][0]}", statement, found, unbiased=True)


def masked_gradient_random(seed: int = 0, count: int = 20, estimator: Estimator = masked) -> Check:
    """Theorem 1 on random processes: the worst error over seeds, recoveries and interventions."""
    worst, rng = 0.0, np.random.default_rng(seed)
    shield = StateShield(lambda observation: observation[:, 0] % 2 == 1)
    for takes_over in (SafeRegion(constant(0.5)), JumpStart(constant(1)), shield):
        for trial in range(count):
            mdp = random_mdp(rng, states=4)
            theta, recovery = rng.normal(size=(4, 2)), random_policy(rng, mdp, deterministic=trial % 2 == 0)
            recovering = recovering_table(mdp, takes_over, horizon=3)
            worst = max(worst, quality(mdp, theta, recovery, recovering, estimator).bias)
    return at_most("Theorem 1", f"the same, worst of {3 * count} random processes", worst, ROUNDING)


def estimators_side_by_side() -> list[Check]:
    """Bias and variance of five estimators of the same gradient (safe region, stochastic recovery).

    Masked and relabelled are unbiased; the other three target something else.
    """

    def weighted(cap: float) -> Estimator:
        return lambda paths, main: importance_sampled(paths, main, RECOVERIES["stochastic"], cap)

    rows: list[tuple[str, str, Estimator, bool]] = [
        ("Theorem 1", "bias of masked", masked, True),
        ("Recovery RL port", "bias of relabelled with the proposal", relabelled, True),
        ("what Theorem 1 corrects", "bias of unmasked", unmasked, False),
        ("Remark 1", "bias of per-step IS", weighted(np.inf), False),
        ("Remark 1", f"bias of IS truncated at {CAP:g}", weighted(CAP), False),
    ]
    return [
        bias_check(claim, text, quality(*leaning(), rule), unbiased) for claim, text, rule, unbiased in rows
    ]


def relabelling_variance() -> Check:
    """What relabelling costs: Var[relabelled] - Var[masked] = E[r(tau)^2 sum over recovery steps |score|^2].

    The unused proposal is independent of everything that happens, so its score adds noise and no bias.
    """
    paths, main = enumerate_trajectories(*leaning()), softmax(THETA)
    _, low = mean_and_variance(paths, masked(paths, main))
    _, high = mean_and_variance(paths, relabelled(paths, main))
    information = 1.0 - (main**2).sum(axis=1)  # E_pi |grad log pi|^2 of a softmax
    added = (paths.recovering * information[paths.state]).sum(axis=1) * paths.total_reward**2
    predicted = float(paths.probability @ added)
    statement = "variance added by relabelling - E[r^2 sum over recovery steps of |score|^2]"
    numbers = {"masked_variance": low, "relabelled_variance": high, "added": predicted}
    return at_most("Recovery RL port", statement, abs(high - low - predicted), ROUNDING, **numbers)


def importance_bias() -> Check:
    """Remark 1: the mean of the IS term is the policy gradient the main policy would have outside M.

    sum_t gamma^t sum_{s not in M} Pr[s_t = s] sum_a pi(a|s) grad log pi(a|s) Q_mix,t(s, a), added up here
    by dynamic programming.
    """
    mdp, theta, recovery, recovering = leaning()
    paths, main = enumerate_trajectories(mdp, theta, recovery, recovering), softmax(theta)
    mean, _ = mean_and_variance(paths, importance_sampled(paths, main, recovery))
    bias = mean - mean_and_variance(paths, masked(paths, main))[0]
    predicted = off_policy_contribution(mdp, main, recovery, recovering[:, :, 0])
    claim = "Remark 1, eq. (is-decomp)"
    statement = "IS bias - policy gradient of the main policy at recovery states"
    return at_most(claim, statement, np.linalg.norm(bias - predicted), ROUNDING, bias=np.linalg.norm(bias))


def off_policy_contribution(
    mdp: MDP, main: np.ndarray, recovery: np.ndarray, outside: np.ndarray
) -> np.ndarray:
    """The predicted mean of the second sum of equation (is-decomp); outside [T, S]."""
    policies = np.where(outside[:, :, None], recovery, main)
    values = [np.zeros(mdp.states)]
    for policy in policies[::-1]:
        values.insert(0, (policy * action_value(mdp, values[0])).sum(axis=1))
    total, reached = np.zeros_like(main), mdp.start
    for t, policy in enumerate(policies):
        q = action_value(mdp, values[t + 1])
        advantage = q - (main * q).sum(axis=1, keepdims=True)
        here = mdp.gamma**t * reached * (outside[t] & ~mdp.terminal)
        total += here[:, None] * main * advantage  # pi(a) (Q(a) - mean Q): the softmax policy gradient
        reached = np.einsum("s,sa,sap->p", reached, policy, mdp.transition)
    return total


def action_triggered_shield() -> list[Check]:
    """The counterexample: a shield that looks at the proposed action is outside the theorem.

    Beyond leaning it overrides walking and running by standing. Masking the overridden steps is biased, for
    the chance of being overridden depends on theta. Scoring the proposal is right: to it, the shield is
    part of the world.
    """
    mdp, theta, recovery, recovering = leaning(recovery="deterministic")
    recovering[:], recovering[:, 1:, WALK:] = False, True
    rows = (("masked", masked, False), ("scoring the proposal", relabelled, True))
    found = {name: quality(mdp, theta, recovery, recovering, rule) for name, rule, _ in rows}
    claim, text = "outside Theorem 1", "action-triggered shield: bias of"
    return [bias_check(claim, f"{text} {name}", found[name], right) for name, _, right in rows]


def gradient_checks() -> list[Check]:
    """Everything about the policy gradient on exact processes."""
    return [
        *(masked_gradient(i, r) for i in INTERVENTIONS for r in RECOVERIES),
        masked_gradient_random(),
        *estimators_side_by_side(),
        relabelling_variance(),
        importance_bias(),
        *action_triggered_shield(),
    ]
