"""The tested set of versions is written down, and lies within the bounds of the project."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TESTED = ("robots", "plots", "onnx", "test")


def test_every_dependency_of_the_tests_is_pinned_within_its_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for name in TESTED for text in project["optional-dependencies"][name]]
    wanted = [Requirement(text) for text in [*project["dependencies"], *extras]]
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    outside = [str(need) for need in wanted if need.name != "safeexplorer"
               and not need.specifier.contains(pinned.get(canonicalize_name(need.name), "0"))]  # fmt: skip
    assert not outside
    assert "-c requirements.lock" in (ROOT / "Makefile").read_text(encoding="utf-8")
