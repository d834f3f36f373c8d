"""The tables of methods, with the paper's numbers as (mean, standard deviation over seeds)."""

from __future__ import annotations

from safeexplorer.paper.artefact import ALL, ANT, GO1, HALF_CHEETAH, Arm, Artefact, Claim, numbers

REWARD_FALLS = ("final_reward", "falls")

PPO = Arm("PPO (no recovery)", {"method": "ppo"})
RECOVERY_RL = Arm("Recovery RL", {"method": "recovery_rl"})
SAFE_LEGGED = Arm("Safe Legged", {"method": "safe_legged"})
CPO = Arm("CPO", {"method": "cpo"})
PPO_LAGRANGIAN = Arm("PPO-Lagrangian", {"method": "ppo_lagrangian"})
UNMASKED = Arm("Unmasked PG", {"method": "unmasked"})
MASKED = Arm("Masked, learned V", {"method": "masked"})
ANALYTIC = Arm("Analytic V (no gate)", {"method": "analytic"})
SOFT = Arm("Soft gate", {"method": "soft"})
SOFT_DECOMPOSED = Arm("Soft gate, decomposed V", {"method": "soft_decomposed"})
OURS = Arm("SafeExplorer", {"method": "safeexplorer"})

BASELINES = (PPO, RECOVERY_RL, SAFE_LEGGED, CPO, PPO_LAGRANGIAN)
LADDER = (UNMASKED, MASKED, ANALYTIC)
MAIN = (*BASELINES, OURS)

MAIN_RESULTS = Artefact(
    "main-results",
    "table",
    "Final reward and training falls of SafeExplorer and all baselines",
    "Reward: mean task return over the last 10% of training, recovery included where a method has one. "
    "Falls: all of training. The paper: 5 seeds of 8M steps (Go1: 16M).",
    MAIN,
    paper=numbers(
        REWARD_FALLS,
        ALL,
        {
            "PPO (no recovery)": ((3246, 521), (3311, 940), (308, 165), (36467, 14598), (3347, 215), (18683, 1403)),
            "Recovery RL": ((1951, 1423), (947, 1831), (76, 25), (53535, 7611), (3136, 511), (1689, 1379)),
            "Safe Legged": ((4054, 604), (1552, 1084), (83, 20), (53548, 11682), (2347, 353), (3022, 1225)),
            "CPO": ((2835, 403), (23, 30), (1047, 106), (899, 117), (359, 48), (39613, 2498)),
            "PPO-Lagrangian": ((2939, 414), (18, 19), (1339, 402), (5094, 2774), (3915, 953), (12572, 1636)),
            "SafeExplorer": ((3581, 971), (14, 8), (2857, 129), (754, 463), (5594, 177), (731, 177)),
        },
    ),
    facts=("Fewer falls than PPO by a factor of 233 on HalfCheetah, 48 on Ant and 26 on Go1.",),
    claims=(
        Claim("falls", "SafeExplorer", "<", tuple(arm.label for arm in BASELINES)),
        Claim("final_reward", "SafeExplorer", ">", ("PPO (no recovery)",)),
    ),
)  # fmt: skip

OPERATIONAL = Artefact(
    "operational-recovery",
    "table",
    "The recovery from the states in which training calls on it",
    "The recovery is replayed from the logged first exits of one run per cell; survived: no fall before re-entry. "
    "Here the exits are counted in full and a uniform sample of them is replayed.",
    (OURS, ANALYTIC),
    measures=("exits", "survived"),
    rows="robots",
    seeds=1,
    needs="replay",
    paper=numbers(
        ("exits", "survived"),
        ALL,
        {
            "SafeExplorer": ((80546, None), (99.8, None), (16366, None), (91.3, None), (94212, None), (97.0, None)),
            "Analytic V (no gate)": (
                (338671, None), (100.0, None), (35150, None), (70.4, None), (255881, None), (97.4, None),
            ),
        },
    ),
)  # fmt: skip

