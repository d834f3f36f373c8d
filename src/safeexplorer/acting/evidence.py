"""What past rollouts say about the safe region: who came back from it, how often it is left, and when first.

Only rollouts that have been collected enter, so a radius chosen from this depends on the past alone.
"""

import math

import numpy as np

from safeexplorer.acting.trajectory import Rollout

PERIODS = 200  # whose exits are remembered
NEAR = 1.1  # exits from radii within this factor speak about a radius
LATELY = 5  # periods over which the exit rate is taken
EPISODES = 400  # whose first exits are remembered
QUANTILE = 1.645  # of the normal distribution: each end of an interval holds with 95% confidence
DOUBT = 0.05  # 1 - confidence of the bound on beta


def wilson_interval(successes: float, count: float, z: float = QUANTILE) -> tuple[float, float]:
    """(p + z^2/2n -+ z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n) around the share p; (0, 1) of nothing."""
    if count == 0:
        return 0.0, 1.0
    share, weight = successes / count, z * z / count
    half = z * math.sqrt(share * (1.0 - share) / count + weight / (4.0 * count))
    centre = share + weight / 2.0
    return max((centre - half) / (1.0 + weight), 0.0), min((centre + half) / (1.0 + weight), 1.0)


def bernstein_bound(samples: np.ndarray, largest: float, doubt: float = DOUBT) -> float:
    """An upper bound on the mean of samples in [0, largest], held with probability 1 - doubt:

    mean + sqrt(2 var ln(2/doubt) / n) + 7 largest ln(2/doubt) / (3 (n - 1)), the empirical Bernstein bound.
    """
    count, log_doubt = len(samples), math.log(2.0 / doubt)
    if count < 2:
        return largest
    spread = math.sqrt(2.0 * float(samples.var(ddof=1)) * log_doubt / count)
    return min(float(samples.mean()) + spread + 7.0 * largest * log_doubt / (3.0 * (count - 1)), largest)


