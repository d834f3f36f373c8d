"""What importance sampling would have done, beside sums written out step by step."""

import jax
import numpy as np
import pytest
from batches import make_params

from safeexplorer.acting.trajectory import Batch
from safeexplorer.learning.diagnostics import CHUNK, ESS_SHARE, VARIANCE_RATIO, importance_diagnostics
from safeexplorer.learning.methods import METHODS
from safeexplorer.learning.networks import log_prob

STEPS = CHUNK + 7  # one chunk and a rest


def steps(params, recovering, log_mu_offset):
    """Random steps; at recovery steps log mu is log pi less the offset, so that log w is the offset."""
    rng = np.random.default_rng(3)
    count = len(recovering)
    blank = Batch(*[np.zeros(count, np.float32)] * len(Batch._fields))
    observation, action = (rng.normal(size=(count, k)).astype(np.float32) for k in (3, 2))
    log_pi = np.asarray(log_prob(params, observation, action))
    return blank._replace(
        observation=observation,
        action=action,
        recovering=recovering,
        log_prob=log_pi,
        log_mu=(log_pi - log_mu_offset).astype(np.float32),
        advantage=rng.normal(size=count).astype(np.float32),
    )


def by_hand(params, batch):
    """Both numbers from the gradient of one step after another, in float64."""
    policy = {name: branch for name, branch in params.items() if name != "critic"}
    score = jax.jit(jax.grad(log_prob))
    rows = zip(batch.observation, batch.action, batch.advantage, strict=True)
    scores = np.array(
        [a * np.concatenate([g.ravel() for g in jax.tree.leaves(score(policy, o, u))]) for o, u, a in rows],
        np.float64,
    )
    weight = np.exp((batch.log_prob - batch.log_mu).astype(np.float64))
    of_recovery = weight[batch.recovering]
    masked = (scores * ~batch.recovering[:, None]).var(0).sum()
    sampled = (scores * np.where(batch.recovering, weight, 1.0)[:, None]).var(0).sum()
    share = of_recovery.sum() ** 2 / (len(of_recovery) * (of_recovery**2).sum())
    return share, np.log10(sampled / masked)


@pytest.mark.parametrize("scale", [0.5, 12.0], ids=["mild", "up to 1e13"])
def test_effective_sample_size_and_variance_ratio_are_those_of_single_steps(scale):
    params = make_params(METHODS["safeexplorer"])
    rng = np.random.default_rng(1)
    batch = steps(params, rng.random(STEPS) < 0.3, scale * rng.normal(size=STEPS))
    found = importance_diagnostics(params, batch)
    share, ratio = by_hand(params, batch)
    assert float(found[ESS_SHARE]) == pytest.approx(share, rel=1e-3)
    assert float(found[VARIANCE_RATIO]) == pytest.approx(ratio, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("recovering", "known"), [(False, []), (True, [ESS_SHARE])], ids=["never", "always"])
def test_without_recovery_or_without_the_policy_there_is_nothing_to_compare(recovering, known):
    params = make_params(METHODS["safeexplorer"])
    batch = steps(params, np.full(STEPS, recovering), np.zeros(STEPS))
    found = {name: float(x) for name, x in importance_diagnostics(params, batch).items()}
    assert [name for name, x in found.items() if not np.isnan(x)] == known
    assert found[ESS_SHARE] == 1.0 or not recovering
