"""CPO's parts against explicit matrices and a general solver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from safeexplorer.learning.constrained import cpo
from safeexplorer.learning.constrained.cpo import (
    ALL,
    NOTHING,
    SOME,
    SOME_BUT_NOT_HERE,
    Gradients,
    conjugate_gradient,
    fisher_product,
    line_search,
    mean_kl,
    policy_of,
    surrogates,
    trust_region_step,
)
from safeexplorer.learning.constrained.estimates import Steps
from safeexplorer.learning.networks import gaussian_log_prob, init_uniform, mlp


def small_policy():
    rng = np.random.default_rng(0)
    return {"actor": init_uniform(rng, [3, 4, 2]), "log_std": np.array([-0.3, 0.4], np.float32)}


OBSERVATION = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)


def explicit_fisher(policy) -> np.ndarray:
    """E[score score'], the expectation over actions in closed form: J' diag(1 / sigma^2) J + 2 on log sigma.

    Averaged over steps, and over the two action dimensions as `mean_kl` is.
    """
    flat, unflatten = ravel_pytree(policy)
    sigma = np.exp(np.array(policy["log_std"]))
    total = np.zeros((len(flat), len(flat)))
    for s in OBSERVATION:
        mean = np.array(jax.jacobian(lambda v, s=s: mlp(unflatten(v)["actor"], s))(flat))
        spread = np.array(jax.jacobian(lambda v: unflatten(v)["log_std"])(flat))
        total += mean.T @ np.diag(1 / sigma**2) @ mean + 2.0 * spread.T @ spread
    return total / (len(OBSERVATION) * 2)


def test_fisher_products_equal_the_explicit_matrix():
    policy = small_policy()
    fisher, product = explicit_fisher(policy), fisher_product(policy, OBSERVATION)
    columns = np.array([product(column) for column in np.eye(len(fisher), dtype=np.float32)])
    np.testing.assert_allclose(columns, fisher, atol=1e-6)


def test_the_explicit_matrix_is_the_mean_of_sampled_scores():
    policy = small_policy()
    flat, unflatten = ravel_pytree(policy)
    rng = np.random.default_rng(2)
    mean, log_std = (np.array(x) for x in policy_of(policy, OBSERVATION))
    action = mean + np.exp(log_std) * rng.normal(size=(20_000, *mean.shape))

    def log_prob(v, action):
        mean, log_std = policy_of(unflatten(v), OBSERVATION)
        return gaussian_log_prob(action, mean, log_std)

    score = np.array(jax.vmap(lambda a: jax.jacobian(log_prob)(flat, a))(jnp.float32(action)))
    score = score.reshape(-1, len(flat))
    sampled = score.T @ score / len(score) / 2
    np.testing.assert_allclose(sampled, explicit_fisher(policy), atol=0.05)


def test_the_fisher_matrix_is_the_curvature_of_the_kl():
    policy = small_policy()
    flat, unflatten = ravel_pytree(policy)
    old = policy_of(policy, OBSERVATION)
    curvature = jax.hessian(lambda v: mean_kl(old, unflatten(v), OBSERVATION))(flat)
    np.testing.assert_allclose(curvature, explicit_fisher(policy), atol=1e-5)


def test_conjugate_gradient_solves_a_linear_system():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(12, 12))
    matrix, b = root @ root.T + np.eye(12), rng.normal(size=12)
    found = conjugate_gradient(lambda v: jnp.float32(matrix) @ v, jnp.float32(b), 40)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-3, atol=1e-4)


DELTA = 0.5
# A problem per case: how far the limit's plane is from here, in units of the trust region's width along b, its sign
# that of the excess: beyond the region, across it, and on either side.
CASES = {ALL: -1.5, SOME: -0.6, SOME_BUT_NOT_HERE: 0.6, NOTHING: 1.5}


def problem(seed: int, case: int, aligned: bool):
    """g, b, H and c; `aligned` turns b towards g, so that return and cost rise together."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    h, g, b = root @ root.T + np.eye(4), rng.normal(size=4), rng.normal(size=4)
    b = b if (g @ np.linalg.solve(h, b) > 0) == aligned else -b
    return g, b, h, CASES[case] * np.sqrt(2 * DELTA * (b @ np.linalg.solve(h, b)))


def our_step(g, b, h, c):
    natural = np.linalg.solve(h, g), np.linalg.solve(h, b)
    step, case = trust_region_step(Gradients(*(jnp.float32(x) for x in (g, b, *natural))), c, DELTA)
    return np.array(step, float), int(case)


def general_step(g, b, h, c):
    """max g'x within the region and the limit; where no x keeps the limit, min b'x within the region."""
    region = {"type": "ineq", "fun": lambda x: DELTA - 0.5 * x @ h @ x, "jac": lambda x: -h @ x}
    limit = {"type": "ineq", "fun": lambda x: -c - b @ x, "jac": lambda x: -b}
    lowest = -np.sqrt(2 * DELTA / (b @ np.linalg.solve(h, b))) * np.linalg.solve(h, b)
    feasible = c + b @ lowest <= 0
    goal, constraints = (-g, [region, limit]) if feasible else (b, [region])
    found = minimize(
        lambda x: goal @ x,
        0.9 * lowest,
        jac=lambda x: goal,
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
        method="SLSQP",
    )
    return found.x


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_the_step_solves_the_problem(seed, case, aligned):
    g, b, h, c = problem(seed, case, aligned)
    step, found = our_step(g, b, h, c)
    assert found == case
    expected = general_step(g, b, h, c)
    np.testing.assert_allclose(step, expected, atol=2e-3)
    assert 0.5 * step @ h @ step <= DELTA * (1 + 1e-4)
    if case != NOTHING:
        assert c + b @ step <= 1e-4
        assert g @ step >= g @ expected - 1e-4


def test_without_a_cost_gradient_the_step_is_the_plain_one():
    g, _, h, _ = problem(0, ALL, True)
    step, case = our_step(g, np.zeros(4), h, -0.05)
    natural = np.linalg.solve(h, g)
    assert case == ALL
    np.testing.assert_allclose(step, np.sqrt(2 * DELTA / (g @ natural)) * natural, rtol=1e-4)


def test_a_cost_gradient_of_noise_is_not_followed_to_the_edge_of_the_region():
    g, b, h, _ = problem(0, ALL, True)
    step, case = our_step(g, 1e-6 * b, h, 0.05)
    assert case == NOTHING
    assert 0.5 * step @ h @ step < 1e-3 * DELTA


def small_steps(policy, rng) -> Steps:
    """Steps as the policy would have made them, with random advantages."""
    mean, log_std = (np.array(x) for x in policy_of(policy, OBSERVATION))
    action = (mean + np.exp(log_std) * rng.normal(size=mean.shape)).astype(np.float32)
    log_prob = gaussian_log_prob(action, mean, log_std)
    nothing = np.zeros(5, np.float32)
    gain, cost = rng.normal(size=(2, 5)).astype(np.float32)
    return Steps(OBSERVATION, action, log_prob, gain, cost, nothing, nothing)


@pytest.mark.parametrize("excess", [-0.2, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_the_search_keeps_what_it_promises(seed, excess):
    policy = small_policy()
    rng = np.random.default_rng(seed)
    steps = small_steps(policy, rng)
    size = len(ravel_pytree(policy)[0])
    step = rng.normal(size=size).astype(np.float32)
    case = SOME if excess < 0 else SOME_BUT_NOT_HERE
    new, share, kl = line_search(policy, step, case, steps, excess, 0.02)
    (reward, cost), (reward_before, cost_before) = surrogates(new, steps), surrogates(policy, steps)
    assert kl <= 0.02
    assert cost - cost_before <= max(-excess, 0.0) + 1e-6
    assert reward >= reward_before - 1e-6 or case == SOME_BUT_NOT_HERE
    powers = [0.0, *(cpo.SHRINK**k for k in range(cpo.BACKTRACKS))]
    assert np.abs(np.array(powers) - float(share)).min() < 1e-6


def test_a_step_that_never_holds_is_not_made():
    policy = small_policy()
    steps = small_steps(policy, np.random.default_rng(0))
    step = np.full(len(ravel_pytree(policy)[0]), np.nan, np.float32)
    new, share, kl = line_search(policy, step, SOME, steps, -0.2, 0.02)
    assert (float(share), float(kl)) == (0.0, 0.0)
    for before, after in zip(jax.tree.leaves(policy), jax.tree.leaves(new), strict=True):
        np.testing.assert_array_equal(before, after)
