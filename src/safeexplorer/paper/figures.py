"""The eight figures."""

from __future__ import annotations

from safeexplorer.paper.artefact import ALL, ANT, GO1, HALF_CHEETAH, Arm, Artefact, Claim, numbers
from safeexplorer.paper.tables import (
    ANALYTIC,
    BASELINES,
    LADDER,
    MAIN,
    MASKED,
    OURS,
    PPO,
    RECOVERY_RL,
    SAFE_LEGGED,
    UNMASKED,
)

SAMPLED = (
    Arm("Masked gradient", {"method": "safeexplorer", "sampled_recovery": True}),
    Arm("Truncated IS", {"method": "truncated_is"}),
)

HEADLINE = Artefact(
    "headline",
    "figure",
    "Training falls to reach task success",
    "Success: the trailing mean return reaches 80% of the best final reward of the methods in main-results. "
    "Interquartile mean and 95% interval over the seeds that succeed; k of n beside it.",
    (*BASELINES, *LADDER, OURS),
    measures=("falls_to_success",),
    paper={
        ("SafeExplorer", HALF_CHEETAH, "falls_to_success"): (12, None),
        ("SafeExplorer", ANT, "falls_to_success"): (17, None),
        ("SafeExplorer", GO1, "falls_to_success"): (118, None),
        ("Recovery RL", GO1, "falls_to_success"): (309, None),
        ("PPO-Lagrangian", GO1, "falls_to_success"): (9658, None),
        ("PPO (no recovery)", GO1, "falls_to_success"): (15320, None),
    },
    facts=("On Ant only SafeExplorer reaches the bar (2286), on all five seeds.",),
    drawing="success",
)

INTERVALS = Artefact(
    "intervals",
    "figure",
    "Interquartile means of reward and falls",
    "The six methods of main-results, ranked: interquartile means with 95% intervals.",
    MAIN,
    drawing="intervals",
)

CURVES = Artefact(
    "curves",
    "figure",
    "Learning curves",
    "Return and cumulative falls over training; line: mean over seeds, shade: smallest to largest.",
    MAIN,
    drawing="curves",
)

PARETO = Artefact(
    "ablation-pareto",
    "figure",
    "The ablation ladder on the plane of reward and falls",
    "PPO and the four rungs: interquartile means with 95% intervals; upper left is better.",
    (PPO, UNMASKED, MASKED, ANALYTIC, OURS),
    drawing="pareto",
)

GAP = Artefact(
    "gap-over-training",
    "figure",
    "The objective gap over training",
    "|J_mix - J| of SafeExplorer, mean over seeds ± one standard deviation, 9-point moving average.",
    (OURS,),
    measures=("gap",),
    needs="gap",
    facts=("On Go1 the paper's gap falls from about 1950 to a residual of 463.",),
    drawing="gap",
)

RECOVERY_RATE = Artefact(
    "recovery-rate",
    "figure",
    "The recovery rate over training",
    "Share of rollout steps on which the recovery acted; line: mean over seeds, shade: smallest to largest.",
    (RECOVERY_RL, SAFE_LEGGED, *LADDER, OURS),
    measures=("recovery_rate",),
    drawing="recovery_rate",
)

IS_VARIANCE = Artefact(
    "is-variance",
    "figure",
    "Importance weights under a sampled recovery",
    "SafeExplorer with recovery actions drawn from their density. Left: effective sample size of the weights as a "
    "share of the n recovery steps of an update; dotted: 1/n, one effective step. Right: gradient variance with "
    "importance weights over that of the masked gradient. The largest share: over updates with n >= 200.",
    SAMPLED[:1],
    measures=("ess_max", "variance_ratio_max"),
    needs="importance",
    facts=(
        "HalfCheetah: effective sample size at most 0.5%, variance ratio up to 8e12. Ant: ratio near 1e13 for the "
        "first 1.2M steps. Go1: effective sample size below 3%, ratio never above about 40.",
    ),
    drawing="importance",
)

IS_TRAINING = Artefact(
    "is-training",
    "figure",
    "Training with the masked gradient or with truncated importance weights",
    "Sampled recovery, weights cut at 10; mean ± standard deviation over seeds.",
    SAMPLED,
    paper=numbers(
        ("final_reward", "falls"),
        ALL,
        {
            "Masked gradient": (None, None, (1325, 289), (4682, 1047), (5243, 219), (3401, 351)),
            "Truncated IS": (None, None, (793, 214), (2066, 1582), (4884, 241), (3293, 589)),
        },
    ),
    claims=(Claim("final_reward", "Masked gradient", ">", ("Truncated IS",), (ANT, GO1)),),
    facts=("HalfCheetah: the paper gives 4675 ± 642 versus 4421 ± 647, without saying which is which.",),
    drawing="bars",
)

FIGURES = (HEADLINE, INTERVALS, CURVES, PARETO, GAP, RECOVERY_RATE, IS_VARIANCE, IS_TRAINING)
