"""`SafeExplorer`: the method as a class, for any Gymnasium environment and any controller."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.accelerated.environments import is_jax_environment
from safeexplorer.acting.collector import Collector
from safeexplorer.acting.evaluation import Evaluation, evaluate
from safeexplorer.acting.handover import handed_over, radius_of
from safeexplorer.acting.interventions import (
    LAST,
    Intervention,
    NoIntervention,
    ReportedTakeovers,
    SafeRegion,
)
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.acting.schedules import Auto
from safeexplorer.adapters.inspection import NAMELESS, factories, name_of, normaliser_of
from safeexplorer.adapters.spaces import (
    describe_space,
    flat_action_space,
    flat_observation_space,
    in_space,
    rows_of,
    sizes_of,
    space_of,
)
from safeexplorer.audit import Audit, audit_collector
from safeexplorer.export.onnx import export_onnx
from safeexplorer.files.console import notice
from safeexplorer.files.interruption import Stopped
from safeexplorer.realtime import RobotLoop
from safeexplorer.realtime.world import loop_world
from safeexplorer.runs.display import TrainingDisplay
from safeexplorer.runs.jax_world import jax_settings, jax_world
from safeexplorer.runs.policies import make_learner, paid_params, restored_learner
from safeexplorer.runs.saved import read_saved, write_saved
from safeexplorer.runs.settings import Settings, from_dict, usual_method
from safeexplorer.runs.summary import read_summary
from safeexplorer.runs.trackers import TRACKERS
from safeexplorer.runs.training import Training, initial_generator, train
from safeexplorer.runs.world import check_fit, make_eval_env, make_world, robot_of

Callback = Callable[["SafeExplorer", dict[str, Any]], bool | None]
EVAL_EPISODES = 10  # of an id
# Of an action, halved: beyond, a standard deviation of 1 is no good beginning.
SMALL_RANGE, LARGE_RANGE = 0.25, 10.0
EVAL_EVERY = 4  # updates, where an eval_env is given and nothing else is said


class SafeExplorer:
    """PPO that stays correct while a recovery policy acts.

        agent = SafeExplorer("MyRobot-v0", recovery=my_controller, region=SafeRegion(distance=my_distance), seed=1)
        agent.learn(total_timesteps=1_000_000)
        action, _ = agent.predict(observation, deterministic=True)

    env: an id, a `gymnasium.Env`, a class or function that makes one, a list of such, a `VectorEnv` in any
        autoreset mode, an SB3 `VecEnv`, the `RobotLoop` of a physical robot, or an environment of Brax or
        MuJoCo Playground (docs/gpu.md).
    recovery: a callable [k, n] -> [k, m], anything with SB3's `predict`, an .onnx file, a shipped recovery by name.
    region: where the policy acts; or `intervention`, any object with `takes_over(situation, progress)`.
    fell: which terminations are falls, if not all: a function of one robot's last (observation, info), a key of `info`
        such as "crashed", or one negated, "not is_success". The others ended at a goal.
    env_kwargs: for `gymnasium.make`, where env is an id, or for the class that env is.
    tensorboard, wandb: True feeds the dashboard from the run's folder, a path from that folder.
    method: a row of the method table; `safeexplorer_auto` if not given, the paper's `safeexplorer` where the radius has
        a clock or the environment is in JAX. `settings`: any other field of `Settings`, such as gamma=0.98;
        learning_rate may be a function of progress, from 0 to 1.
    """

    def __init__(
        self,
        env: Any,
        recovery: Any = None,
        region: SafeRegion | None = None,
        *,
        method: str | None = None,
        intervention: Intervention | None = None,
        seed: int = 1,
        num_envs: int = 4,
        eval_env: Any = None,
        fell: Any = None,
        env_kwargs: Mapping[str, Any] | None = None,
        tensorboard: bool | str | os.PathLike = False,
        wandb: bool | str | os.PathLike = False,
        **settings: Any,
    ):
        gate = only_gate(region, intervention)
        robot, env = robot_of(env)
        count = len(env) if isinstance(env, list | tuple) else getattr(env, "num_envs", num_envs)
        said = {"method": method, "seed": seed, "num_envs": count, **settings}
        self.settings = settings_from(env, robot, gate, eval_env, said)
        self.settings.resolved()  # what is wrong there is said before anything is made
        if env_kwargs is not None:
            env = factories(env, num_envs, env_kwargs)
        if isinstance(env, RobotLoop):
            self.world = loop_world(self.settings, env, recovery, gate)
        else:
            make = make_world if self.settings.episode_length is None else jax_world
            self.world = make(self.settings, env, recovery, gate, eval_env, fell)
        rate, self.fell = settings.get("learning_rate"), fell
        self.world.learning_rate = rate if callable(rate) else None
        self.trackers = {"tensorboard": tensorboard, "wandb": wandb}
        if robot is None:
            self._notice_oddities()
        seen = {"num_envs": self.world.env.num_envs, "critic_observations": self.world.critic_size}
        self.settings = replace(self.settings, **seen)
        if self.settings.environment == NAMELESS:  # what the nameless function makes has a name
            self.settings = replace(self.settings, environment=name_of(self.world.env.env))
        complete = self.settings.resolved()
        check_fit(complete, self.world)
        self.observation_space, self.action_space = self.world.spaces
        self.learner = make_learner(complete, initial_generator(seed), self.world.sizes)
        self._begin()

    def _notice_oddities(self) -> None:
        """Words about an environment that trains, but hardly as its author expects."""
        if normaliser := normaliser_of(self.world.env):
            notice(
                f"{normaliser} hands on normalised observations: distance and recovery see those, not the robot's own "
                "units, and what they mean changes while it learns. Leave it out, or give both functions its scale"
            )
        if odd := [half for half in self.world.sizes.scale if not SMALL_RANGE <= half <= LARGE_RANGE]:
            notice(
                f"half the range of an action is {odd[0]:g}, and policies begin with a standard deviation near 1 in "
                "these units: rescale actions to about 1, as with gymnasium.wrappers.RescaleAction(env, -1, 1)"
            )

    def _begin(self) -> None:
        self.num_timesteps = 0
        self.summary: dict[str, Any] | None = None
        self._rng = np.random.default_rng([self.settings.seed, 1])

    # -- learning ------------------------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int,
        callback: Callback | Sequence[Callback] = (),
        folder: str | os.PathLike | None = None,
        progress_bar: bool = False,
    ) -> SafeExplorer:
        """Train for so many environment steps; again, and it goes on from where it is with a new curriculum.

        `folder` keeps the run as `safeexplorer train` does: settings, metrics, episodes, falls, checkpoints. If it
        holds the unfinished run of the same settings, that run is continued; without a folder nothing is kept.
        Each callback is called after every update with the agent and its row of metrics; False stops the training.
        """
        if self.world is None:
            raise ValueError("this agent was loaded without an environment; load it with env=... to train on")
        whole = isinstance(total_timesteps, float) and total_timesteps.is_integer()  # 1e6
        steps = int(total_timesteps) if whole else total_timesteps
        settings = replace(self.settings, steps=steps).resolved()
        callbacks = [callback] if callable(callback) else list(callback)
        homeless = [name for name, where in self.trackers.items() if where is True and folder is None]
        if homeless:
            raise ValueError(f"{homeless[0]} is True, which is the run's folder; give learn(folder=...) one")
        if folder is not None:
            return self._learn(settings, Path(folder), callbacks, progress_bar)
        with tempfile.TemporaryDirectory() as temporary:
            return self._learn(settings, Path(temporary), callbacks, progress_bar)

    def _learn(
        self, settings: Settings, folder: Path, callbacks: list[Callback], progress_bar: bool
    ) -> SafeExplorer:
        stopped_here, whole = False, settings.updates * settings.batch_size
        bar = TrainingDisplay(settings.label, whole) if progress_bar else None
        homes = {
            name: folder if where is True else Path(where) for name, where in self.trackers.items() if where
        }
        trackers = [TRACKERS[name](home) for name, home in homes.items()]

        def watch(run: Training, row: dict[str, Any]) -> bool:
            nonlocal stopped_here
            self.learner, self.num_timesteps = run.learner, int(row["steps"])
            if bar is not None:
                bar(run, row)
            for track in trackers:
                track(run, row)
            answers = [callback(self, row) for callback in callbacks]
            stopped_here = any(answer is False for answer in answers)
            return not stopped_here

        try:
            with bar or nullcontext():
                run = train(settings, folder, watch, self.world, self.learner.get_state())
        except Stopped:
            if not stopped_here:
                raise
            return self
        self.learner, self.num_timesteps = run.learner, run.update * settings.batch_size
        self.summary = read_summary(folder)
        return self

    # -- acting --------------------------------------------------------------------------------------------

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """The policy's action within the bounds, for one observation or many at once, flat or as the environment gives
        them; `state` passes through."""
        rows, alone = rows_of(observation, self.observation_space)
        if not np.isfinite(rows).all():
            raise ValueError("observation holds a number that is not finite; no action follows from it")
        noise = 0.0 if deterministic else draw_noise(self.learner.params, (len(rows),), self._rng)
        action = in_space(propose(self.learner.params, rows.astype(np.float32), noise), self.action_space)
        return (action[0] if alone else action), state

    def evaluate(self, env: Any = None, seed: int = 0, deterministic: bool = True) -> Evaluation:
        """The policy alone, recovery disabled: means over one episode in each environment of `env`.

        Without `env` it is judged in the environments it learns in, where the episodes in hand end with that.
        """
        if env is None and self.world is None:
            raise ValueError("this agent was loaded without an environment; give evaluate(env=...) one")
        intervention = self.world.intervention if self.world is not None else NoIntervention()
        eval_env = (
            self.world.env if env is None else make_eval_env(env, EVAL_EPISODES, intervention, self.fell)
        )
        alone = MixedPolicy(handed_over(intervention, self.learner.handover), recovery=None)
        return evaluate(self.learner.params, eval_env, alone, LAST, seed, deterministic)

    def audit(self, steps: int = 8192, progress: float = 0.0, seed: int = 0) -> Audit:
        """What the recovery does under this policy, and what an update would make of it (see `safeexplorer audit`).

        New episodes begin for it in the environments that the agent learns in.
        """
        world, settings = self.world, self.settings
        if world is None or world.recovery is None or world.sizes.choices:
            raise ValueError("an audit needs an environment with a recovery and a Box of actions")
        if settings.critic_observations:
            raise ValueError(
                "an audit needs a critic that sees what the policy sees; this one has its own observations"
            )
        count = world.env.num_envs
        if steps < count or steps % count:
            raise ValueError(f"steps is {steps}; allowed: a positive multiple of the {count} environments")
        sampled = settings.method_row().sampled_recovery
        collector = Collector(
            world.env, world.recovery, self._gate(progress), steps // count, sampled=sampled
        )
        collector.reset(seed)
        rng, how = np.random.default_rng(seed), {"hyper": settings.resolved().hyperparameters()}
        return audit_collector(
            collector, paid_params(self.learner), progress, rng, policy="the agent's", **how
        )

    def _gate(self, progress: float) -> Intervention:
        """Who acts: the caller's intervention, or the region that a hand-over has come to."""
        own, handover = self.world.intervention, self.learner.handover
        radius = None if handover is None else radius_of(handed_over(own, handover), progress)
        return own if radius is None else SafeRegion(radius, own.distance)

    # -- saving and exporting --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """One file with the policy, the optimiser and the settings; functions of yours are not in it."""
        spaces = [self.observation_space, self.action_space]
        return write_saved(path, self.settings, self.num_timesteps, spaces, self.learner.get_state())

    def export(self, path: str | os.PathLike, radius: float | None = None) -> dict[str, Any]:
        """The policy as an ONNX file, compared with `predict` first; with a radius also the gate (docs/deploy.md)."""
        facts = {"method": self.settings.method, "seed": self.settings.seed, "steps": self.num_timesteps}
        space = flat_action_space(self.action_space)
        return export_onnx(path, self.learner.params, space, region=radius, metadata=facts)

    @classmethod
    def load(cls, path: str | os.PathLike, env: Any = None, **arguments: Any) -> SafeExplorer:
        """A saved agent, or the newest policy of a run folder. It can `predict`.

        To `learn` on, give it the environment, recovery and region again.
        """
        saved = read_saved(path)
        bare = cls.__new__(cls)
        bare.world, bare.fell, bare.settings = None, None, saved.settings
        bare.observation_space, bare.action_space = saved.spaces
        bare.learner = restored_learner(bare.settings.resolved(), sizes_of(*saved.spaces), saved.arrays)
        bare._begin()
        agent = bare if env is None else bare._at(env, arguments, path)
        agent.num_timesteps = saved.num_timesteps
        return agent

    def _at(self, env: Any, arguments: dict[str, Any], path: str | os.PathLike) -> SafeExplorer:
        """The same agent in an environment, of another number of robots perhaps."""
        brought = ["robot", "environment", "recovery", "intervention"]  # by the caller, again
        if arguments.get("region") is not None or arguments.get("intervention") is not None:
            brought += ["schedule", "max_radius"]
        own = {name: value for name, value in self.settings.as_dict().items() if name not in brought}
        agent = type(self)(env, **own | arguments)
        observation, action = (
            space_of(describe_space(s)) for s in (agent.observation_space, agent.action_space)
        )
        known = self.observation_space  # older files hold the rows that it becomes
        if known not in (observation, flat_observation_space(observation)) or action != self.action_space:
            raise ValueError(f"{path} was trained on other spaces: {known} and {self.action_space}")
        agent.learner.set_state(self.learner.get_state())
        return agent


