"""The analytic value under noise: the mean over several recoveries from the same triggering state."""

import numpy as np

from safeexplorer.acting.collector import Collector
from safeexplorer.acting.interventions import Situation
from safeexplorer.acting.networks import Params, value
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.files.checkpoint import state_of
from safeexplorer.recovery.protocol import CheckedRecovery
from safeexplorer.robots.simulation import Simulation

LANES = 64  # recoveries re-rolled side by side


class Reroller:
    """Notes the state at each segment's first step, and re-rolls the recovery from there.

    Every re-rolled recovery gives gamma^l V(s_end) on success and gamma^(l-1) r_term on failure; their mean over
    M - 1 joins the realised one in `labelling.average_rerolls`.
    """

    def __init__(self, env: Simulation, recovery: CheckedRecovery, samples: int, gamma: float):
        self.env, self.recovery, self.extra, self.gamma = env, recovery, samples - 1, gamma
        same = {"action_noise": env.action_noise, "max_episode_steps": env.max_episode_steps}
        self.world = Simulation(env.robot, LANES, autoreset=False, **same)
        self.world.reset(seed=0)
        self.starts: list[tuple[int, int]] = []
        self.states: list[dict[str, np.ndarray]] = []
        self.memories: list[dict[str, np.ndarray]] = []  # of the recovery, before it acted

    def note(self, step: int, robots: np.ndarray) -> None:
        """Keep the states in which robots enter a segment, and the recovery's memory."""
        memory = state_of(self.recovery)
        for robot in robots:
            self.memories.append(memory)
            self.starts.append((step, int(robot)))
            self.states.append(self.env.get_state([robot]))

    def fill(self, rollout: Rollout, collector: Collector, params: Params, progress: float, rng) -> Rollout:
        """The rollout with the re-rolled values at its segments' first steps."""
        total, count = np.zeros((2, *rollout.recovering.shape), np.float32)
        jobs = [job for job in range(len(self.starts)) for _ in range(self.extra)]
        before = state_of(self.recovery)
        side_by_side = 1 if before else LANES  # each re-roll of a recovery with a memory starts from its own
        for begin in range(0, len(jobs), side_by_side):
            lanes = jobs[begin : begin + side_by_side]
            if before:
                self.recovery.set_state(self.memories[lanes[0]])
            results = self._recover(lanes, collector, params, progress, rng)
            for job, result in zip(lanes, results, strict=True):
                total[self.starts[job]] += result
                count[self.starts[job]] += 1
        if before:
            self.recovery.set_state(before)
        self.starts, self.states, self.memories = [], [], []
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
