"""What happened in a run, counted from its rollouts: falls, exits, segments and finished episodes."""

from typing import NamedTuple

import numpy as np

from safeexplorer.acting.trajectory import Rollout


class Episode(NamedTuple):
    """A finished episode."""

    update: int
    step: int  # of its last step in the rollout
    robot: int
    total_return: float  # of the task reward
    length: int
    fell: bool
    recovery_share: float


class Counts(NamedTuple):
    """Running totals of a run."""

    main_steps: int = 0
    recovery_steps: int = 0
    falls: int = 0
    episodes: int = 0
    exits: int = 0  # first steps outside the main-policy set
    succeeded: int = 0  # recovery segments that ended without a fall (re-entry or time limit)
    failed: int = 0  # recovery segments that ended in a fall


# [E] what goes on into the next rollout.
RUNNING = ("open", "running_return", "running_length", "running_recovery")


class Ledger:
    """Adds up rollouts that follow one another; episodes and segments may span several."""

    def __init__(self, num_envs: int):
        self.counts = Counts()
        self.open = np.zeros(num_envs, bool)  # in the middle of a recovery segment
        self.running_return = np.zeros(num_envs)
        self.running_length = np.zeros(num_envs, np.int64)
        self.running_recovery = np.zeros(num_envs, np.int64)

    def add(self, rollout: Rollout, update: int) -> list[Episode]:
        """Count one rollout; the episodes that ended in it, in order of time."""
        recovering, fell = rollout.recovering, rollout.fell
        ended = rollout.terminated | rollout.truncated
        stays_open = recovering & ~ended
        was_open = np.concatenate([self.open[None], stays_open[:-1]])
        self.open = stays_open[-1].copy()
        failed = int((recovering & fell).sum())
        closed = int((was_open & ~recovering).sum() + (recovering & ended).sum())
        new = Counts(
            main_steps=int((~recovering).sum()),
            recovery_steps=int(recovering.sum()),
            falls=int(fell.sum()),
            episodes=int(ended.sum()),
            exits=int((recovering & ~was_open).sum()),
            succeeded=closed - failed,
            failed=failed,
        )
        self.counts = Counts(*(a + b for a, b in zip(self.counts, new, strict=True)))
        return self._episodes(rollout, ended, update)

    def cut(self) -> None:
        """New episodes begin everywhere, the old ones never to be finished: a time limit for open segments."""
        self.counts = self.counts._replace(succeeded=self.counts.succeeded + int(self.open.sum()))
        for name in RUNNING:
            getattr(self, name)[:] = 0

    def reconcile(self, steps: int) -> None:
        """steps = main + recovery, and exits = succeeded + failed + open: anything else is a bug."""
        c, still_open = self.counts, int(self.open.sum())
        if steps != c.main_steps + c.recovery_steps:
            raise AssertionError(f"{steps} steps, but {c.main_steps} main + {c.recovery_steps} recovery")
        if c.exits != c.succeeded + c.failed + still_open:
            raise AssertionError(
                f"{c.exits} exits, but {c.succeeded} succeeded + {c.failed} failed + {still_open} open"
            )

    def _episodes(self, rollout: Rollout, ended: np.ndarray, update: int) -> list[Episode]:
        finished, all_fell = [], rollout.fell
        busy = ended.any(0)
        idle = np.flatnonzero(~busy)
        self.running_return[idle] += rollout.task_reward.T[idle].sum(1)
        self.running_length[idle] += len(ended)
        self.running_recovery[idle] += rollout.recovering.T[idle].sum(1)
        for robot in np.flatnonzero(busy).tolist():
            begin = 0
            for t in np.flatnonzero(ended[:, robot]):
                self._run_on(rollout, robot, slice(begin, t + 1))
                length = int(self.running_length[robot])
                share = float(self.running_recovery[robot] / length)
                fell = bool(all_fell[t, robot])
                total = float(self.running_return[robot])
                finished.append(Episode(update, int(t), robot, total, length, fell, share))
                self.running_return[robot] = self.running_length[robot] = self.running_recovery[robot] = 0
                begin = t + 1
            self._run_on(rollout, robot, slice(begin, None))
        return sorted(finished)

    def _run_on(self, rollout: Rollout, robot: int, steps: slice) -> None:
        self.running_return[robot] += rollout.task_reward[steps, robot].sum()
        self.running_length[robot] += len(rollout.recovering[steps, robot])
        self.running_recovery[robot] += rollout.recovering[steps, robot].sum()

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        return {"counts": np.array(self.counts, np.int64)} | {name: getattr(self, name) for name in RUNNING}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state taken by `get_state`."""
        self.counts = Counts(*(int(n) for n in state["counts"]))
        for name in RUNNING:
            setattr(self, name, state[name].copy())
