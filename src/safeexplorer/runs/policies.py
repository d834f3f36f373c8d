"""A policy from where it is kept: a run folder, or an `.npz` of its weights by path."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space

from safeexplorer import robots
from safeexplorer.accelerated.learner import DeviceLearner
from safeexplorer.acting.costs import step_cost
from safeexplorer.acting.evaluation import evaluate
from safeexplorer.acting.handover import Handover, handed_over, radius_of
from safeexplorer.acting.interventions import Intervention
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.networks import Layers, Params
from safeexplorer.acting.policy import Sizes
from safeexplorer.adapters.spaces import sizes_of, space_of
from safeexplorer.files.checkpoint import load_latest, under, unflatten_like
from safeexplorer.files.tables import read_columns
from safeexplorer.learning.constrained.budget import Budget
from safeexplorer.learning.constrained.learner import ConstrainedLearner, init_params
from safeexplorer.learning.learners import Learner, WeightedLearner
from safeexplorer.learning.methods import CONSTRAINED, PARTS
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.learning.prepared import PreparedLearner
from safeexplorer.recovery import load_recovery
from safeexplorer.runs.facts import read_facts
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention

LAYOUT = "actor/<i>/weight [in, out], actor/<i>/bias [out], log_std [m], critic/<i>/weight, critic/<i>/bias"


def make_learner(settings: Settings, rng: np.random.Generator, sizes: Sizes) -> Learner:
    """The learner of a run, its first parameters drawn from `rng`."""
    method, hidden = settings.method_row(), settings.hidden
    if settings.method in CONSTRAINED:
        params = init_params(rng, sizes.observation, sizes.action, hidden)
        budget = Budget(settings.num_envs, settings.cost_limit)
        cost = step_cost(settings.cost, settings.max_radius)
        return ConstrainedLearner(
            settings.method, settings.constrained_hyperparameters(), params, budget, cost
        )
    shape = (rng, sizes.observation, sizes.action, hidden, method.critic_heads, sizes.choices)
    params = init_actor_critic(*shape, settings.activation, settings.critic_observations)
    plan, hyper = settings.handover_plan(), settings.hyperparameters()
    if settings.episode_length is not None:
        return DeviceLearner(method, hyper, params, settings.batch_size, sizes.action, settings.learning_rate)
    if plan is None and not any(getattr(method, name) for name in PARTS):
        return WeightedLearner(method, hyper, params)
    scale = np.array(sizes.scale or (1.0,) * sizes.action)
    handover = None if plan is None else Handover(plan, settings.num_envs, scale)
    shape = (settings.num_envs, settings.rollout_steps, sizes.action)
    return PreparedLearner(method, hyper, params, handover, shape)


@dataclass(frozen=True)
class TrainedPolicy:
    """What a run has learned, as its newest checkpoint has it."""

    folder: Path
    settings: Settings
    params: Params
    update: int  # that made the parameters
    handover: Handover | None = None  # as the run left it

    @property
    def steps(self) -> int:
        """Environment steps behind it."""
        return self.update * self.settings.batch_size

    @property
    def progress(self) -> float:
        """Where training was at the last update that it learned from."""
        return self.settings.progress(self.update)

    @property
    def intervention(self) -> Intervention:
        """Who acts when, in its training."""
        return handed_over(make_intervention(self.settings), self.handover)

    @property
    def mixed(self) -> MixedPolicy:
        """The policy's place beside its recovery, as it was trained."""
        recovery = load_recovery(self.settings.recovery, robots.get_robot(self.settings.robot))
        return MixedPolicy(self.intervention, recovery, self.settings.method_row().sampled_recovery)

    @property
    def radius(self) -> float | None:
        """d of the last update that it learned from; None without a safe region."""
        if self.settings.robot is None:
            found = read_columns(self.folder / "metrics.csv")["radius"][self.update - 1]
            return None if np.isnan(found) else float(found)
        return radius_of(self.intervention, self.progress)

    @property
    def facts(self) -> dict[str, Any]:
        """Which policy it is, ready for JSON."""
        named = {name: getattr(self.settings, name) for name in ("method", "seed")}
        return {"robot": self.settings.subject, **named, "steps": self.steps}


def open_policy(folder: Path) -> TrainedPolicy:
    """The newest policy of the run in `folder`."""
    settings, (arrays, update) = stored_settings(folder), newest_checkpoint(folder)
    if settings.robot is None:
        sizes = sizes_of(*run_spaces(folder))
    else:
        robot = robots.get_robot(settings.robot)
        sizes = Sizes(robot.observation_size, robot.action_size)
    learner = restored_learner(settings, sizes, arrays)
    return TrainedPolicy(folder, settings, paid_params(learner), update, learner.handover)


def newest_checkpoint(folder: Path) -> tuple[dict[str, np.ndarray], int]:
    """Arrays of the newest whole checkpoint of a run, and its update."""
    found = load_latest(folder / "checkpoints")
    if found is None:
        raise ValueError(f"{folder} has no checkpoint yet")
    arrays, state = found
    return arrays, state["update"]


