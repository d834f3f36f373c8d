"""The mixed policy (equation partition-policy): the main policy acts inside M, the recovery outside it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from safeexplorer.acting.interventions import Intervention, Situation


class Acts(Protocol):
    """What the mixed policy asks of a recovery."""

    def act(self, observation: np.ndarray) -> np.ndarray:
        """[k, n] -> [k, m], executed as given."""
        ...


class Acted(NamedTuple):
    """Who acts, and what is executed."""

    recovering: np.ndarray  # [E] bool, s outside M: the recovery acts, if there is one
    action: np.ndarray  # [E, m]
    log_density: np.ndarray | float  # [E] log mu(a | s) where a sampled recovery acts, else 0


class MixedPolicy(NamedTuple):
    """Whoever steps robots under an intervention asks this: rollouts, films, evaluations, wrappers."""

    intervention: Intervention
    recovery: Acts | None  # None: the policy acts everywhere
    sampled: bool = False  # recovery actions are drawn from their density instead of its mean

    def act(
        self,
        situation: Situation,
        proposed: np.ndarray,
        progress: float,
        rng: np.random.Generator | None,
        before_recovery: Callable[[np.ndarray], None] | None = None,
    ) -> Acted:
        """a = proposed inside M and mu(s) outside; `before_recovery` hears who recovers before the recovery acts."""
        recovering = np.asarray(self.intervention.takes_over(situation, progress), bool)
        if recovering.shape != situation.step.shape:
            raise ValueError(
                f"takes_over gave the shape {recovering.shape} for {len(situation.step)} robots; allowed: one per robot"
            )
        count = np.count_nonzero(recovering)
        if not count or self.recovery is None:
            return Acted(recovering, proposed, 0.0)
        if before_recovery is not None:
            before_recovery(recovering)
        robots = slice(None) if count == recovering.size else recovering.nonzero()[0]
        action, log_density = proposed.copy(), 0.0
        action[robots], drawn = self.recover(situation.observation[robots], rng)
        if self.sampled:
            log_density = np.zeros(len(recovering), np.float32)
            log_density[robots] = drawn
        return Acted(recovering, action, log_density)

    def recover(self, observation: np.ndarray, rng: np.random.Generator | None) -> tuple[np.ndarray, Any]:
        """What the recovery does, [k, m], and log mu of it where it is drawn."""
        if self.sampled:
            return self.recovery.sample(observation, rng)
        return self.recovery.act(observation), 0.0
