"""A rollout in which two acted: the policy's own sample stays in `actions`, what was executed lies beside it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import torch
from rsl_rl.storage import RolloutStorage

from safeexplorer_rsl_rl.labels import MixedRollout, normalised

NEVER_LIKELY = 1e9  # a log-probability that makes every ratio exp(log pi - log pi_old) exactly 0


class MixedStorage(RolloutStorage):
    """rsl_rl's storage; its minibatches carry advantages of the policy's own steps only."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        shape = (self.num_transitions_per_env, self.num_envs)
        self.recovering = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self.fell = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self.task_reward = torch.zeros(shape, device=self.device)
        self.limit_value = torch.zeros(shape, device=self.device)
        self.executed = torch.zeros_like(self.actions)
        self.normalise_per_batch = False
        self.own_weight: torch.Tensor | None = None  # of the present minibatch; None: all are the policy's

    @classmethod
    def like(cls, storage: RolloutStorage) -> MixedStorage:
        """An empty storage of the same shape."""
        return cls(
            storage.training_type,
            storage.num_envs,
            storage.num_transitions_per_env,
            storage.observations[0],
            storage.actions_shape,
            storage.device,
        )

    def rollout(self, last_value: torch.Tensor) -> MixedRollout:
        """What happened, for the labels."""
        return MixedRollout(
            recovering=self.recovering,
            fell=self.fell,
            ended=self.dones.squeeze(-1).bool(),
            task_reward=self.task_reward,
            value=self.values.squeeze(-1),
            limit_value=self.limit_value,
            last_value=last_value,
        )

    def mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator:
        """rsl_rl's shuffled minibatches, masked."""
        yield from self._masked(super().mini_batch_generator(num_mini_batches, num_epochs))

    def recurrent_mini_batch_generator(self, num_mini_batches: int, num_epochs: int = 8) -> Generator:
        """rsl_rl's minibatches of trajectories, masked."""
        yield from self._masked(super().recurrent_mini_batch_generator(num_mini_batches, num_epochs))

    def _masked(self, batches: Generator) -> Generator:
        """Surrogates are averaged over all rows of a batch: with advantage 0 on recovery rows and B / N_own times
        the advantage elsewhere, that is the average over the policy's own rows.

        Who acted travels as one more distribution parameter, which rsl_rl slices like every other column.
        """
        if not self.recovering.any():
            yield from batches
            return
        parameters = self.distribution_params
        self.distribution_params = (*parameters, ~self.recovering)
        try:
            for batch in batches:
                *old, own = batch.old_distribution_params
                batch.old_distribution_params = tuple(old)
                self.own_weight = own * (own.numel() / own.sum().clamp(min=1))
                if self.normalise_per_batch:
                    batch.advantages = normalised(batch.advantages, own.unsqueeze(-1))
                batch.advantages = batch.advantages * self.own_weight.unsqueeze(-1)
                # a probability ratio of 0 there: 0 times a ratio that overflows would be NaN
                batch.old_actions_log_prob = batch.old_actions_log_prob.where(own.unsqueeze(-1), NEVER_LIKELY)
                yield batch
        finally:
            self.distribution_params, self.own_weight = parameters, None
