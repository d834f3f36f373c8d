"""Algorithm 1: collect, learn, record, save."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from safeexplorer.acting.accounting import Ledger
from safeexplorer.acting.evaluation import evaluate
from safeexplorer.acting.handover import handed_over, radius_of
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.networks import Params
from safeexplorer.acting.policy import is_gaussian
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.checkpoint import checkpoints, load_latest, refuse_orphans
from safeexplorer.files.interruption import Stopped, stop_requests
from safeexplorer.files.locks import exclusive
from safeexplorer.files.tables import Mark
from safeexplorer.files.writing import sweep, write_json
from safeexplorer.learning.rerolls import Reroller
from safeexplorer.runs.policies import make_learner
from safeexplorer.runs.record import LEARNER_COLUMNS, RunRecord
from safeexplorer.runs.saving import restore_run, save_run
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.stretches import write_facts
from safeexplorer.runs.summary import TRAILING, summarise_run
from safeexplorer.runs.world import World, check_fit, robot_world


class Streams(NamedTuple):
    """Independent sources of randomness, all from the one seed."""

    actor: np.random.Generator
    order: np.random.Generator
    record: np.random.Generator


def seeds(seed: int) -> list[np.random.SeedSequence]:
    """Of the first parameters, of the robots and of the streams."""
    return np.random.SeedSequence(seed).spawn(2 + len(Streams._fields))


def initial_generator(seed: int) -> np.random.Generator:
    """From which the first parameters of a run are drawn."""
    return np.random.default_rng(seeds(seed)[0])


class Training:
    """One run: the robots, the learner, the counts, and the files in its folder."""

    def __init__(self, settings: Settings, folder: Path, world: World | None = None):
        self.settings, self.folder = settings, folder
        _, env_seed, *children = seeds(settings.seed)
        self.env_seed = int(env_seed.generate_state(1, np.uint64)[0])
        self.streams = Streams(*(np.random.default_rng(child) for child in children))
        self.owns_world = world is None
        self.world = world = robot_world(settings) if world is None else world
        self.env, self.recovery = world.env, world.recovery
        check_fit(settings, world)
        self.learner = make_learner(settings, initial_generator(settings.seed), world.sizes)
        self.handover = self.learner.handover
        self.intervention = handed_over(world.intervention, self.handover)
        who, sampled = (self.env, self.recovery, self.intervention), settings.method_row().sampled_recovery
        self.collector = world.make_collector(*who, settings.rollout_steps, sampled=sampled)
        if self.handover is not None and self.collector.physical:
            self.handover.spare_the_robot()
        self.collector.reset(self.env_seed)
        self.ledger = Ledger(self.env.num_envs)
        self.trailing: deque[float] = deque(maxlen=TRAILING)
        self.update, self.seconds = 0, 0.0
        self.saved = -1  # the update of the last checkpoint
        self.asked_to_stop = threading.Event()
        many = settings.analytic_samples > 1
        self.reroller = (
            Reroller(self.env, self.recovery, settings.analytic_samples, settings.gamma) if many else None
        )

    @property
    def params(self) -> Params:
        """The policy's parameters as numpy arrays."""
        return self.learner.params

    # -- one update ----------------------------------------------------------------------------------------

    def run_update(self) -> dict[str, Any]:
        """Update u of N, and its row of metrics."""
        began = time.perf_counter()
        self.update += 1
        progress = self.settings.progress(self.update)
        try:
            rollout, learned = self.world.collect(self, progress)
        except BaseException:  # this update has not happened
            self.update -= 1
            if not self.collector.get_state():  # a robot, whose run goes on between rollouts
                self.save()
            raise
        radius = self.radius(progress)  # of the rollout: an automatic one changes with the update
        learned = self.finite(self.learn(rollout, progress) if learned is None else learned)
        row = self.record(rollout, {"radius": radius} | learned, progress)
        self.seconds += time.perf_counter() - began
        return row

    def collect(self, progress: float) -> Rollout:
        """T steps under the mixed policy."""
        self.records.exits.begin(self.update, self.radius(progress), self.streams.record)
        if self.handover is not None:
            self.collector.rehearsal = self.handover.rehearsal(is_gaussian(self.params))
        rollout = self.collector.collect(self.params, progress, self.streams.actor)
        if self.reroller is not None:
            rollout = self.reroller.fill(rollout, self.collector, self.params, progress, self.streams.record)
        if self.radius(progress) is not None and np.isnan(rollout.distance).all():
            raise ValueError(
                f"the distance was NaN at every step of update {self.update}: nobody was inside; allowed: numbers"
            )
        return rollout

    def learn(self, rollout: Rollout, progress: float) -> dict[str, float]:
        """Epochs of minibatches."""
        size, epochs = self.settings.batch_size, self.settings.epochs
        order = np.stack([self.streams.order.permutation(size) for _ in range(epochs)]).astype(np.int32)
        return self.learner.update(rollout, order, self.learning_rate(progress))

    def finite(self, learned: dict[str, float]) -> dict[str, float]:
        """A row of metrics; parameters that are not finite are refused and the run stops."""
        if not learned.pop("finite"):
            raise FloatingPointError(
                f"update {self.update} gave non-finite parameters; the last checkpoint in {self.folder} stands"
            )
        return learned

    def compile(self, rollout: Rollout) -> None:
        """Updates that leave no trace, to compile them before it matters how long it takes."""
        state, size = self.learner.get_state(), self.settings.batch_size
        order = np.tile(np.arange(size, dtype=np.int32), (self.settings.epochs, 1))
        self.learner.update(rollout, order, 0.0)
        if self.handover is not None and self.handover.alone:
            self.handover.alone = False
            self.learner.update(rollout, order, 0.0)
        self.learner.set_state(state)

    def record(self, rollout: Rollout, learned: dict[str, Any], progress: float) -> dict[str, Any]:
        """The update's row of metrics, its episodes and, every so often, an evaluation."""
        steps = self.update * self.settings.batch_size
        episodes = self.ledger.add(rollout, self.update)
        self.ledger.reconcile(steps)
        returns = [episode.total_return for episode in episodes]
        self.trailing.extend(returns)
        row = {
            "update": self.update,
            "steps": steps,
            "learning_rate": self.learning_rate(progress),
            "return_mean": float(np.mean(returns)) if returns else None,
            "return_trailing": float(np.mean(self.trailing)) if self.trailing else None,
            **self.ledger.counts._asdict(),
            "open": int(self.ledger.open.sum()),
            **dict.fromkeys(LEARNER_COLUMNS),
            **learned,
        }
        self.records.add_update(row, episodes, rollout)
        if self.world.eval_env is not None and self.update % self.settings.eval_every == 0:
            self.evaluate(row, progress)
        return row

    def evaluate(self, row: dict[str, Any], progress: float) -> None:
        """J, with the policy's noise and without, and J_mix (Theorem 2): one policy, equal starts."""
        seed = int(np.random.SeedSequence([self.settings.seed, self.update]).generate_state(1)[0])
        judge = partial(evaluate, self.params, self.world.eval_env, progress=progress, seed=seed)
        alone, mixed = MixedPolicy(self.intervention, None), None
        if self.recovery is not None:
            memory = self.recovery.get_state()
            mixed = judge(self.collector.mixed, deterministic=False)
            self.recovery.set_state(memory)
        self.records.add_evaluation(row, judge(alone, deterministic=False), mixed)
        self.records.add_evaluation(row, judge(alone, deterministic=True), deterministic=True)

    def radius(self, progress: float) -> float | None:
        """d of the safe region now; None for other interventions."""
        return radius_of(self.intervention, progress)

    def learning_rate(self, progress: float) -> float:
        """lr (1 - (u - 1) / N), or the caller's own function of progress."""
        if self.world.learning_rate is not None:
            return float(self.world.learning_rate(progress))
        return self.settings.learning_rate * (1.0 - progress if self.settings.anneal else 1.0)

    def open_records(self, marks: dict[str, Mark]) -> None:
        """Open the files of the run, each cut back to where the checkpoint left it."""
        note = self.reroller.note if self.reroller is not None else None
        self.records = RunRecord(self.folder, self.settings, self.world, self.learner.columns, marks, note)
        self.collector.observer = self.records

    def save(self) -> None:
        """A checkpoint from which the run continues bit for bit; one that was saved already stays untouched."""
        if self.saved != self.update:
            save_run(self)
            self.saved = self.update

    def seals(self) -> dict[str, dict[str, Any]]:
        """The length and the SHA-256 of every record."""
        digests = self.records.digests()
        return {name: {"bytes": n, "sha256": digests[name]} for name, n in self.records.offsets().items()}

    def close(self) -> None:
        self.records.close()
        if self.owns_world:
            self.env.close()


