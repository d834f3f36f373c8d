"""One colour per method, the same in every figure and on the page. SafeExplorer is red, the ladder blue."""

from __future__ import annotations

from collections.abc import Sequence

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
    "truncated_is": "#57534e",
}
SEQUENCE = ("#d62839", "#3583d6", "#009e73", "#e08a00", "#9a86d1", "#6b7280")
MORE_COLOURS = ("#0f8a7e", "#a16207", "#7c3aed", "#be185d", "#4d7c0f", "#0369a1")  # variants of a method
ROBOT_COLOURS = {"half_cheetah": "#3583d6", "ant": "#d62839", "go1": "#009e73"}


def arm_colours(arms: Sequence[Arm]) -> dict[str, str]:
    """By method where every arm has its own, else one after the other."""
    methods = [arm.method for arm in arms]
    if len(set(methods)) == len(methods):
        return {arm.label: COLOURS[arm.method] for arm in arms}
    return {arm.label: SEQUENCE[i % len(SEQUENCE)] for i, arm in enumerate(arms)}
