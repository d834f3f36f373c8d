"""One robot as a plain Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np

from safeexplorer.robots import make
from safeexplorer.robots.simulation import RENDER_MODES


class SingleRobot(gymnasium.Env):
    """One robot, without autoreset; the settings are those of `Simulation`."""

    metadata = {"render_modes": RENDER_MODES}

    def __init__(self, name: str, render_mode: str | None = None, **settings: Any):
        self.simulation = make(name, 1, render_mode=render_mode, autoreset=False, **settings)
        self.observation_space = self.simulation.single_observation_space
        self.action_space = self.simulation.single_action_space
        self.metadata = self.simulation.metadata
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        observation, info = self.simulation.reset(seed=seed)
        return observation[0], _first(info)

    def step(self, action: np.ndarray):
        observation, reward, terminated, truncated, info = self.simulation.step(np.asarray(action)[None])
        return observation[0], reward[0].item(), terminated[0].item(), truncated[0].item(), _first(info)

    def render(self) -> np.ndarray | None:
        frames = self.simulation.render()
        return frames if frames is None else frames[0]

    def close(self) -> None:
        self.simulation.close()


def _first(info: dict[str, np.ndarray]) -> dict[str, Any]:
    return {key: value[0].item() for key, value in info.items() if not key.startswith("_")}
