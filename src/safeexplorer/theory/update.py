"""The learner's labels and losses against what the paper says they are.

The left-hand sides are `labelling.label` and `loss.loss_terms` in float64; the right-hand sides are plain numpy
(`by_hand`), differentiated by central differences.
"""

import jax
import numpy as np

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch, Rollout, blank_rollout, by_step
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import label, stored_action
from safeexplorer.learning.loss import loss_terms
from safeexplorer.learning.methods import DAGGER, METHODS, SAFEEXPLORER, Method
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import appraise
from safeexplorer.theory import by_hand
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.enumeration import finite_difference

EXACT = 1e-12
ROUNDING = 1e-8  # central differences
HYPER = Hyperparameters(lambda_compat=0.7)
EVERY_TERM = Hyperparameters(gamma=0.9, gae_lambda=0.8, lambda_compat=0.7, entropy_coefficient=0.1)
DIFFERENTIATED = ("safeexplorer", "soft", "truncated_is")
OBSERVATION, ACTION = 3, 2


def example_rollout(seed: int = 7) -> Rollout:
    """Random numbers around two robots. Robot 0 recovers in steps 2 to 4 and meets its time limit at step 7;
    robot 1 recovers in steps 3 to 6 and falls."""
    steps, shape = 10, (10, 2)
    rng, (recovering, terminated, truncated) = np.random.default_rng(seed), np.zeros((3, *shape), bool)
    recovering[2:5, 0] = recovering[3:7, 1] = True
    truncated[7, 0] = terminated[6, 1] = True
    states, final = rng.normal(size=(2, steps + 1, 2, OBSERVATION))
    proposed, recovery = rng.normal(size=(2, *shape, ACTION))
    ended = terminated | truncated
    return blank_rollout(
        shape,
        observation=states[:-1],
        next_observation=np.where(ended[..., None], final[1:], states[1:]),
        proposed=proposed,
        action=np.where(recovering[..., None], recovery, proposed),
        task_reward=rng.normal(size=shape),
        terminated=terminated,
        truncated=truncated,
        recovering=recovering,
        next_outside=np.concatenate([recovering[1:], recovering[:1]]),
    )


def random_rollout(seed: int = 3) -> Rollout:
    """Recoveries, falls and time limits of four robots at random, on and between one another."""
    rng, shape = np.random.default_rng(seed), (24, 4)
    recovering = np.repeat(rng.random((8, 4)) < 0.5, 3, axis=0)
    terminated = rng.random(shape) < 0.12
    truncated = (rng.random(shape) < 0.12) & ~terminated
    proposed, recovery = rng.normal(size=(2, *shape, ACTION))
    return blank_rollout(
        shape,
        observation=rng.normal(size=(*shape, OBSERVATION)),
        next_observation=rng.normal(size=(*shape, OBSERVATION)),
        proposed=proposed,
        action=np.where(recovering[..., None], recovery, proposed),
        task_reward=rng.normal(size=shape),
        terminated=terminated,
        truncated=truncated,
        recovering=recovering,
        next_outside=rng.random(shape) < 0.5,
        recovery_log_density=rng.normal(size=shape) - 3.0,
    )


def random_params(seed: int, hidden: int, heads: int = 1) -> Params:
    """A small actor-critic with every parameter away from zero."""
    rng = np.random.default_rng(seed)
    params = init_actor_critic(rng, OBSERVATION, ACTION, (hidden,), heads)
    return jax.tree.map(lambda x: x.astype(np.float64) + 0.3 * rng.normal(size=x.shape), params)


def learner_batch(params: Params, rollout: Rollout, method: Method, hyper: Hyperparameters) -> Batch:
    """The learner's labels [T, E], by the networks' view of the rollout."""
    seen = appraise(params, rollout, stored_action(rollout, method))
    return label(rollout, seen, method, (hyper.gamma, hyper.gae_lambda))[0]


def learner_term(term: str, rollout: Rollout, params: Params, method: Method) -> tuple[float, Params, Batch]:
    """One term of the real loss on the whole rollout, its gradient, and the batch, a row per step."""

    def compute(params: Params, rollout: Rollout):
        batch = by_step(learner_batch(params, rollout, method, HYPER))
        loss_of = jax.value_and_grad(lambda p: getattr(loss_terms(p, batch, HYPER), term))
        return *loss_of(params), batch

    with jax.enable_x64(True):
        loss, gradient, batch = jax.tree.map(np.asarray, jax.jit(compute)(params, rollout))
    return float(loss), gradient, batch


