"""Advantages and value targets equal Stable-Baselines3's rollout buffer (kept outputs; live in `make oracles`)."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from safeexplorer.acting.trajectory import blank_rollout
from safeexplorer.learning.labelling import Appraisal, advantages

CASES = json.loads((Path(__file__).parents[1] / "golden" / "sb3_gae.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_gae_equals_stable_baselines3(case):
    reward, value, final = (jnp.array(case[k], jnp.float32) for k in ("reward", "value", "final"))
    terminated, truncated = jnp.array(case["terminated"]), jnp.array(case["truncated"])
    following = jnp.concatenate([value[1:], jnp.array([case["last_value"]], jnp.float32)])
    next_value = jnp.where(truncated, final, following)
    rollout = blank_rollout(reward.shape, terminated=terminated, truncated=truncated)
    appraisal = Appraisal(value, next_value, None)
    advantage = advantages(reward, value, appraisal, rollout, (case["gamma"], case["gae_lambda"]))
    np.testing.assert_allclose(advantage, case["advantage"], atol=2e-6)
    np.testing.assert_allclose(advantage + value, case["target"], atol=2e-6)