SOFT_VARIANTS = Artefact(
    "soft-variants",
    "table",
    "The ablation ladder and the two soft gates",
    "Same protocol as main-results. The soft gate is w = gamma^k V(s_t+k) - V(s_t).",
    (*LADDER, SOFT, SOFT_DECOMPOSED, OURS),
    paper=numbers(
        REWARD_FALLS,
        ALL,
        {
            "Unmasked PG": ((4922, 243), (194, 40), (1253, 427), (5177, 1399), (5788, 425), (2936, 629)),
            "Masked, learned V": ((1982, 1058), (306, 360), (222, 275), (50011, 30828), (4374, 758), (972, 206)),
            "Analytic V (no gate)": ((3870, 447), (73, 19), (174, 150), (35481, 21851), (4473, 628), (926, 259)),
            "Soft gate": ((2645, 829), (1215, 1843), (663, 323), (11745, 18434), (4142, 1471), (2044, 2647)),
            "Soft gate, decomposed V": (
                (3569, 1074), (721, 985), (505, 319), (8183, 8064), (4374, 1191), (1242, 472),
            ),
            "SafeExplorer": ((3581, 971), (14, 8), (2857, 129), (754, 463), (5594, 177), (731, 177)),
        },
    ),
    claims=(
        Claim("falls", "SafeExplorer", "<", tuple(arm.label for arm in LADDER)),
        Claim("falls", "Analytic V (no gate)", "<", ("Masked, learned V",)),
        Claim("falls", "SafeExplorer", "<", (SOFT.label, SOFT_DECOMPOSED.label)),
        Claim("final_reward", "SafeExplorer", ">", (SOFT.label, SOFT_DECOMPOSED.label), (ANT, GO1)),
    ),
)  # fmt: skip


GAP_MEASURES = ("mixed_return", "alone_return", "gap", "recovery_rate", "falls", "alone_falls")
OBJECTIVE_GAP = Artefact(
    "objective-gap",
    "table",
    "The policy with its recovery and alone",
    "SafeExplorer, means over the last 20% of training: every 4 updates 5 episodes with the recovery and 5 without, "
    "by the same policy from the same starts, its noise on.",
    (OURS,),
    measures=GAP_MEASURES,
    rows="robots",
    needs="gap",
    paper=numbers(
        GAP_MEASURES,
        ALL,
        {
            "SafeExplorer": (
                *((4677, 542), (4676, 552), (0, 12), (0.0, None), (47, 41), (0.0, None)),
                *((2904, 145), (2921, 151), (-17, 25), (0.0, None), (428, 454), (0.12, None)),
                *((5576, 213), (5112, 340), (463, 150), (0.044, 0.005), (768, 241), (0.36, None)),
            )
        },
    ),
    claims=(
        Claim("gap", "SafeExplorer", "=", (0,), (HALF_CHEETAH, ANT)),
        Claim("gap", "SafeExplorer", ">", (0,), (GO1,)),
    ),
)

FEASIBILITY = Artefact(
    "cmdp-feasibility",
    "table",
    "Do the constrained methods keep their own limit?",
    "Falls per episode over the last 5% of training against the limit of 0.05 that both were given.",
    (CPO, PPO_LAGRANGIAN),
    measures=("final_cost",),
    paper=numbers(
        ("final_cost",),
        ALL,
        {
            "CPO": ((0.007, 0.011), (0.103, 0.029), (0.956, 0.025)),
            "PPO-Lagrangian": ((0.001, 0.001), (0.326, 0.177), (0.377, 0.126)),
        },
    ),
    claims=(
        *(Claim("final_cost", arm.label, "<", (0.05,), (HALF_CHEETAH,)) for arm in (CPO, PPO_LAGRANGIAN)),
        *(Claim("final_cost", arm.label, ">", (0.05,), (ANT, GO1)) for arm in (CPO, PPO_LAGRANGIAN)),
    ),
)