def distance(a: Params, b: Params) -> float:
    """The largest difference between two trees."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


def norm(tree: Params) -> float:
    """The Euclidean norm of a tree."""
    return float(np.sqrt(sum((x**2).sum() for x in jax.tree.leaves(tree))))


def imitation_limit(method: Method, claim: str, dataset: str) -> list[Check]:
    """Proposition 10: the compatibility loss is behavioural cloning on a dataset of recovery steps.

    Always gate: on all of them. Hard gate: on those of the succeeded segment (robot 0, steps 2 to 4). The
    normaliser is the number of all recovery steps, 7, in both.
    """
    rollout, params = example_rollout(), random_params(8, hidden=4)
    chosen = rollout.recovering.copy()
    if method.gate == "hard":
        chosen[:, 1] = False
    observation, action = rollout.observation[chosen], rollout.action[chosen]

    def cloning(p: Params) -> float:
        return -HYPER.lambda_compat * by_hand.log_pi(p, observation, action).sum() / rollout.recovering.sum()

    loss, gradient, _ = learner_term("compat", rollout, params, method)
    statement, error = f"|compatibility loss - cloning loss on {dataset}|", abs(loss - cloning(params))
    slopes = distance(gradient, finite_difference(cloning, params))
    return [
        at_most(claim, statement, error, EXACT, loss=loss, pairs=chosen.sum()),
        at_most(claim, "the same for the gradients", slopes, ROUNDING, gradient_norm=norm(gradient)),
    ]


def masked_surrogate() -> Check:
    """Corollary 3, equation (ppo-safe): at the parameters that collected the rollout (rho = 1) the gradient
    of the policy loss is minus the mean over safe steps of grad log pi times the normalised advantage."""
    rollout, params = example_rollout(), random_params(8, hidden=4)
    _, gradient, batch = learner_term("policy", rollout, params, SAFEEXPLORER)
    safe = ~rollout.recovering.reshape(-1)
    advantage = batch.advantage[safe]
    advantage = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)

    def estimator(p: Params) -> float:
        scores = by_hand.log_pi(p, batch.observation[safe], batch.action[safe])
        return -(scores * advantage).sum() / safe.sum()

    error = distance(gradient, finite_difference(estimator, params))
    numbers = {"gradient_norm": norm(gradient), "safe_steps": safe.sum()}
    statement = "|policy-loss gradient at rho = 1 + masked estimator|"
    return at_most("Corollary 3, eq. (ppo-safe)", statement, error, ROUNDING, **numbers)


def table_of_methods() -> Check:
    """Section 5: each row of the table is the paper's."""
    wrong = 0
    for name, row in by_hand.PAPER.items():
        m = METHODS[name]
        ours = (m.stored_action, m.policy_steps, m.value_steps, m.analytic_value, m.recovery_reward, m.gate)
        ours += (m.importance_cap, m.critic_heads, m.intervenes, m.sampled_recovery)
        wrong += sum(mine != theirs for mine, theirs in zip(ours, row, strict=True))
    return at_most("Table of methods", "entries unlike the paper's", wrong, 0, rows=len(by_hand.PAPER))


def errors(name: str) -> tuple[float, float, float, float]:
    """Of one method's labels, terms of the loss and gradient of their sum; and the gradient's norm.

    The loss is taken away from the parameters that collected the rollout.
    """
    rollout, method, row, hyper = random_rollout(), METHODS[name], by_hand.PAPER[name], EVERY_TERM
    params, rng = random_params(4, hidden=3, heads=row.heads), np.random.default_rng(5)
    away = jax.tree.map(lambda x: x + 0.2 * rng.normal(size=x.shape), params)
    names = ("policy", "value", "compat", "entropy")
    with jax.enable_x64(True):
        labelled = jax.tree.map(np.asarray, learner_batch(params, rollout, method, hyper))
        batch = by_step(labelled)
        terms = loss_terms(away, batch, hyper)
        gradient = jax.grad(lambda p: sum(getattr(loss_terms(p, batch, hyper), term) for term in names))(away)
        gradient = jax.tree.map(np.asarray, gradient)
    ours = labelled._replace(
        gate=np.where(rollout.recovering & (labelled.imitation_norm > 0), labelled.gate, 0.0)
    )
    hand = by_hand.labels(rollout, params, row, hyper.gamma, hyper.gae_lambda)
    labels = max(float(np.abs(getattr(ours, f) - getattr(hand, f)).max()) for f in hand._fields)
    losses = by_hand.loss(away, batch, away, hyper, row)
    error, slopes = max(abs(float(getattr(terms, term)) - losses[term]) for term in names), 0.0
    if name in DIFFERENTIATED:
        total = lambda p: sum(by_hand.loss(p, batch, away, hyper, row).values())  # noqa: E731
        slopes = distance(gradient, finite_difference(total, away))
    return labels, error, slopes, norm(gradient)


def every_method() -> list[Check]:
    """Section 4: labels, loss and gradients of all methods of the paper's table."""
    methods = len(by_hand.PAPER)
    labels, terms, slopes, size = np.max([errors(name) for name in by_hand.PAPER], axis=0)
    slope = f"the same for the gradients of {len(DIFFERENTIATED)}"
    return [
        at_most("Section 4, labels", f"|labels - by hand|, {methods} methods", labels, EXACT),
        at_most("Section 4, loss", "|terms of the loss - by hand|, the same methods", terms, EXACT),
        at_most("Section 4, loss", slope, slopes, ROUNDING, gradient_norm=size),
    ]


def update_checks() -> list[Check]:
    """Everything about the learner's labels and losses."""
    return [
        masked_surrogate(),
        *imitation_limit(DAGGER, "Proposition 10 (a), DAgger", "every recovery step"),
        *imitation_limit(SAFEEXPLORER, "Proposition 10 (c), hard gate", "succeeded segments"),
        table_of_methods(),
        *every_method(),
    ]
