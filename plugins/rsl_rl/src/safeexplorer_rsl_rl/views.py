"""The actor and the optimiser as rsl_rl's own update sees them while two acted in the rollout."""

from __future__ import annotations

from typing import Any

import torch

from safeexplorer_rsl_rl.imitation import Imitation
from safeexplorer_rsl_rl.storage import MixedStorage


class View:
    """Everything of the object behind it."""

    def __init__(self, behind: Any):
        self.behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


class OwnStepsActor(View):
    """An actor whose entropy and KL divergence, averaged over all rows, are averages over the policy's own rows."""

    def __init__(self, actor: Any, storage: MixedStorage):
        super().__init__(actor)
        self.storage = storage

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.behind(*args, **kwargs)

    @property
    def output_entropy(self) -> torch.Tensor:
        return self._own(self.behind.output_entropy)

    def get_kl_divergence(self, old: tuple, new: tuple) -> torch.Tensor:
        return self._own(self.behind.get_kl_divergence(old, new))

    def _own(self, per_row: torch.Tensor) -> torch.Tensor:
        """Weight 0 on recovery rows, B / N_own elsewhere; rows that symmetry appended are not averaged over."""
        weight = self.storage.own_weight
        if weight is None:
            return per_row
        return per_row[: len(weight)] * weight


class ImitatingOptimizer(View):
    """An optimiser whose gradients start from the imitation's: `zero_grad` leaves them instead of zeros."""

    def __init__(self, optimizer: torch.optim.Optimizer, imitation: Imitation, actor: Any):
        super().__init__(optimizer)
        self.imitation, self.actor = imitation, actor

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        self.behind.zero_grad(*args, **kwargs)
        self.imitation.backward(self.actor)
