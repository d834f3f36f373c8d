"""Our robots as OmniSafe environments: `import safeexplorer.adapters.omnisafe`, then any of its algorithms.

    omnisafe.Agent("PPOLag", "SafeExplorerHalfCheetah-v0")        # cost 1 per fall
    omnisafe.Agent("CPO", "SafeExplorerHalfCheetahRegion-v0")     # cost 1 per step outside R(d_max)

Nothing else in the package imports this module, and OmniSafe is not a dependency.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from omnisafe.envs.core import CMDP, env_register

from safeexplorer import robots
from safeexplorer.acting.costs import step_cost

SUFFIX = {"fall": "-v0", "region": "Region-v0"}
# OmniSafe's id -> (robot, cost); not every algorithm of it takes settings of the environment
IDS = {
    robot.env_id.replace("/", "").replace("-v0", suffix): (name, cost)
    for name, robot in robots.ROBOTS.items()
    for cost, suffix in SUFFIX.items()
}


@env_register
class SafeExplorerEnv(CMDP):
    """E robots side by side; an episode that ends begins again at once, `final_observation` has its last word.

    OmniSafe wants a single robot without the leading axis, and adds it back itself.
    """

    need_auto_reset_wrapper = False
    need_time_limit_wrapper = False
    _support_envs: ClassVar[list[str]] = list(IDS)

    def __init__(self, env_id: str, num_envs: int = 1, device: str | torch.device = "cpu", **settings: Any):
        super().__init__(env_id)
        name, cost = IDS[env_id]
        self._simulation = robots.make(name, num_envs, **settings)
        self._num_envs, self._device = num_envs, torch.device(device)
        self._cost = step_cost(cost, self._simulation.robot.max_radius)
        self._observation_space = self._simulation.single_observation_space
        self._action_space = self._simulation.single_action_space
        self._metadata = self._simulation.metadata
        self._seed: int | None = None

    def set_seed(self, seed: int) -> None:
        """The next reset starts from this seed."""
        self._seed = seed

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[torch.Tensor, dict[str, Any]]:
        """New episodes everywhere."""
        seed, self._seed = (self._seed if seed is None else seed), None
        observation, info = self._simulation.reset(seed=seed)
        self._distance = info["distance"]
        return self._tensor(observation), {}

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(observation, reward, cost, terminated, truncated, info)."""
        actions = action.detach().cpu().numpy().reshape(self._num_envs, -1)
        observation, reward, terminated, truncated, info = self._simulation.step(actions)
        cost = self._cost(terminated, self._distance)
        self._distance = info["distance"]
        numbers = (self._tensor(x) for x in (observation, reward, cost, terminated, truncated & ~terminated))
        return *numbers, self._final(info)

    def _final(self, info: dict[str, Any]) -> dict[str, Any]:
        """Where an episode ended, its last observation; zeros elsewhere."""
        if "final_obs" not in info:
            return {}
        ended = info["_final_obs"]
        final = np.zeros((self._num_envs, *self._observation_space.shape))
        final[ended] = np.stack(info["final_obs"][ended])
        return {
            "final_observation": self._tensor(final),
            "_final_observation": torch.as_tensor(ended, device=self._device),
        }

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        array = array if self._num_envs > 1 else array[0]
        return torch.as_tensor(array, dtype=torch.float32, device=self._device)

    @property
    def max_episode_steps(self) -> int:
        return self._simulation.max_episode_steps

    def render(self) -> Any:
        return self._simulation.render()

    def close(self) -> None:
        self._simulation.close()
