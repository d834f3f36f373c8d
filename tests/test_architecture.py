"""Imports point one way: from the nouns to the commands."""

from __future__ import annotations

import ast
from pathlib import Path

import safeexplorer

PACKAGE = Path(safeexplorer.__file__).parent
# Each room may import only from rooms above it (and from itself).
ORDER = [
    [
        "trajectory",
        "schedules",
        "networks",
        "checkpoint",
        "provenance",
        "interruption",
        "extras",
        "robot",
        "statistics",
    ],
    ["methods", "interventions", "simulation", "policy"],
    ["dialects", "episode_memory", "stable_baselines"],
    ["environments"],
    ["segments", "rendering", "envs", "onnx_graph"],
    ["labelling", "diagnostics", "costs"],
    ["learner", "constrained"],
    ["rollout", "accounting", "theory", "settings"],
    ["recording", "reroll", "evaluation", "runs", "learners"],
    ["recovery", "summary", "engines", "policy_files"],
    ["realtime"],
    ["world"],
    ["run_record"],
    ["training", "results", "deploy", "audit"],
    ["agent"],
    ["paper"],
    ["report"],
]


def imports(path: Path) -> set[str]:
    """Rooms that a file imports at module level."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("safeexplorer"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_no_room_imports_from_a_room_below_it():
    level = {name: i for i, names in enumerate(ORDER) for name in names}
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        mine = room(path)
        if mine not in level or path.name == "commands.py":
            continue  # commands and displays sit at the bottom and may import anything
        for other in imports(path) - {mine}:
            if other in level and level[other] >= level[mine]:
                wrong.append(f"{mine} imports {other}")
    assert not wrong
