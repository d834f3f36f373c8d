"""Our CPO with everything in which it differs from OmniSafe's made as OmniSafe has it.

    python oracles/constrained/as_omnisafe.py half_cheetah 1 --steps 300000 --out FOLDER

One robot that begins anew with every epoch, critics whose learning rate stays, and OmniSafe's multipliers with their
sign. What is left: it updates the statistics of observations after each epoch, OmniSafe at every step.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from safeexplorer.learning.constrained import cpo
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import Training, train

FLOOR = 1e-8


def their_step(gradients: cpo.Gradients, excess: Any, delta: float) -> tuple[Any, Any]:
    """`_determine_case` and `_step_direction` of OmniSafe 0.5.0, line by line."""
    g, b, x, p = gradients
    q, r, s = g @ x, g @ p, b @ p
    a_term, b_term = q - r**2 / (s + FLOOR), 2 * delta - excess**2 / (s + FLOOR)
    inside, outside = jnp.where(b_term < 0, cpo.ALL, cpo.SOME), jnp.where(b_term >= 0, 1, 0)
    case = jnp.where(excess < 0, inside, outside)
    lambda_a, lambda_b = jnp.sqrt(jnp.maximum(a_term / b_term, 0.0)), jnp.sqrt(q / (2 * delta))
    edge = r / (excess + FLOOR)

    def held(x: Any, low: Any, high: Any) -> Any:
        return jnp.minimum(jnp.maximum(x, low), high)

    lambda_a = jnp.where(excess < 0, held(lambda_a, 0.0, edge), held(lambda_a, edge, jnp.inf))
    lambda_b = jnp.where(excess < 0, held(lambda_b, edge, jnp.inf), held(lambda_b, 0.0, edge))
    f_a = -0.5 * (a_term / (lambda_a + FLOOR) + b_term * lambda_a) - r * excess / (s + FLOOR)
    f_b = -0.5 * (q / (lambda_b + FLOOR) + 2 * delta * lambda_b)
    price = jnp.where(f_a >= f_b, lambda_a, lambda_b)
    nu = jnp.maximum(price * excess - r, 0.0) / (s + FLOOR)
    steps = {
        cpo.ALL: jnp.sqrt(2 * delta / (q + FLOOR)) * x,
        cpo.NOTHING: -jnp.sqrt(2 * delta / (s + FLOOR)) * p,
    }
    between = (x - nu * p) / (price + FLOOR)
    return jnp.where(case == cpo.ALL, steps[cpo.ALL], jnp.where(case == 0, steps[cpo.NOTHING], between)), case


def begin_anew(run: Training, row: dict[str, Any]) -> None:
    """After every epoch: new episodes, the running ones forgotten."""
    run.collector.reset(run.env_seed + run.update)
    run.ledger.cut()
    run.learner.cut()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robot")
    parser.add_argument("seed", type=int)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    cpo.trust_region_step = their_step
    chosen = {"robot": args.robot, "seed": args.seed, "steps": args.steps}
    train(Settings(method="cpo", num_envs=1, anneal=False, **chosen), args.out, begin_anew)


if __name__ == "__main__":
    main()