def only_gate(region: SafeRegion | None, intervention: Intervention | None) -> Intervention | None:
    """Who decides who acts, if the caller brought one."""
    if region is not None and intervention is not None:
        raise ValueError("region and intervention are both given; allowed: one of them")
    for name, who in (("region", region), ("intervention", intervention)):
        if who is not None and not callable(getattr(who, "takes_over", None)):
            raise ValueError(
                f"{name} is {who!r}; allowed: an object with takes_over, such as SafeRegion(...)"
            )
    return intervention or region


def settings_from(
    env: Any, robot: str | None, gate: Intervention | None, eval_env: Any, said: dict[str, Any]
) -> Settings:
    """What the caller said, and what follows from the rest for settings that were left out."""
    of_gate = settings_of(gate, env)
    in_jax, schedule = is_jax_environment(env), said.get("schedule", of_gate.get("schedule"))
    # In one compiled function nothing is measured.
    usual = Settings.method if in_jax else usual_method(schedule)
    method = usual if said["method"] is None else said["method"]
    own = jax_settings(method) if in_jax else {}
    given = {"robot": robot} | own | of_gate | said | {"method": method}
    if robot is None:
        given.setdefault("environment", name_of(env))
    if eval_env is not None:
        given.setdefault("eval_every", EVAL_EVERY)
    if callable(rate := given.get("learning_rate")):
        given |= {"learning_rate": first_rate(rate), "anneal": False}
    return from_dict(given)


def first_rate(rate: Callable[[float], float]) -> float:
    """At the start, where a run notes it; a function that is no rate somewhere is refused."""
    for progress in (0.0, 0.5, LAST):
        value = rate(progress)
        if not isinstance(value, int | float | np.number) or not 0 <= value < math.inf:
            raise ValueError(
                f"learning_rate({progress:g}) is {value!r}; allowed: a number of at least 0 at every progress in [0, 1)"
            )
    return float(rate(0.0))


def settings_of(intervention: Intervention | None, env: Any) -> dict[str, Any]:
    """What the region that the caller brings says about the settings."""
    who = env.pilot.intervention if isinstance(env, RobotLoop) else intervention
    if who is None:
        return {}
    if isinstance(who, SafeRegion) and isinstance(who.radius, Auto):
        largest = who.radius.largest
        return {"schedule": "auto", "max_radius": largest if math.isfinite(largest) else None}
    alien = {"begin_as_recovery": False} if isinstance(who, ReportedTakeovers) else {}
    return {"schedule": "linear"} | alien
