"""The cost of episodes, beside the limit."""

import numpy as np

WINDOW = 50  # episodes over which the cost is averaged


class Budget:
    """Adds up costs per episode, over rollouts that follow one another."""

    def __init__(self, num_envs: int, limit: float):
        self.limit = limit
        self.running = np.zeros(num_envs)
        self.recent = np.zeros(WINDOW)  # a ring: the cost of episode n is at n % WINDOW
        self.episodes = 0

    def add(self, cost: np.ndarray, ended: np.ndarray) -> list[float]:
        """Count one rollout [T, E]; the costs of the episodes that ended in it, in order of time."""
        finished = []
        for now, over in zip(cost, ended, strict=True):
            self.running += now
            for robot in np.flatnonzero(over):
                finished.append(float(self.running[robot]))
                self.recent[self.episodes % WINDOW] = self.running[robot]
                self.running[robot] = 0.0
                self.episodes += 1
        return finished

    def average(self) -> float:
        """J_c: the mean cost of the last 50 episodes. Before any has ended the limit stands in: neither too much
        nor room for more."""
        seen = min(self.episodes, WINDOW)
        return float(self.recent[:seen].mean()) if seen else self.limit

    def cut(self) -> None:
        """New episodes begin everywhere; what the old ones have cost is forgotten."""
        self.running = np.zeros_like(self.running)

    def get_state(self) -> dict[str, np.ndarray]:
        return {"running": self.running, "recent": self.recent, "episodes": np.array(self.episodes)}

    def set_state(self, state: dict[str, np.ndarray]) -> None:
        self.running, self.recent = state["running"].copy(), state["recent"].copy()
        self.episodes = int(state["episodes"])
