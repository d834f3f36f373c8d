"""The code that trains against independent arithmetic: who acts when, curricula, the rollout."""

from types import SimpleNamespace

import jax
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import JumpStart, SafeRegion, Situation, StateShield
from safeexplorer.acting.schedules import constant, interpolate, linear, logarithmic, step
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.training import Training
from safeexplorer.theory.check import Check, at_most
from safeexplorer.theory.update import EXACT


def who_acts() -> Check:
    """Corollaries 2, 8 and 9: on the edge, inside, outside, and where the distance is not known."""
    situation = Situation(
        np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0.5, 0.4, 0.6, np.nan]), np.arange(4)
    )
    cases = (
        (SafeRegion(constant(0.5)), [False, False, True, True]),
        (JumpStart(constant(2)), [True, True, False, False]),
        (StateShield(lambda o: o[:, 0] > 0.5), [False, False, True, True]),
    )
    wrong = sum(int((who.takes_over(situation, 0.0) != expected).sum()) for who, expected in cases)
    return at_most("Corollaries 2, 8, 9", "states at which the wrong one acts", wrong, 0, states=12)


def curricula() -> Check:
    """Appendix: the radius of every shape at four points of training."""
    cases = {
        linear: (0.1, 0.3, 0.5, 0.88),
        interpolate: (0.1, 0.275, 0.45, 0.7825),
        logarithmic: (0.1, *(0.1 + 0.8 * np.log10([3.25, 5.5, 9.775]))),
        step: (0.1, 0.3, 0.5, 0.9),
    }
    points = (0.0, 0.25, 0.5, 0.975)
    error = max(
        abs(shape(0.1, 0.8)(at) - radius)
        for shape, radii in cases.items()
        for at, radius in zip(points, radii, strict=True)
    )
    return at_most("Curriculum", "|radius - by hand| over four shapes", error, EXACT)


def schedules() -> Check:
    """Algorithm 1: update u of N sees the progress (u - 1) / N, and the step size falls with it."""
    settings = Settings(num_envs=1, rollout_steps=10, steps=45, learning_rate=0.5)
    run = SimpleNamespace(settings=settings, world=SimpleNamespace(learning_rate=None))
    error = 0.0
    for update, progress in enumerate((0.0, 0.25, 0.5, 0.75), start=1):
        error = max(error, abs(settings.progress(update) - progress))
        error = max(error, abs(Training.learning_rate(run, progress) - 0.5 * (1.0 - progress)))
    return at_most("Algorithm 1", "|progress and step size - by hand|", error, EXACT)


class Line:
    """Robots on a line, pushed by their actions; beyond 2 they fall, after 5 steps time is up; one does both."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    num_envs = 3
    single_observation_space = Box(-np.inf, np.inf, (2,))
    single_action_space = Box(-1.0, 1.0, (1,))

    def __init__(self):
        self.sent, self.seen = [], []

    def reset(self, seed: int | None = None):
        self.x, self.t = np.array([0.0, 0.6, -0.7]), np.zeros(3)
        return self._look(), {"distance": np.abs(self.x)}

    def _look(self) -> np.ndarray:
        return np.stack([self.x, self.t], 1)

    def step(self, action: np.ndarray):
        self.sent.append(np.array(action))
        self.x = self.x + np.clip(action[:, 0], -1, 1)
        self.t = self.t + 1
        fell, late = np.abs(self.x) > 2.0, self.t >= 5
        last, ended = self._look(), fell | late
        info = {"final_obs": last, "_final_obs": ended, "final_info": {"distance": np.abs(last[:, 0])}}
        self.x, self.t = np.where(ended, 0.7, self.x), np.where(ended, 0.0, self.t)
        self.seen.append((last, 1.0 - np.abs(last[:, 0]), fell, late & ~fell))
        news = info if ended.any() else {}
        return self._look(), self.seen[-1][1], fell, late, news | {"distance": np.abs(self.x)}


def rollout_by_hand() -> list[Check]:
    """Equation (partition-policy): outside the region the recovery's action is sent and kept, inside the policy's."""
    env, radius = Line(), 0.5
    recovery = SimpleNamespace(act=lambda o: np.where(o[:, :1] > 0, -0.25, -0.3))
    collector = Collector(env, recovery, SafeRegion(constant(radius)), 12)
    collector.reset(0)
    params = jax.tree.map(
        lambda x: x.astype(np.float32), init_actor_critic(np.random.default_rng(0), 2, 1, (3,))
    )
    rollout = collector.collect(params, 0.0, np.random.default_rng(1))
    outside = np.abs(rollout.observation[..., 0]) > radius
    caught = recovery.act(rollout.observation.reshape(-1, 2)).reshape(12, 3, 1)
    expected = np.where(outside[..., None], caught, rollout.proposed)
    sent, (last, reward, fell, late) = np.stack(env.sent), map(np.stack, zip(*env.seen, strict=True))
    pairs = [(sent, expected), (rollout.action, expected), (rollout.task_reward, reward)]
    pairs.append((rollout.next_observation, last))
    error = max(float(np.abs(a - b).max()) for a, b in pairs)
    flags = [(rollout.recovering, outside), (rollout.terminated, fell), (rollout.truncated, late)]
    flags.append((rollout.next_outside, np.abs(last[..., 0]) > radius))
    wrong = sum(int((a != b).sum()) for a, b in flags)
    claim, share = "Eq. (partition-policy)", outside.mean()
    return [
        at_most(claim, "|sent and stored - by hand|", error, 1e-6, recovering=share, falls=fell.sum()),
        at_most(claim, "flags unlike the environment's and the region's", wrong, 0, time_limits=late.sum()),
    ]


def training_checks() -> list[Check]:
    """Everything about the code that acts."""
    return [who_acts(), curricula(), schedules(), *rollout_by_hand()]
