"""Proposition 6: the closed-form value where recovery is triggered, computed by the code that trains robots.

`segments.find_segments`, `labelling.analytic_value` and `labelling.average_rerolls` run on rollouts of exact
processes, with the exact V_mix as the critic, and are compared with the linear solve.
"""

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.trajectory import Rollout, Segments, blank_rollout
from safeexplorer.learning.labelling import analytic_value, average_rerolls
from safeexplorer.learning.segments import find_segments
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.mdp import (
    MDP,
    mixed_policy,
    outside_region,
    random_mdp,
    random_policy,
    softmax,
    training_reward,
    value,
)

R_TERM = -3.0
EXACT = 1e-12


def deterministic_mdp(rng: np.random.Generator, states: int = 12) -> MDP:
    """Every action leads to one state; a step into the fallen state pays R_TERM."""
    mdp = random_mdp(rng, states, actions=2, gamma=0.9)
    after = rng.integers(states, size=(states, 2))
    after[mdp.terminal] = states - 1
    reward = mdp.reward.copy()
    reward[~mdp.terminal, :, states - 1] = R_TERM
    return replace(mdp, transition=np.eye(states)[after], reward=reward)


def simulate(
    mdp: MDP, mixed: np.ndarray, outside: np.ndarray, rng: np.random.Generator
) -> tuple[Rollout, np.ndarray]:
    """A rollout [60, 4] under the mixed policy with falls and a time limit of 17 steps; also s_t [60, 4].

    The observation is the number of the state. Episodes begin anywhere, so some begin outside R.
    """
    steps, width, limit = 60, 4, 17
    alive, rows = np.flatnonzero(~mdp.terminal), []
    state, clock = rng.choice(alive, width), np.zeros(width, int)
    for _ in range(steps):
        action = np.array([rng.choice(mdp.actions, p=mixed[s]) for s in state])
        going = mdp.transition[state, action]
        after = np.array([rng.choice(mdp.states, p=where) for where in going])
        late = clock + 1 == limit
        rows.append((state, action, after, late))
        over = mdp.terminal[after] | late
        state, clock = np.where(over, rng.choice(alive, width), after), np.where(over, 0, clock + 1)
    state, action, after, late = np.array(rows).swapaxes(0, 1)
    rollout = as_rollout(mdp, outside, state, action, after)
    return rollout._replace(truncated=(late == 1) & ~rollout.terminated), state


def as_rollout(mdp: MDP, outside: np.ndarray, state: np.ndarray, action: Any, after: np.ndarray) -> Rollout:
    """Tabular steps [T, E] in the shape that the learner's code takes; nobody acts in a terminal state."""
    return blank_rollout(
        state.shape,
        observation=state[..., None].astype(float),
        next_observation=after[..., None].astype(float),
        task_reward=mdp.reward[state, action, after],
        terminated=mdp.terminal[after],
        recovering=outside[state] & ~mdp.terminal[state],
        next_outside=outside[after],
    )


@partial(jax.jit, static_argnums=2)
def overwrite(rollout: Rollout, next_value: jax.Array, gamma: float) -> tuple[jax.Array, Segments]:
    """What the learner's code writes at each segment's first step, and NaN elsewhere."""
    segments = find_segments(rollout, next_value)
    nowhere = jnp.full_like(next_value, jnp.nan)
    return average_rerolls(analytic_value(nowhere, segments, gamma), rollout, segments), segments


def overwritten(rollout: Rollout, v_mix: np.ndarray, gamma: float) -> tuple[np.ndarray, Segments]:
    """The same in float64, with v_mix as the critic of the next state."""
    with jax.enable_x64(True):
        next_value = v_mix[rollout.next_observation[..., 0].astype(int)]
        return jax.tree.map(np.asarray, overwrite(rollout, next_value, gamma))


def analytic_on_deterministic(seed: int = 6, count: int = 10) -> list[Check]:
    """Equation (analytic-V), both outcomes: the worst error over all segments of `count` processes."""
    rng = np.random.default_rng(seed)
    errors: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(count):
        mdp = deterministic_mdp(rng)
        outside = outside_region(mdp, 0.6)
        main = softmax(rng.normal(size=(mdp.states, mdp.actions)))
        mixed = mixed_policy(main, random_policy(rng, mdp, deterministic=True), outside)
        v_mix = value(training_reward(mdp, outside, R_TERM), mixed)
        rollout, state = simulate(mdp, mixed, outside, rng)
        written, segments = overwritten(rollout, v_mix, mdp.gamma)
        for outcome in (True, False):
            chosen = segments.start & (segments.succeeded == outcome)
            errors[outcome] += list(np.abs(written - v_mix[state])[chosen])
    claim, statement = "Proposition 6, eq. (analytic-V)", "|analytic value - V_mix|, {} segments"
    return [
        at_most(claim, statement.format(name), max(of, default=np.nan), EXACT, segments=len(of))
        for name, of in zip(("succeeded", "failed"), errors.values(), strict=True)
    ]


