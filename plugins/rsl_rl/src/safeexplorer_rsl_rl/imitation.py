"""Imitation of recoveries that succeeded, behind a gate that waits until it is known how each one ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from tensordict import TensorDict

from safeexplorer_rsl_rl.labels import Segments
from safeexplorer_rsl_rl.storage import MixedStorage


class Rows(NamedTuple):
    """Recovery steps: in which environment, what was seen, what was executed."""

    env: torch.Tensor  # [n]
    obs: TensorDict  # [n]
    action: torch.Tensor  # [n, m]

    def where(self, mask: torch.Tensor) -> Rows:
        """The rows that `mask` [n] picks."""
        return Rows(self.env[mask], self.obs[mask], self.action[mask])


class Settled(NamedTuple):
    """The recovery steps whose outcome became known in one rollout."""

    rows: Rows  # of the segments that succeeded, whenever they began
    count: int  # of all, those of failed segments too: the normaliser of the loss


class WaitingGate:
    """Holds back the rows of segments that a rollout's end cut, until a later rollout shows their outcome.

    A row is imitated once: in the update where its segment is known to have succeeded. Rows of a segment that
    fell are never imitated. A segment that stays open for more than `hold_rollouts` rollouts loses its oldest rows.
    """

    def __init__(self, groups: list[str], hold_rollouts: int):
        self.groups, self.hold_rollouts = groups, hold_rollouts
        self.clear()

    def clear(self) -> None:
        """Forget everything that waits (the environments start anew)."""
        self.held: list[Rows] = []

    def settle(self, storage: MixedStorage, segments: Segments) -> Settled:
        """Rows of this rollout and of earlier ones whose outcome is known now; the undecided ones are held."""
        rows = self._rows(storage)
        recovering = storage.recovering.flatten()
        decided, succeeded = segments.decided.flatten()[recovering], segments.succeeded.flatten()[recovering]
        ready, count = [rows.where(decided & succeeded)], decided.sum()

        # a segment that was open goes on through step 0, or ended between the rollouts: re-entry
        goes_on = storage.recovering[0]
        known = ~goes_on | segments.decided[0]
        good = ~goes_on | segments.succeeded[0]
        waiting = []
        for held in self.held:
            now = known[held.env]
            ready.append(held.where(now & good[held.env]))
            count = count + now.sum()
            waiting.append(held.where(~now))
        self.held = [held for held in (*waiting, rows.where(~decided)) if len(held.env)]
        self.held = self.held[-self.hold_rollouts :] if self.hold_rollouts else []
        joined = Rows(
            torch.cat([r.env for r in ready]),
            torch.cat([r.obs for r in ready]),
            torch.cat([r.action for r in ready]),
        )
        return Settled(joined, int(count))

    def _rows(self, storage: MixedStorage) -> Rows:
        """Every recovery step of the rollout, in order of time."""
        mask = storage.recovering.flatten()
        env = torch.arange(storage.num_envs, device=mask.device).repeat(storage.num_transitions_per_env)
        obs = storage.observations.select(*self.groups).flatten(0, 1)
        return Rows(env[mask], obs[mask], storage.executed.flatten(0, 1)[mask])


class Imitation:
    """-lambda / N * sum over the settled rows of w_t log pi(a_t | s_t), w_t = 1 where the segment succeeded.

    The rows are dealt to the minibatches of an epoch in one random order; each adds the gradient of its share.
    """

    def __init__(self, settled: Settled, coefficient: float, num_mini_batches: int):
        self.rows, self.parts = settled.rows, num_mini_batches
        size = len(self.rows.env)
        self.scale = coefficient * size / max(settled.count, 1)
        self.order = torch.randperm(size, device=self.rows.env.device) if size else None
        self.turn, self.total = 0, 0.0

    def backward(self, actor: Any) -> None:
        """Adds the gradient of the next share."""
        if self.order is None or self.scale == 0:
            return
        share = self.order.tensor_split(self.parts)[self.turn % self.parts]
        self.turn += 1
        if not len(share):
            return
        actor(self.rows.obs[share], stochastic_output=True)
        loss = -self.scale * actor.get_output_log_prob(self.rows.action[share]).mean()
        loss.backward()
        self.total = self.total + loss.detach()

    def mean_loss(self) -> float:
        """Over the minibatches so far."""
        return float(self.total) / max(self.turn, 1)
