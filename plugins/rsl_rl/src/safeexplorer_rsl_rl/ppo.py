"""rsl_rl's PPO with a recovery that acts outside a safe region, and labels that know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from tensordict import TensorDict

from safeexplorer_rsl_rl.imitation import Imitation, Settled, WaitingGate
from safeexplorer_rsl_rl.labels import analytic_value, find_segments, learning_reward, normalised
from safeexplorer_rsl_rl.recovery import checked, load_recovery
from safeexplorer_rsl_rl.region import Region
from safeexplorer_rsl_rl.settings import RecoverySettings
from safeexplorer_rsl_rl.storage import MixedStorage
from safeexplorer_rsl_rl.views import ImitatingOptimizer, OwnStepsActor


class SafeExplorerPPO(PPO):
    """PPO on the policy's own steps, with the analytic value where a recovery began and imitation of recoveries
    that succeeded. While nobody intervenes it is rsl_rl's PPO, bit for bit."""

    storage: MixedStorage

    def __init__(
        self, actor: Any, critic: Any, storage: Any, *args: Any, recovery_cfg: Any = None, **kwargs: Any
    ):
        self.settings = RecoverySettings.read(recovery_cfg)
        if actor.is_recurrent and self.settings.imitation > 0:
            raise ValueError(
                f"algorithm.recovery_cfg.imitation: got {self.settings.imitation}, needs 0 with a recurrent actor "
                "(rows that wait for an outcome do not keep its hidden states)"
            )
        super().__init__(actor, critic, MixedStorage.like(storage), *args, **kwargs)
        groups = [*actor.obs_groups, *getattr(actor, "obs_groups_2d", [])]
        self.gate = WaitingGate(groups, self.settings.hold_rollouts)
        self.iteration = 0

    @staticmethod
    def construct_algorithm(obs: TensorDict, env: Any, cfg: dict, device: str) -> SafeExplorerPPO:
        """As rsl_rl constructs its PPO, with the environment at hand for the region."""
        RecoverySettings.read(cfg["algorithm"].get("recovery_cfg"))
        algorithm = PPO.construct_algorithm(obs, env, cfg, device)
        algorithm.attach(env, obs.to(device))
        return algorithm

    def attach(self, env: Any, obs: TensorDict) -> None:
        """Load the recovery and the region, and try both on the first observations."""
        self.env = getattr(env, "unwrapped", env)
        groups = list(self.settings.obs_groups or self.gate.groups)
        for group in groups:
            if group not in obs:
                raise ValueError(
                    f"algorithm.recovery_cfg.obs_groups: no group {group!r}; known: {', '.join(sorted(obs.keys()))}"
                )
        self.recovery = load_recovery(self.settings.policy, groups, self.device)
        self.region = Region(self.settings.region, env, env.num_envs)
        cuda = [torch.device(self.device)] if torch.device(self.device).type == "cuda" else []
        with torch.no_grad(), torch.random.fork_rng(devices=cuda):
            checked(self.recovery(obs), (env.num_envs, env.num_actions), self._outside(obs))

    @property
    def radius(self) -> float | None:
        """d of the present iteration."""
        return self.settings.radius_at(self.iteration)

    def act(self, obs: TensorDict) -> torch.Tensor:
        """The policy's sample inside the region, the recovery's action outside; the sample is what PPO stores."""
        proposed = super().act(obs)
        outside = self._outside(obs)
        executed = proposed
        if outside.any():
            actions = checked(self.recovery(obs), tuple(proposed.shape), outside)
            executed = torch.where(outside.unsqueeze(-1), actions.to(proposed.dtype), proposed)
        step = self.storage.step
        self.storage.recovering[step].copy_(outside)
        self.storage.executed[step].copy_(executed)
        return executed

    def _outside(self, obs: TensorDict) -> torch.Tensor:
        """[E] bool, where the recovery acts."""
        return ~self.region.inside(obs, self.radius).to(self.device)

    def process_env_step(
        self, obs: TensorDict, rewards: torch.Tensor, dones: torch.Tensor, extras: dict
    ) -> None:
        """Record the step as rsl_rl does, then what differs: recovery steps, and limits with a final observation."""
        storage, step = self.storage, self.storage.step
        recovering = storage.recovering[step]
        limit = extras.get("time_outs", torch.zeros_like(dones)).to(self.device).bool()
        fell = self._fell(dones.bool(), limit)
        final_obs = extras.get("final_obs") if self.settings.use_final_obs else None
        limit_value = self.transition.values.squeeze(-1)
        if final_obs is not None and limit.any():
            limit_value = torch.where(limit, self._value(observations(final_obs, obs, limit)), limit_value)
        super().process_env_step(obs, rewards, dones, extras)

        limit_value = torch.where(limit & ~fell, limit_value, 0.0)
        bonus = self.intrinsic_rewards if self.rnd else 0.0
        reward = learning_reward(rewards, bonus, recovering, fell) + self.gamma * limit_value
        changed = recovering | limit if final_obs is not None else recovering
        storage.rewards[step].copy_(
            torch.where(changed, reward, storage.rewards[step].squeeze(-1)).unsqueeze(-1)
        )
        storage.task_reward[step].copy_(rewards)
        storage.fell[step].copy_(fell)
        storage.limit_value[step].copy_(limit_value)

    def _fell(self, dones: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        """Terminated. mjlab and Isaac Lab say so; elsewhere an episode that ended without a time limit."""
        terminated = getattr(self.env, "reset_terminated", None)
        return dones & ~limit if terminated is None else dones & terminated.to(self.device).bool()

    def _value(self, obs: TensorDict) -> torch.Tensor:
        """V of observations, [E]; a recurrent critic's memory stays as it was."""
        memory = self.critic.get_hidden_state()
        value = self.critic(obs).detach().squeeze(-1)
        self.critic.reset(hidden_state=memory)
        return value

    def compute_returns(self, obs: TensorDict) -> None:
        """rsl_rl's GAE, over values that are analytic where a recovery began; normalised over own steps."""
        storage = self.storage
        self.segments = find_segments(storage.rollout(self._value(obs)))
        if not storage.recovering.any():
            return super().compute_returns(obs)
        learned = storage.values
        storage.values = analytic_value(learned.squeeze(-1), self.segments, self.gamma).unsqueeze(-1)
        per_batch, self.normalize_advantage_per_mini_batch = self.normalize_advantage_per_mini_batch, True
        super().compute_returns(obs)
        self.normalize_advantage_per_mini_batch = per_batch
        storage.values = learned
        if not per_batch:
            storage.advantages = normalised(storage.advantages, ~storage.recovering.unsqueeze(-1))

    def update(self) -> dict[str, float]:
        """rsl_rl's update, on minibatches, an actor and an optimiser that know who acted."""
        settled = self.gate.settle(self.storage, self.segments)
        imitation = Imitation(settled, self.settings.imitation, self.num_mini_batches)
        share = self.storage.recovering.float().mean().item()
        losses = self._mixed_update(imitation) if share or settled.count else super().update()
        losses |= self._report(share, settled, imitation)
        self.iteration += 1
        return losses

    def _mixed_update(self, imitation: Imitation) -> dict[str, float]:
        actor, optimizer = self.actor, self.optimizer
        per_batch = self.normalize_advantage_per_mini_batch
        self.actor = OwnStepsActor(actor, self.storage)
        self.optimizer = ImitatingOptimizer(optimizer, imitation, actor)
        if self.storage.recovering.any():  # then the storage normalises, over the policy's own steps
            self.storage.normalise_per_batch, self.normalize_advantage_per_mini_batch = per_batch, False
        try:
            return super().update()
        finally:
            self.actor, self.optimizer = actor, optimizer
            self.normalize_advantage_per_mini_batch = per_batch

    def _report(self, share: float, settled: Settled, imitation: Imitation) -> dict[str, float]:
        report = {
            "imitation": imitation.mean_loss(),
            "recovery_share": share,
            "imitated_rows": len(settled.rows.env),
        }
        return report if self.radius is None else report | {"radius": self.radius}

    def save(self) -> dict:
        """rsl_rl's checkpoint and the iteration of the curriculum."""
        return super().save() | {"safeexplorer": {"iteration": self.iteration}}

    def load(self, loaded_dict: dict, load_cfg: dict | None, strict: bool) -> bool:
        """Also a checkpoint of plain PPO; recoveries that were under way are forgotten."""
        with_iteration = super().load(loaded_dict, load_cfg, strict)
        if with_iteration:
            trained = loaded_dict.get("iter", -1) + 1
            self.iteration = loaded_dict.get("safeexplorer", {}).get("iteration", trained)
        self.gate.clear()
        return with_iteration


def observations(final_obs: Any, obs: TensorDict, limit: torch.Tensor) -> TensorDict:
    """The final observations where a time limit ended an episode, in the layout of `obs`.

    Isaac Lab gives a dictionary of groups, [E, ...] each; Gymnasium an array with one dictionary (or None) per
    environment.
    """
    groups = set(obs.keys())
    if isinstance(final_obs, Mapping | TensorDict):
        missing = groups - set(final_obs.keys())
        if missing:
            raise ValueError(f"extras['final_obs']: group {min(missing)!r} is missing")
        given = {group: torch.as_tensor(final_obs[group]).to(obs[group]) for group in groups}
        return TensorDict(given, batch_size=obs.batch_size)
    full = obs.clone()
    for env in limit.nonzero().flatten().tolist():
        if not isinstance(final_obs[env], Mapping):
            raise ValueError(
                f"extras['final_obs']: got {type(final_obs[env]).__name__} for environment {env}, "
                "needs a dictionary of observation groups"
            )
        for group in groups:
            full[group][env] = torch.as_tensor(final_obs[env][group]).to(full[group])
    return full