def restored_learner(settings: Settings, sizes: Sizes, arrays: dict[str, np.ndarray]) -> Learner:
    """The learner of a run as the arrays of a checkpoint have it."""
    learner = make_learner(settings, np.random.default_rng(0), sizes)
    learner.set_state(unflatten_like(learner.get_state(), under("learner/", arrays)))
    return learner


def paid_params(learner: Learner) -> Params:
    """What a learner has learned, its critic in rewards as the task pays them."""
    scale = getattr(learner, "scale", None)
    return learner.params if scale is None else scale.undone(learner.params)


def run_spaces(folder: Path) -> tuple[Space, Space]:
    """Observations and actions of the run in `folder`."""
    settings = stored_settings(folder)
    if settings.robot is not None:
        env = robots.make(settings.robot, 1)
        env.close()
        return env.single_observation_space, env.single_action_space
    stored = read_facts(folder).get("spaces")
    if stored is None:
        raise ValueError(f"{folder} was made by an older release, which did not note its spaces")
    try:
        observation, action = map(space_of, stored)
    except ValueError as error:
        raise ValueError(f"{folder / 'run.json'} is damaged: {error}") from error
    return observation, action


def evaluate_run(folder: Path, episodes: int, seed: int) -> dict[str, Any]:
    """The newest policy in `folder` alone, with its noise and without, and with its recovery; ready for JSON."""
    policy = open_policy(folder)
    returns = read_columns(folder / "metrics.csv").get("return_trailing", ())
    if len(returns) < policy.update:
        raise ValueError(f"{folder / 'metrics.csv'} is damaged: it has no row of update {policy.update}")
    trailing = returns[policy.update - 1]
    env, alone = robots.make(policy.settings.robot, episodes), MixedPolicy(policy.intervention, None)
    ways = {"noisy": (alone, False), "deterministic": (alone, True)}
    if policy.settings.method_row().intervenes:
        ways["mixed"] = (policy.mixed, False)
    rows = {
        name: evaluate(policy.params, env, mixed, policy.progress, seed, deterministic)
        for name, (mixed, deterministic) in ways.items()
    }
    env.close()
    return {
        **policy.facts,
        "episodes": episodes,
        "trailing_return": None if np.isnan(trailing) else float(trailing),
        **{name: row._asdict() for name, row in rows.items()},
    }


def policy_from_arrays(arrays: Mapping[str, np.ndarray], where: str) -> Params:
    """Actor, log standard deviation and critic from their flattened arrays; `where` begins every error."""
    params = {
        "actor": _layers(arrays, "actor", where),
        "log_std": _numbers(arrays, "log_std", where),
        "critic": _layers(arrays, "critic", where),
    }
    actions, log_std = params["actor"][-1]["bias"].shape, params["log_std"].shape
    if log_std != actions:
        raise ValueError(f"{where}: log_std has shape {log_std}; expected {actions}, as the actor's output")
    seen, read = (params[name][0]["weight"].shape[0] for name in ("actor", "critic"))
    if seen != read:
        raise ValueError(f"{where}: critic/0/weight reads {read} numbers; expected {seen}, as the actor's")
    heads = params["critic"][-1]["bias"].shape[0]
    if heads not in (1, 2):
        raise ValueError(f"{where}: the critic has {heads} outputs; expected 1, or 2 for one per side")
    return params


def policy_sizes(params: Params) -> tuple[int, int]:
    """How many numbers a policy observes and how many it acts with."""
    return params["actor"][0]["weight"].shape[0], params["log_std"].shape[0]


def _layers(arrays: Mapping[str, np.ndarray], network: str, where: str) -> Layers:
    """Layers 0, 1, ... of one network; each reads what the one before gives."""
    count = sum(name.startswith(f"{network}/") and name.endswith("/weight") for name in arrays)
    layers: Layers = []
    for i in range(max(count, 1)):
        weight, bias = (_numbers(arrays, f"{network}/{i}/{part}", where) for part in ("weight", "bias"))
        if weight.ndim != 2 or (layers and weight.shape[0] != len(layers[-1]["bias"])):
            before = len(layers[-1]["bias"]) if layers else "in"
            raise ValueError(
                f"{where}: {network}/{i}/weight has shape {weight.shape}; expected [{before}, out]"
            )
        if bias.shape != weight.shape[1:]:
            raise ValueError(
                f"{where}: {network}/{i}/bias has shape {bias.shape}; expected {weight.shape[1:]}"
            )
        layers.append({"weight": weight, "bias": bias})
    return layers


def _numbers(arrays: Mapping[str, np.ndarray], name: str, where: str) -> np.ndarray:
    if name not in arrays:
        raise ValueError(f"{where}: there is no array {name}; a policy is {LAYOUT}")
    array = arrays[name]
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{where}: {name} ({array.dtype}) holds something else; expected finite numbers")
    return array.astype(np.float32)
