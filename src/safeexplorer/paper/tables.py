"""The eleven tables, with the paper's numbers as (mean, standard deviation over seeds)."""

from __future__ import annotations

from safeexplorer.paper.artefact import ALL, ANT, GO1, HALF_CHEETAH, Arm, Artefact, Claim, numbers

WIDE = {HALF_CHEETAH: 3.2, ANT: 0.56}  # d_max of the paper's wider sweep family
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
OURS_WIDE = {"method": "safeexplorer", "max_radius": WIDE}

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


def weight(value: float) -> Arm:
    """SafeExplorer with another weight of the compatibility loss."""
    return Arm(f"lambda = {value:g}", {"method": "safeexplorer", "lambda_compat": value})


LAMBDA_SWEEP = Artefact(
    "lambda-sweep",
    "table",
    "The weight of the compatibility loss",
    "SafeExplorer at the body operating point; the paper's is a batch of its own, so its 0.001 row is a second "
    "measurement of the SafeExplorer row of main-results. Here that run is shared.",
    tuple(weight(x) for x in (1e-4, 1e-3, 1e-2, 1e-1, 1.0)),
    (HALF_CHEETAH, ANT),
    paper=numbers(
        REWARD_FALLS,
        (HALF_CHEETAH, ANT),
        {
            "lambda = 0.0001": ((2654, 1833), (211, 266), (1803, 1176), (3557, 3795)),
            "lambda = 0.001": ((4768, 583), (47, 41), (2908, 157), (428, 454)),
            "lambda = 0.01": ((5783, 481), (374, 548), (3124, 355), (639, 517)),
            "lambda = 0.1": ((5288, 667), (64, 57), (2281, 894), (149, 140)),
            "lambda = 1": ((5536, 333), (137, 151), (1352, 1036), (2798, 5658)),
        },
    ),
    claims=(
        Claim(
            "falls",
            "lambda = 0.001",
            "<",
            ("lambda = 0.0001", "lambda = 0.01", "lambda = 1"),
            (HALF_CHEETAH,),
        ),
    ),
)


def fixed(share: float) -> Arm:
    """SafeExplorer at a constant share of d_max."""
    return Arm(
        f"d = {share:.0%} of d_max", {"method": "safeexplorer", "schedule": "constant", "fraction": share}
    )


FIXED = tuple(fixed(share) for share in (0.25, 0.5, 0.75, 1.0))
FIXED_RADIUS = Artefact(
    "fixed-d",
    "table",
    "A constant radius instead of the curriculum",
    "SafeExplorer with d held at a share of d_max (2.0, 0.4, 0.15); last row: the linear curriculum of main-results.",
    (*FIXED, Arm("Linear curriculum", OURS.changes)),
    paper=numbers(
        REWARD_FALLS,
        ALL,
        {
            "d = 25% of d_max": ((3344, 1642), (1189, 1274), (990, 2), (5, 4), (2898, 147), (1895, 409)),
            "d = 50% of d_max": ((2476, 668), (2623, 664), (1602, 463), (5522, 1505), (5423, 119), (397, 33)),
            "d = 75% of d_max": ((3629, 582), (3489, 889), (555, 178), (19941, 4063), (5572, 179), (888, 372)),
            "d = 100% of d_max": ((3535, 1053), (3632, 641), (565, 301), (21837, 8376), (5752, 158), (1662, 272)),
            "Linear curriculum": ((3581, 971), (14, 8), (2857, 129), (754, 463), (5594, 177), (731, 177)),
        },
    ),
    facts=(
        "The paper's own linear arm in this batch: HalfCheetah 4773 ± 536 / 46 ± 41, Ant 2929 ± 157 / 419 ± 446, "
        "Go1 5613 ± 234 / 750 ± 231.",
    ),
    claims=(
        Claim("falls", "Linear curriculum", "<", tuple(arm.label for arm in FIXED), (HALF_CHEETAH,)),
        Claim("final_reward", "Linear curriculum", ">", tuple(arm.label for arm in FIXED), (ANT,)),
    ),
)  # fmt: skip

