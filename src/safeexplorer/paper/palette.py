"""One colour per method, the same in every figure and on every page. SafeExplorer is red, the ladder blue."""

from collections.abc import Iterable
from zlib import crc32

from safeexplorer.paper.artefact import Arm

COLOURS = {
    "ppo": "#6b7280",
    "recovery_rl": "#e08a00",
    "safe_legged": "#8c6d31",
    "cpo": "#009e73",
    "ppo_lagrangian": "#c45aa0",
    "unmasked": "#74b3e8",
    "masked": "#3583d6",
    "analytic": "#1c4f9c",
    "soft": "#9a86d1",
    "soft_decomposed": "#5e4fa2",
    "dagger": "#14a3b8",
    "safeexplorer": "#d62839",
    "safeexplorer_auto": "#8f1d3f",
    "truncated_is": "#57534e",
}
CYCLE = ("#0f8a7e", "#a16207", "#7c3aed", "#be185d", "#4d7c0f", "#0369a1", "#9f580a", "#475569")
ROBOT_COLOURS = {"half_cheetah": "#3583d6", "ant": "#e08a00", "go1": "#009e73"}


def arm_colours(arms: Iterable[Arm]) -> dict[str, str]:
    """By label. A plain method and the first arm of any has the method's colour; others, and methods without one,
    take a colour that follows from their label, the next one where it is taken."""
    found: dict[str, str] = {}
    for arm in arms:
        start = crc32(arm.label.encode())
        turns = (CYCLE[(start + i) % len(CYCLE)] for i in range(len(CYCLE)))
        choice = next((c for c in turns if c not in found.values()), CYCLE[start % len(CYCLE)])
        own = COLOURS.get(arm.method, choice)
        found[arm.label] = own if arm.plain or own not in found.values() else choice
    return found
