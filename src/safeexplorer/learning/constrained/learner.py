"""The constrained methods as the training loop sees them: normalise, price the cost, improve, remember."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.networks import Params
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.constrained import cpo, ppo_lagrangian
from safeexplorer.learning.constrained.budget import Budget
from safeexplorer.learning.constrained.estimates import ConstrainedState
from safeexplorer.learning.hyperparameters import ConstrainedHyperparameters
from safeexplorer.learning.moments import Moments, deviation, merge, no_moments
from safeexplorer.learning.networks import init_uniform
from safeexplorer.learning.normalising import normaliser

OPTIMISERS = {"ppo_lagrangian": ppo_lagrangian, "cpo": cpo}
REWARD_CLIP = 5.0
COLUMNS = [
    "episode_cost",  # J_c, over the last 50 episodes
    "cost_ended",  # summed over the episodes that ended in this update
    "cost_value_loss",
    "multiplier",
    "passes",
    "case",
    "step_share",
]

compiled = functools.cache(lambda name, hyper: OPTIMISERS[name].make_improve(hyper))


class ConstrainedLearner:
    """PPO-Lagrangian or CPO, with normalised observations and rewards and a budget of cost per episode.

    Statistics of observations stand still during a rollout and its update, so that one policy acts and learns.
    """

    columns = COLUMNS
    handover = None

    def __init__(
        self, method: str, hyper: ConstrainedHyperparameters, params: Params, budget: Budget, cost: Any
    ):
        self.budget, self.cost = budget, cost
        size = len(params["actor"][0]["weight"])
        self.observations, self.rewards = no_moments((size,)), no_moments()
        params = params | {"normaliser": normaliser(self.observations)}
        self.state = OPTIMISERS[method].init_state(jax.tree.map(jnp.asarray, params), hyper)
        self.improve = compiled(method, hyper)
        self.params = jax.device_get(self.state.params)

    def update(self, rollout: Rollout, order: np.ndarray, learning_rate: float) -> dict[str, float | None]:
        """Learn from one rollout; a row of metrics, with `finite` among them."""
        cost = self.cost(rollout.fell, rollout.distance)
        ended = self.budget.add(cost, rollout.terminated | rollout.truncated)
        average = self.budget.average()
        self.rewards = merge(self.rewards, rollout.task_reward.reshape(-1))
        reward = (rollout.task_reward - self.rewards.mean) / deviation(self.rewards)
        reward = np.clip(reward, -REWARD_CLIP, REWARD_CLIP)
        signals = map(np.float32, (reward, cost, average - self.budget.limit))
        self.state, metrics = self.improve(self.state, rollout, *signals, order, np.float32(learning_rate))
        seen = rollout.observation.reshape(-1, rollout.observation.shape[-1])
        self.observations = merge(self.observations, seen)
        params = self.state.params | {"normaliser": normaliser(self.observations)}
        self.state = self.state._replace(params=params)
        self.params = jax.device_get(params)
        numbers = {name: float(x) for name, x in jax.device_get(metrics).items()}
        return dict.fromkeys(COLUMNS) | {
            "recovery_rate": 0.0,
            "episode_cost": average if self.budget.episodes else None,
            "cost_ended": float(sum(ended)),
            **numbers,
        }

    def cut(self) -> None:
        """Costs of the episodes in hand are forgotten with them."""
        self.budget.cut()

    def get_state(self) -> tuple[ConstrainedState, dict[str, Any]]:
        """Parameters, optimisers, statistics and the costs of recent episodes."""
        seen = {"observations": self.observations, "rewards": self.rewards}
        return (*jax.device_get(self.state), seen | {"budget": self.budget.get_state()})

    def set_state(self, state: Any) -> None:
        """Go on from `get_state`."""
        *numbers, memory = state
        self.state = ConstrainedState(*jax.tree.map(jnp.asarray, numbers))
        self.observations, self.rewards = Moments(*memory["observations"]), Moments(*memory["rewards"])
        self.budget.set_state(memory["budget"])
        self.params = jax.device_get(self.state.params)


def init_params(
    rng: np.random.Generator, observation_size: int, action_size: int, hidden: tuple[int, ...]
) -> Params:
    """Actor, critic and cost critic, all uniform within 1/sqrt(fan in) as OmniSafe starts them; sigma at one."""
    return {
        "actor": init_uniform(rng, [observation_size, *hidden, action_size]),
        "log_std": np.zeros(action_size, np.float32),
        "critic": init_uniform(rng, [observation_size, *hidden, 1]),
        "cost_critic": init_uniform(rng, [observation_size, *hidden, 1]),
    }
