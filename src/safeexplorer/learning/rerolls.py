"""The analytic value under noise: the mean over several recoveries from the same triggering state."""

from __future__ import annotations

import numpy as np

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import Situation
from safeexplorer.acting.networks import Params, value
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.robots.simulation import Simulation

LANES = 64  # recoveries re-rolled side by side


class Reroller:
    """Notes the state at each segment's first step, and re-rolls the recovery from there.

    Every re-rolled recovery gives gamma^l V(s_end) on success and gamma^(l-1) r_term on failure; their mean over
    M - 1 joins the realised one in `labelling.average_rerolls`.
    """

    def __init__(self, env: Simulation, samples: int, gamma: float):
        self.env, self.extra, self.gamma = env, samples - 1, gamma
        self.world = Simulation(
            env.robot,
            LANES,
            action_noise=env.action_noise,
            max_episode_steps=env.max_episode_steps,
            autoreset=False,
        )
        self.world.reset(seed=0)
        self.starts: list[tuple[int, int]] = []
        self.states: list[dict[str, np.ndarray]] = []

    def note(self, step: int, robots: np.ndarray) -> None:
        """Keep the states in which robots enter a segment."""
        for robot in robots:
            self.starts.append((step, int(robot)))
            self.states.append(self.env.get_state([robot]))

    def fill(self, rollout: Rollout, collector: Collector, params: Params, progress: float, rng) -> Rollout:
        """The rollout with the re-rolled values at its segments' first steps."""
        total, count = np.zeros((2, *rollout.recovering.shape), np.float32)
        jobs = [job for job in range(len(self.starts)) for _ in range(self.extra)]
        for begin in range(0, len(jobs), LANES):
            lanes = jobs[begin : begin + LANES]
            for job, result in zip(
                lanes, self._recover(lanes, collector, params, progress, rng), strict=True
            ):
                total[self.starts[job]] += result
                count[self.starts[job]] += 1
        self.starts, self.states = [], []
        return rollout._replace(reroll_value=total / np.maximum(count, 1), reroll_count=count)

    def _recover(
        self, jobs: list[int], collector: Collector, params: Params, progress: float, rng
    ) -> np.ndarray:
        """The value of one recovery per job, each with randomness of its own."""
        world, lanes = self.world, np.arange(len(jobs))
        states = [self.states[job] for job in jobs]
        rows = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
        rows["rng"] = fresh_streams(world, rng, len(jobs))
        world.set_state(rows, ids=lanes)
        result, running, length = np.zeros(len(jobs)), np.ones(len(jobs), bool), 0
        while running.any():
            observation = world.observe()
            action = np.zeros(world.action_space.shape, np.float32)
            action[lanes], _ = collector.mixed.recover(observation[lanes], rng)
            observation, reward, terminated, truncated, info = world.step(action)
            length += 1
            situation = Situation(observation[lanes], info["distance"][lanes], info["episode_length"][lanes])
            outside = collector.mixed.intervention.takes_over(situation, progress)
            fell = running & terminated[lanes]
            back = running & ~fell & (~outside | truncated[lanes])
            end_value = value(params["critic"], observation[lanes].astype(np.float32), outside)
            result[fell] = self.gamma ** (length - 1) * reward[lanes][fell]
            result[back] = self.gamma**length * end_value[back]
            running &= ~(fell | back)
        return result


def fresh_streams(world: Simulation, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random-generator rows for `count` robots that share nothing with the robots they continue."""
    world.reset(seed=int(rng.integers(2**63)), options={"reset_mask": np.zeros(world.num_envs, bool)})
    return world.get_state(np.arange(count))["rng"]