def ladder() -> tuple[MDP, np.ndarray, np.ndarray]:
    """A noisy recovery of at most three steps: the process, its only policy, and the states outside R.

    State 0 is inside; 1, 2, 3 are rungs further and further out; 4 is fallen. Recovery climbs down one rung
    (0.5) or two (0.3), or falls (0.2). Inside, a step pays 1 and leads out to rung 3 with probability 0.3.
    """
    transition, reward = np.zeros((5, 1, 5)), np.zeros((5, 1, 5))
    transition[0, 0, [0, 3]] = 0.7, 0.3
    for rung in (1, 2, 3):
        transition[rung, 0, rung - 1] += 0.5
        transition[rung, 0, max(rung - 2, 0)] += 0.3
        transition[rung, 0, 4] = 0.2
    transition[4, 0, 4] = 1.0
    reward[0] = 1.0
    reward[1:4, :, 4] = R_TERM
    start, terminal = np.eye(5)[3], np.arange(5) == 4
    mdp = MDP(transition, reward, start, 0.9, np.arange(5.0), terminal)
    return mdp, np.ones((5, 1)), outside_region(mdp, 0.5)


def recoveries(mdp: MDP, outside: np.ndarray, path: tuple[int, ...]) -> list[tuple[float, tuple[int, ...]]]:
    """Every way in which the recovery can go on from the end of `path`, with its probability."""
    here = path[-1]
    if mdp.terminal[here] or not outside[here]:
        return [(1.0, path)]
    step = mdp.transition[here, 0]
    return [
        (step[after] * probability, whole)
        for after in np.flatnonzero(step)
        for probability, whole in recoveries(mdp, outside, (*path, int(after)))
    ]


def recovery_columns(mdp: MDP, outside: np.ndarray, paths: list[tuple[int, ...]]) -> Rollout:
    """One environment per recovery path, all beginning at t = 0; a finished one waits where it ended."""
    steps = max(len(path) for path in paths) - 1
    padded = np.array([path + (path[-1],) * (steps + 1 - len(path)) for path in paths]).T
    return as_rollout(mdp, outside, padded[:-1], 0, padded[1:])


def multi_sample(most: int = 4) -> list[Check]:
    """The stochastic extension: the mean of M recoveries is unbiased and its variance falls as 1/M.

    Exact: all M-tuples of recoveries with their probabilities, the first one realised, the others re-rolled.
    """
    mdp, policy, outside = ladder()
    v_mix = value(mdp, policy)
    probability, paths = zip(*recoveries(mdp, outside, (3,)), strict=True)
    single, _ = overwritten(recovery_columns(mdp, outside, list(paths)), v_mix, mdp.gamma)
    bias, variance = {}, {}
    for samples in range(1, most + 1):
        tuples = np.array(list(product(range(len(paths)), repeat=samples)))
        weight = np.array(probability)[tuples].prod(axis=1)
        rollout = recovery_columns(mdp, outside, [paths[i] for i in tuples[:, 0]])
        again = single[0][tuples[:, 1:]].mean(axis=1) if samples > 1 else np.zeros(len(tuples))
        shape = rollout.task_reward.shape
        rollout = rollout._replace(
            reroll_value=np.broadcast_to(again, shape), reroll_count=np.full(shape, samples - 1.0)
        )
        written, _ = overwritten(rollout, v_mix, mdp.gamma)
        mean = float(weight @ written[0])
        bias[samples] = abs(mean - v_mix[3])
        variance[samples] = float(weight @ (written[0] - mean) ** 2)
    law = max(abs(m * variance[m] / variance[1] - 1.0) for m in variance)
    spread = {f"Var_{m}": v for m, v in variance.items()}
    claim, mean = "stochastic extension", f"|E[mean of M recoveries] - V_mix|, M = 1..{most}"
    return [
        at_most(claim, mean, max(bias.values()), EXACT, v_mix=v_mix[3], recoveries=len(paths)),
        at_most(claim, f"|M Var_M / Var_1 - 1|, M = 1..{most}", law, 1e-10, **spread),
    ]


def value_checks() -> list[Check]:
    """Everything about the value at recovery-triggering states."""
    return [*analytic_on_deterministic(), *multi_sample()]
