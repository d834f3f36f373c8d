"""The table of methods: how recovery steps enter the update. Data only; each rung changes one thing."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    name: str
    summary: str
    intervenes: bool = True  # does the recovery act outside the main-policy set
    sampled_recovery: bool = False  # recovery actions drawn from its density instead of its mean
    stored_action: Literal["executed", "proposed"] = "executed"
    policy_steps: Literal["all", "main"] = "all"
    importance_cap: float | None = None  # recovery steps join the policy term with min(pi / mu, cap)
    analytic_value: bool = False
    value_steps: Literal["all", "main"] = "all"
    critic_heads: int = 1  # 2: one head on each side of the boundary
    recovery_reward: Literal["task", "zero", "task_minus_one"] = "zero"
    gate: Literal["off", "hard", "soft", "always"] = "off"
    # What a run's settings can switch on or off in any row that it fits:
    begin_as_recovery: bool = False  # the recovery acts alone until the policy is its copy
    hold_spread: bool = False  # the policy's spread between a floor that fades and a ceiling that opens
    wait_for_outcomes: bool = False  # imitate a segment that a rollout's end cut once its outcome is known
    limit_updates: bool = False  # the policy's steps give way where an update moves it by more than target_kl
    normalise_observations: bool = False
    scale_rewards: bool = False


PPO = Method(
    "ppo", "no recovery: the policy falls and learns from it", intervenes=False, recovery_reward="task"
)

RECOVERY_RL = Method(
    "recovery_rl", "recovery steps stored as if the policy's own proposal had acted", stored_action="proposed"
)
SAFE_LEGGED = replace(
    RECOVERY_RL,
    name="safe_legged",
    summary="Recovery RL with a penalty of 1 per recovery step",
    recovery_reward="task_minus_one",
)

UNMASKED = Method("unmasked", "recovery steps stored as if the policy had acted: the biased update")
MASKED = replace(
    UNMASKED,
    name="masked",
    summary="+ masked policy gradient: only the policy's own steps",
    policy_steps="main",
    value_steps="main",
)
ANALYTIC = replace(
    MASKED,
    name="analytic",
    summary="+ closed-form value where recovery is triggered",
    analytic_value=True,
    value_steps="all",
)
SAFEEXPLORER = replace(
    ANALYTIC, name="safeexplorer", summary="+ imitation of recoveries that succeeded", gate="hard"
)

SOFT = replace(ANALYTIC, name="soft", summary="analytic + signed gate by value change", gate="soft")
SOFT_DECOMPOSED = replace(
    SOFT, name="soft_decomposed", summary="soft with one critic head per side of the boundary", critic_heads=2
)
DAGGER = replace(ANALYTIC, name="dagger", summary="analytic + imitation of every recovery", gate="always")
TRUNCATED_IS = replace(
    SAFEEXPLORER,
    name="truncated_is",
    summary="SafeExplorer + recovery steps by truncated importance weights",
    sampled_recovery=True,
    importance_cap=10.0,
)

SAFEEXPLORER_AUTO = replace(
    SAFEEXPLORER,
    name="safeexplorer_auto",
    summary="SafeExplorer that begins as the recovery and grows its region by evidence",
    begin_as_recovery=True,
    hold_spread=True,
    wait_for_outcomes=True,
    limit_updates=True,
    normalise_observations=True,
    scale_rewards=True,
)
PARTS = ("begin_as_recovery", "hold_spread", "wait_for_outcomes", "limit_updates")
PARTS += ("normalise_observations", "scale_rewards")

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        PPO,
        RECOVERY_RL,
        SAFE_LEGGED,
        UNMASKED,
        MASKED,
        ANALYTIC,
        SOFT,
        SOFT_DECOMPOSED,
        DAGGER,
        SAFEEXPLORER,
        TRUNCATED_IS,
        SAFEEXPLORER_AUTO,
    )
}


# The constrained baselines: optimisers of their own (`constrained`), on a cost instead of an intervention.
PPO_LAGRANGIAN = Method(
    "ppo_lagrangian",
    "no recovery: PPO that pays a learned price for falls",
    intervenes=False,
    recovery_reward="task",
)
CPO = replace(
    PPO_LAGRANGIAN, name="cpo", summary="no recovery: trust-region steps that keep to a budget of falls"
)
CONSTRAINED: dict[str, Method] = {method.name: method for method in (PPO_LAGRANGIAN, CPO)}


def get_method(name: str) -> Method:
    """The row called `name`."""
    known = METHODS | CONSTRAINED
    if name not in known:
        raise ValueError(f"no method {name!r}; known: {', '.join(known)}")
    return known[name]
