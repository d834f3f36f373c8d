"""The tables of settings: SafeExplorer beside itself, with the paper's numbers."""

from __future__ import annotations

from safeexplorer.paper.artefact import ALL, ANT, HALF_CHEETAH, Arm, Artefact, Claim, numbers
from safeexplorer.paper.tables import OURS, PPO, REWARD_FALLS

WIDE = {HALF_CHEETAH: 3.2, ANT: 0.56}  # d_max of the paper's wider sweep family
OURS_WIDE = {"method": "safeexplorer", "max_radius": WIDE}


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