CURRICULUM = Artefact(
    "curriculum-shape",
    "table",
    "The shape of the curriculum on Ant",
    "SafeExplorer on Ant at the wider d_max = 0.56.",
    (
        Arm("Linear", OURS_WIDE),
        Arm("Log", OURS_WIDE | {"schedule": "log"}),
        Arm("Step (4 jumps)", OURS_WIDE | {"schedule": "step"}),
        Arm("Constant (d = d_max)", OURS_WIDE | {"schedule": "constant"}),
    ),
    (ANT,),
    paper=numbers(
        REWARD_FALLS,
        (ANT,),
        {
            "Linear": ((2888, 351), (952, 1121)),
            "Log": ((2906, 374), (1086, 438)),
            "Step (4 jumps)": ((1537, 549), (5998, 2788)),
            "Constant (d = d_max)": ((294, 74), (29855, 4747)),
        },
    ),
    claims=(Claim("falls", "Linear", "<", ("Step (4 jumps)", "Constant (d = d_max)")),),
)

COMPUTE = Artefact(
    "compute-scaling",
    "table",
    "Twice the budget",
    "PPO and SafeExplorer at 8M and 16M steps and the wider radii (3.2, 0.56); the curriculum stretches along.",
    (
        Arm("PPO, 8M", PPO.changes),
        Arm("PPO, 16M", PPO.changes, budget=2.0),
        Arm("SafeExplorer, 8M", OURS_WIDE),
        Arm("SafeExplorer, 16M", OURS_WIDE, budget=2.0),
    ),
    (HALF_CHEETAH, ANT),
    paper=numbers(
        REWARD_FALLS,
        (HALF_CHEETAH, ANT),
        {
            "PPO, 8M": ((3163, 966), (5266, 2539), (296, 35), (32369, 5625)),
            "PPO, 16M": ((3590, 1969), (15112, 8500), (197, 92), (88900, 35552)),
            "SafeExplorer, 8M": ((4027, 1239), (248, 281), (2888, 351), (952, 1121)),
            "SafeExplorer, 16M": ((5912, 881), (217, 340), (2950, 419), (3332, 2620)),
        },
    ),
    claims=(
        Claim("falls", "PPO, 16M", ">", ("PPO, 8M",)),
        Claim("final_reward", "SafeExplorer, 16M", ">", ("SafeExplorer, 8M",), (HALF_CHEETAH,)),
    ),
)

NORMALISATION = Artefact(
    "compat-norm",
    "table",
    "Normalising the compatibility loss over all recovery steps or per segment",
    "SafeExplorer at the wider radii (3.2, 0.56).",
    (Arm("Global (default)", OURS_WIDE), Arm("Per segment", OURS_WIDE | {"per_segment": True})),
    (HALF_CHEETAH, ANT),
    paper=numbers(
        REWARD_FALLS,
        (HALF_CHEETAH, ANT),
        {
            "Global (default)": ((4027, 1239), (248, 281), (2888, 351), (952, 1121)),
            "Per segment": ((5030, 664), (48, 36), (2474, 489), (2625, 1583)),
        },
    ),
)

NOISE = Artefact(
    "action-noise",
    "table",
    "Gaussian noise on every executed action",
    "SafeExplorer on HalfCheetah at the wider d_max = 3.2.",
    tuple(Arm(f"sigma = {x:.2f}", OURS_WIDE | {"action_noise": x}) for x in (0.0, 0.05, 0.1)),
    (HALF_CHEETAH,),
    paper=numbers(
        REWARD_FALLS,
        (HALF_CHEETAH,),
        {
            "sigma = 0.00": ((4027, 1239), (248, 281)),
            "sigma = 0.05": ((4482, 419), (108, 73)),
            "sigma = 0.10": ((2346, 964), (546, 395)),
        },
    ),
    facts=("At sigma = 0.20, outside the table: 1863 ± 542 reward, 1659 ± 1807 falls.",),
    claims=(Claim("final_reward", "sigma = 0.10", "<", ("sigma = 0.00",)),),
)

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

TABLES = (
    MAIN_RESULTS,
    OPERATIONAL,
    SOFT_VARIANTS,
    LAMBDA_SWEEP,
    FIXED_RADIUS,
    CURRICULUM,
    COMPUTE,
    NORMALISATION,
    NOISE,
    OBJECTIVE_GAP,
    FEASIBILITY,
)
