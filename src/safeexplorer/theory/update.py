"""The learner's own losses against what the paper says they are: masked policy gradient, imitation limits.

The left-hand sides are `labelling.label` and `loss.loss_terms` in float64; the right-hand sides are
written here a second time in plain numpy, and differentiated by central differences.
"""

import jax
import numpy as np

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Batch, Rollout, blank_rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.labelling import label
from safeexplorer.learning.loss import loss_terms
from safeexplorer.learning.methods import DAGGER, SAFEEXPLORER, Method
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.update import appraise
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.enumeration import finite_difference

EXACT = 1e-12
ROUNDING = 1e-8  # central differences
HYPER = Hyperparameters(lambda_compat=0.7)
STEPS, WIDTH, OBSERVATION, ACTION = 10, 2, 3, 2


def example_rollout(seed: int = 7) -> Rollout:
    """Random numbers around two robots. Robot 0 recovers in steps 2 to 4 and meets its time limit at step 7;
    robot 1 recovers in steps 3 to 6 and falls."""
    rng, shape = np.random.default_rng(seed), (STEPS, WIDTH)
    recovering, terminated, truncated = (np.zeros(shape, bool) for _ in range(3))
    recovering[2:5, 0] = recovering[3:7, 1] = True
    truncated[7, 0] = terminated[6, 1] = True
    states, final = rng.normal(size=(2, STEPS + 1, WIDTH, OBSERVATION))
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


def example_params(seed: int = 8) -> Params:
    """A small actor-critic with every parameter away from zero."""
    rng = np.random.default_rng(seed)
    params = init_actor_critic(rng, OBSERVATION, ACTION, hidden=(4,))
    return jax.tree.map(lambda x: x.astype(np.float64) + 0.3 * rng.normal(size=x.shape), params)


def learner_term(term: str, rollout: Rollout, params: Params, method: Method) -> tuple[float, Params, Batch]:
    """One term of the real loss on the whole rollout, its gradient, and the batch, a row per step."""

    def compute(params: Params, rollout: Rollout):
        appraisal = appraise(params, rollout, rollout.action)
        batch, _ = label(rollout, appraisal, method, (HYPER.gamma, HYPER.gae_lambda))
        batch = Batch(*(x.reshape(-1, *x.shape[2:]) for x in batch))
        loss_of = jax.value_and_grad(lambda p: getattr(loss_terms(p, batch, HYPER), term))
        return *loss_of(params), batch

    with jax.enable_x64(True):
        loss, gradient, batch = jax.tree.map(np.asarray, jax.jit(compute)(params, rollout))
    return float(loss), gradient, batch


def log_likelihood(params: Params, observation: np.ndarray, action: np.ndarray) -> np.ndarray:
    """log pi(a | s) of the diagonal Gaussian, from its definition."""
    hidden = observation
    for layer in params["actor"][:-1]:
        hidden = np.tanh(hidden @ layer["weight"] + layer["bias"])
    mean = hidden @ params["actor"][-1]["weight"] + params["actor"][-1]["bias"]
    sigma = np.exp(params["log_std"])
    density = np.exp(-((action - mean) ** 2) / (2 * sigma**2)) / np.sqrt(2 * np.pi * sigma**2)
    return np.log(density).sum(axis=-1)


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
    rollout, params = example_rollout(), example_params()
    chosen = rollout.recovering.copy()
    if method.gate == "hard":
        chosen[:, 1] = False
    observation, action = rollout.observation[chosen], rollout.action[chosen]

    def cloning(p: Params) -> float:
        return -HYPER.lambda_compat * log_likelihood(p, observation, action).sum() / rollout.recovering.sum()

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
    rollout, params = example_rollout(), example_params()
    _, gradient, batch = learner_term("policy", rollout, params, SAFEEXPLORER)
    safe = ~rollout.recovering.reshape(-1)
    advantage = batch.advantage[safe]
    advantage = (advantage - advantage.mean()) / (advantage.std(ddof=1) + 1e-8)

    def estimator(p: Params) -> float:
        scores = log_likelihood(p, batch.observation[safe], batch.action[safe])
        return -(scores * advantage).sum() / safe.sum()

    error = distance(gradient, finite_difference(estimator, params))
    numbers = {"gradient_norm": norm(gradient), "safe_steps": safe.sum()}
    statement = "|policy-loss gradient at rho = 1 + masked estimator|"
    return at_most("Corollary 3, eq. (ppo-safe)", statement, error, ROUNDING, **numbers)


def update_checks() -> list[Check]:
    """Everything about the learner's losses."""
    return [
        masked_surrogate(),
        *imitation_limit(DAGGER, "Proposition 10 (a), DAgger", "every recovery step"),
        *imitation_limit(SAFEEXPLORER, "Proposition 10 (c), hard gate", "succeeded segments"),
    ]
