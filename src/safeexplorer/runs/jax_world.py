"""An environment written in JAX as the world of a run: one compiled function collects from it and learns."""

from typing import Any

import numpy as np

from safeexplorer.accelerated.environments import JaxEnvironments
from safeexplorer.accelerated.fleet import Fleet, host_rollout
from safeexplorer.accelerated.rollout import Crew
from safeexplorer.accelerated.vector import SEEDS, JaxVector
from safeexplorer.acting.interventions import Intervention, NoIntervention, SafeRegion
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.methods import CONSTRAINED, METHODS, get_method
from safeexplorer.recovery import as_recovery, interface_between
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.world import World

EPISODE_LENGTH = 1000  # as Brax and Playground have it
HOST_ONLY = ("begin_as_recovery", "hold_spread", "limit_updates", "scale_rewards", "sampled_recovery")


def jax_settings(method: str) -> dict[str, Any]:
    """What is usual for thousands of robots: short rollouts cut most segments, and the gate waits for their ends."""
    row = get_method(method)
    own = {"episode_length": EPISODE_LENGTH, "exits_per_update": 0, "falls_kept": 0}
    return own | {
        "wait_for_outcomes": row.gate == "hard",
        "normalise_observations": method not in CONSTRAINED,
    }


def jax_world(
    settings: Settings, env: Any, recovery: Any, intervention: Intervention | None, eval_env: Any, fell: Any
) -> World:
    """From what the caller of the class gave."""
    refuse(settings, recovery)
    method = settings.method_row()
    if method.intervenes and (intervention is None or recovery is None):
        what = "where the policy acts: region=SafeRegion(...)" if intervention is None else "a recovery"
        raise ValueError(f"method {method.name!r} needs {what}; with method 'ppo' nobody takes over")
    if not method.intervenes:
        intervention, recovery = NoIntervention(), None

    def copies(env: Any, count: int) -> JaxEnvironments:
        source = getattr(intervention, "distance", None)
        return JaxEnvironments(env, count, settings.episode_length, settings.start_states, source, fell)

    vector = JaxVector(copies(env, settings.num_envs))
    fleet = Fleet(
        Crew(vector.copies, intervention, recovery), settings.rollout_steps, settings.hyperparameters()
    )
    collector = FleetCollector(fleet, intervention)
    judge = (
        copies(env if eval_env is None else eval_env, settings.eval_episodes) if settings.eval_every else None
    )
    return World(
        env=vector,
        intervention=intervention,
        recovery=None if recovery is None else on_the_host(recovery, vector),
        eval_env=None if judge is None else JaxVector(judge),
        make_collector=lambda env, recovery, *_, **__: collector.beside(recovery),
        collect=collector.update,
        critic_size=vector.copies.critic_size,
    )


def refuse(settings: Settings, recovery: Any) -> None:
    """What only environments on the host can do."""
    if settings.method in CONSTRAINED:
        raise ValueError(
            f"method is {settings.method!r}; allowed with a JAX environment: {', '.join(METHODS)}"
        )
    if settings.schedule == "auto":
        raise ValueError(
            "schedule is 'auto'; allowed with a JAX environment: a radius that is a number or a clock's"
        )
    for name in HOST_ONLY:
        if getattr(settings.method_row(), name):
            raise ValueError(f"{name} is True; allowed with a JAX environment: False")
    for name in ("exits_per_update", "falls_kept"):
        if getattr(settings, name):
            raise ValueError(f"{name} is {getattr(settings, name)}; allowed with a JAX environment: 0")
    if recovery is not None and (not callable(recovery) or hasattr(recovery, "predict")):
        raise ValueError(f"recovery is {recovery!r}; allowed with a JAX environment: a function of jax.numpy")


def on_the_host(recovery: Any, env: JaxVector) -> Any:
    """The same recovery for evaluations and comparisons."""
    interface = interface_between("the environment", env.single_observation_space, env.single_action_space)

    def act(observation: np.ndarray) -> np.ndarray:
        return np.clip(np.asarray(recovery(np.asarray(observation, np.float32))), -1.0, 1.0)

    act.__name__ = getattr(recovery, "__name__", type(recovery).__name__)
    return as_recovery(act, interface)


class FleetCollector:
    """What a run asks of a collector, for robots on the device. A run that is resumed begins new episodes."""

    def __init__(self, fleet: Fleet, intervention: Intervention):
        self.fleet, self.intervention, self.observer = fleet, intervention, None

    def beside(self, recovery: Any) -> "FleetCollector":
        """With the recovery as evaluations ask it."""
        self.mixed = MixedPolicy(self.intervention, recovery)
        return self

    def reset(self, seed: int) -> None:
        """Start new episodes everywhere."""
        self.fleet.reset(seed % SEEDS)
        envs, state = self.fleet.crew.envs, self.fleet.robots.state
        self.observation = np.asarray(envs.policy_rows(envs.rows(state)))
        if isinstance(self.intervention, SafeRegion) and np.isnan(np.asarray(envs.distance(state))).all():
            raise ValueError("distance is NaN for all robots after a reset; allowed: numbers of at least 0")

    def update(self, run: Any, progress: float) -> tuple[Rollout, dict[str, Any]]:
        """Collect and learn; what is counted of the rollout, and the learner's row."""
        run.records.exits.begin(run.update, run.radius(progress), run.streams.record)
        counted, row = self.fleet.update(run.learner, run.update, progress, run.learning_rate(progress))
        return host_rollout(counted, self.fleet.crew.envs.action_size), {"waiting": None} | row

    def get_state(self) -> dict[str, np.ndarray]:
        return {"episode": np.asarray(self.fleet.robots.episode)}

    def set_state(self, state: dict[str, np.ndarray]) -> bool:
        return False
