"""Episodes in hand, remembered so that a resumed run can repeat them."""

import numpy as np
from gymnasium.spaces import flatten
from gymnasium.vector import SyncVectorEnv

from safeexplorer.acting.streams import WORDS, generator_of, words_of


class EpisodeMemory:
    """How the episodes in hand began and what was done in them, so that they can be repeated exactly.

    It works for environments that are deterministic given their `np_random`, as Gymnasium asks of them. Where that is
    no PCG64, as with dm_control's, only the first episodes of a run can be repeated.
    """

    def __init__(self, env: SyncVectorEnv):
        self.env = env
        self.seed = np.full(env.num_envs, -1)  # of the first episode; -1 in later ones
        self.rng = np.zeros((env.num_envs, WORDS), np.uint64)  # before the reset of later episodes
        self.known = np.ones(env.num_envs, bool)  # are these their beginnings?
        self.actions: list[list[np.ndarray]] = [[] for _ in range(env.num_envs)]

    def begin_all(self, seed: int | None) -> None:
        """All began with `reset(seed)`."""
        self.seed[:] = -1 if seed is None else seed + np.arange(self.env.num_envs)
        self.known[:] = seed is not None
        self.actions = [[] for _ in self.actions]

    def begin(self, robots: np.ndarray) -> None:
        """These are about to be reset."""
        for i in robots:
            self.seed[i] = -1
            rng = self.env.envs[i].unwrapped.np_random
            self.known[i] = isinstance(getattr(rng, "bit_generator", None), np.random.PCG64)
            if self.known[i]:
                self.rng[i] = words_of(rng)
            self.actions[i] = []

    def note(self, actions: np.ndarray) -> None:
        for mine, action in zip(self.actions, actions, strict=True):
            mine.append(action)

    def get_state(self) -> dict[str, np.ndarray]:
        """From which `repeat` goes on; empty where that is impossible."""
        if not self.known.all():
            return {}
        taken = [np.array(mine) for mine in self.actions]
        return {"seed": self.seed, "rng": self.rng} | {f"actions/{i}": rows for i, rows in enumerate(taken)}

    def repeat(self, state: dict[str, np.ndarray]) -> np.ndarray:
        """Reset as then and step as then; the last observations."""
        self.env.reset(seed=0)
        self.seed, self.rng = state["seed"].copy(), state["rng"].copy()
        self.actions = [list(state[f"actions/{i}"]) for i in range(self.env.num_envs)]
        last = []
        for i, env in enumerate(self.env.envs):
            if self.seed[i] < 0:
                env.unwrapped.np_random = generator_of(self.rng[i])
            observation, _ = env.reset(seed=None if self.seed[i] < 0 else int(self.seed[i]))
            for action in self.actions[i]:
                observation = env.step(action)[0]
            last.append(flatten(self.env.single_observation_space, observation).astype(np.float64))
        return np.stack(last)