def train(
    settings: Settings,
    folder: Path,
    watch: Callable[[Training, dict[str, Any]], Any] = lambda run, row: None,
    world: World | None = None,
    learner_state: Any = None,
    exact: bool = False,
    start_over: bool = False,
) -> Training:
    """Run to the end, from the start or from the last checkpoint in `folder`; on a built-in robot or on `world`.

    SIGTERM, SIGINT and SIGHUP, and a `watch` that returns False, finish the update in hand, save and raise
    `Stopped`; whatever else `watch` raises, the update is saved first.
    A new run starts from `learner_state` (of `Learner.get_state`) where it is given. `exact` refuses to go on under
    other versions; `start_over` wipes records whose checkpoints are gone.
    """
    settings = settings.resolved()
    with exclusive(folder), stop_requests() as asked_to_stop:
        run = open_run(settings, folder, world, learner_state, exact, start_over)
        run.asked_to_stop = asked_to_stop
        try:
            run.world.begin(run)
            while run.update < settings.updates:
                advance(run, watch)
            write_json(folder / "summary.json", summarise_run(folder, run.seconds) | {"records": run.seals()})
        finally:
            with closing(run):
                run.world.finish()
    return run


def advance(run: Training, watch: Callable[[Training, dict[str, Any]], Any]) -> None:
    """One update, shown, and saved where it is due."""
    row, last = run.run_update(), run.update == run.settings.updates
    stop = True  # unless the watch comes back and says otherwise
    try:
        stop = watch(run, row) is False or run.asked_to_stop.is_set()
    finally:
        if last or stop or run.update % run.settings.checkpoint_every == 0:
            run.save()
    if stop and not last:
        raise Stopped(f"stopped after update {run.update} of {run.settings.updates}")


def open_run(
    settings: Settings,
    folder: Path,
    world: World | None = None,
    learner_state: Any = None,
    exact: bool = False,
    start_over: bool = False,
) -> Training:
    """A new run, or the one in `folder` as its last whole checkpoint left it."""
    run = Training(settings, folder, world)
    sweep(folder)
    found = load_latest(folder / "checkpoints")
    if found is not None:
        restore_run(run, *found, exact)
        return run
    if not start_over:
        refuse_orphans(folder, settings.checkpoint_every)
    if learner_state is not None:
        run.learner.set_state(learner_state)
    for left in [folder / "summary.json", folder / "replay.json", *(folder / "falls").glob("*.npz")]:
        left.unlink(missing_ok=True)
    write_facts(folder, settings, run.world, run.collector.observation)
    (folder / "checkpoints").mkdir(exist_ok=True)
    run.open_records({})
    return run


def has_checkpoint(folder: Path) -> bool:
    """Is there anything to resume?"""
    return bool(checkpoints(folder / "checkpoints"))
