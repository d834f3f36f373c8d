"""The table of methods: how recovery steps enter the update. Data only; each rung changes one thing."""

from dataclasses import dataclass, replace
from typing import Any, Literal


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


def rung(below: Method, name: str, summary: str, **changes: Any) -> Method:
    """The row below, but for these changes."""
    return replace(below, name=name, summary=summary, **changes)


PPO = Method(
    "ppo", "no recovery: the policy falls and learns from it", intervenes=False, recovery_reward="task"
)

RECOVERY_RL = Method(
    "recovery_rl", "recovery steps stored as if the policy's own proposal had acted", stored_action="proposed"
)
PENALTY = {"recovery_reward": "task_minus_one"}
SAFE_LEGGED = rung(RECOVERY_RL, "safe_legged", "Recovery RL with a penalty of 1 per recovery step", **PENALTY)

UNMASKED = Method("unmasked", "recovery steps stored as if the policy had acted: the biased update")
MASK = {"policy_steps": "main", "value_steps": "main"}
MASKED = rung(UNMASKED, "masked", "+ masked policy gradient: only the policy's own steps", **MASK)
KNOWN = {"analytic_value": True, "value_steps": "all"}
ANALYTIC = rung(MASKED, "analytic", "+ closed-form value where recovery is triggered", **KNOWN)
SAFEEXPLORER = rung(ANALYTIC, "safeexplorer", "+ imitation of recoveries that succeeded", gate="hard")

SOFT = rung(ANALYTIC, "soft", "analytic + signed gate by value change", gate="soft")
SOFT_DECOMPOSED = rung(
    SOFT, "soft_decomposed", "soft with one critic head per side of the boundary", critic_heads=2
)
DAGGER = rung(ANALYTIC, "dagger", "analytic + imitation of every recovery", gate="always")
WEIGHTS = {"sampled_recovery": True, "importance_cap": 10.0}
TRUNCATED_IS = rung(
    SAFEEXPLORER, "truncated_is", "SafeExplorer + recovery steps by truncated importance weights", **WEIGHTS
)

PARTS = ("begin_as_recovery", "hold_spread", "wait_for_outcomes", "limit_updates")
PARTS += ("normalise_observations", "scale_rewards")
SAFEEXPLORER_AUTO = rung(
    SAFEEXPLORER,
    "safeexplorer_auto",
    "SafeExplorer that begins as the recovery and grows its region by evidence",
    **dict.fromkeys(PARTS, True),
)

# The constrained baselines: optimisers of their own (`constrained`), on a cost instead of an intervention.
PPO_LAGRANGIAN = rung(PPO, "ppo_lagrangian", "no recovery: PPO that pays a learned price for falls")
CPO = rung(PPO, "cpo", "no recovery: trust-region steps that keep to a budget of falls")

LADDER = (UNMASKED, MASKED, ANALYTIC, SOFT, SOFT_DECOMPOSED, DAGGER, SAFEEXPLORER)
ROWS = (PPO, RECOVERY_RL, SAFE_LEGGED, *LADDER, TRUNCATED_IS, SAFEEXPLORER_AUTO)
METHODS = {method.name: method for method in ROWS}
CONSTRAINED = {method.name: method for method in (PPO_LAGRANGIAN, CPO)}


def get_method(name: str) -> Method:
    """The row called `name`."""
    known = METHODS | CONSTRAINED
    if name not in known:
        raise ValueError(f"no method {name!r}; known: {', '.join(known)}")
    return known[name]