class Exits:
    """How the exits of the last periods ended, with the radius that they left.

    An exit that came back or was still up at the time limit ended well; a fall, with or without an exit before it, did
    not. An exit whose end a rollout does not show is counted when it is known. What happens in an episode before the
    policy first acts says nothing about it: a start that nobody could have saved is no exit.
    """

    def __init__(self, num_envs: int):
        # radius, ended, falls, exits, steps of the policy, all steps; the newest last
        self.periods = np.zeros((PERIODS, 6))
        self.count = 1  # periods so far, the present one with them
        self.open = np.zeros(num_envs, bool)  # out of the region now, after the policy had acted
        self.acted = np.zeros(num_envs, bool)  # the policy, in the episode in hand

    def add(self, rollout: Rollout, radius: float) -> None:
        """Count one rollout, collected with `radius`, in the present period."""
        ended, fell = rollout.terminated | rollout.truncated, rollout.fell
        main, acted = ~rollout.recovering, self._acted(rollout.recovering, ended)
        out = rollout.recovering & acted
        stays_open = out & ~ended
        was_open = np.concatenate([self.open[None], stays_open[:-1]])
        self.open = stays_open[-1].copy()
        closed = (was_open & main).sum() + (out & ended).sum()
        falls, unannounced = (fell & acted).sum(), (fell & main).sum()
        self.periods[-1, 0] = radius
        counts = closed + unannounced, falls, (out & ~was_open).sum(), main.sum(), fell.size
        self.periods[-1, 1:] += counts

    def _acted(self, recovering: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """[T, E]: has the policy acted in this episode, up to this step?"""
        count = np.arange(1, len(ended) + 1)[:, None]
        begins = np.concatenate([np.zeros_like(ended[:1]), ended[:-1]])
        begun = np.maximum.accumulate(np.where(begins, count, 0))
        last = np.maximum.accumulate(np.where(recovering, 0, count))
        acted = np.where(begun > 0, last >= begun, self.acted | (last > 0))
        self.acted = acted[-1] & ~ended[-1]
        return acted

    def next_period(self) -> None:
        """What comes now is counted apart."""
        self.periods = np.concatenate([self.periods[1:], np.zeros((1, 6))])
        self.count = min(self.count + 1, PERIODS)

    def near(self, radius: float) -> tuple[int, int]:
        """Exits near `radius` that have ended, and the falls among them."""
        radii, ended, falls = self.periods[-self.count :, :3].T
        near = (radii * NEAR >= radius) & (radii <= radius * NEAR)
        return int(ended[near].sum()), int(falls[near].sum())

    def safe_share(self, radius: float) -> tuple[float, float]:
        """Between which shares, each with 95% confidence, the exits near `radius` end without a fall."""
        ended, falls = self.near(radius)
        return wilson_interval(ended - falls, ended)

    def radii(self) -> np.ndarray:
        """Of the periods that are remembered."""
        return self.periods[-self.count :, 0]

    def period(self) -> tuple[int, int]:
        """Of the present period: falls, and steps."""
        return int(self.periods[-1, 2]), int(self.periods[-1, 5])

    def rate(self) -> float:
        """Exits per step of the policy, lately: the mean invariance slack."""
        exits, main = self.periods[-min(LATELY, self.count) :, 3:5].sum(0)
        return float(exits / max(main, 1.0))

    def cut(self) -> None:
        """New episodes begin everywhere: how open exits would have ended is never known."""
        self.open, self.acted = np.zeros_like(self.open), np.zeros_like(self.acted)

    def get_state(self) -> dict[str, np.ndarray]:
        own = {"periods": self.periods, "open": self.open, "acted": self.acted}
        return {name: array.copy() for name, array in own.items()} | {"count": np.array(self.count)}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self.periods, self.count = state["periods"].copy(), int(state["count"])
        if state["open"].shape == self.open.shape:  # else they are other robots
            self.open, self.acted = state["open"].copy(), state["acted"].copy()


class FirstExits:
    """When each of the last episodes first left the region: until then the policy alone and the mixed one are one.

    With tau the step of the first exit, beta <= E[gamma^tau], and the two undiscounted returns of an episode differ
    by at most 2 r_max (L - tau) with L its longest length. Both are seen in mixed rollouts, whatever comes after.
    """

    def __init__(self, num_envs: int):
        self.when = np.full(EPISODES, -1, np.int64)  # tau, -1 where the episode ended inside; the newest last
        self.filled = 0
        self.age = np.zeros(num_envs, np.int64)  # of the episode in hand
        # Nothing is to be learned from the rest of the episode in hand.
        self.settled = np.ones(num_envs, bool)
        self.longest, self.largest_reward = 0, 0.0

    def add(self, rollout: Rollout) -> None:
        """Follow every episode to its first exit or to its end."""
        ended = rollout.terminated | rollout.truncated
        self.largest_reward = max(self.largest_reward, float(np.abs(rollout.task_reward).max()))
        for robot in range(ended.shape[1]):
            begin = 0
            for end in [*np.flatnonzero(ended[:, robot]), None]:
                self._follow(rollout.recovering[begin : None if end is None else end + 1, robot], robot)
                if end is not None:
                    self._end(robot)
                    begin = end + 1

    def _follow(self, recovering: np.ndarray, robot: int) -> None:
        if not self.settled[robot] and recovering.any():
            self._note(self.age[robot] + int(recovering.argmax()))
            self.settled[robot] = True
        self.age[robot] += len(recovering)

    def _end(self, robot: int) -> None:
        if not self.settled[robot]:
            self._note(-1)
        self.longest = max(self.longest, int(self.age[robot]))
        self.age[robot], self.settled[robot] = 0, False

    def _note(self, when: int) -> None:
        self.when = np.append(self.when[1:], when)
        self.filled = min(self.filled + 1, EPISODES)

    def bounds(self, gamma: float) -> tuple[float, float]:
        """Of beta and of |J_mix - J| (undiscounted), each with 95% confidence, averaged over the episodes' policies."""
        when = self.when[EPISODES - self.filled :]
        left = when >= 0
        beta = bernstein_bound(np.where(left, gamma ** np.maximum(when, 0), 0.0), 1.0)
        rest = np.where(left, self.longest - when, 0)
        return beta, 2.0 * self.largest_reward * bernstein_bound(rest, float(self.longest))

    def cut(self) -> None:
        """New episodes begin everywhere."""
        self.age, self.settled = np.zeros_like(self.age), np.zeros_like(self.settled)

    def get_state(self) -> dict[str, np.ndarray]:
        limits = np.array([self.filled, self.longest, self.largest_reward])
        return {
            "when": self.when.copy(),
            "age": self.age.copy(),
            "settled": self.settled.copy(),
            "limits": limits,
        }

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self.when = state["when"].copy()
        if state["age"].shape == self.age.shape:  # else they are other robots
            self.age, self.settled = state["age"].copy(), state["settled"].copy()
        self.filled, self.longest = int(state["limits"][0]), int(state["limits"][1])
        self.largest_reward = float(state["limits"][2])
