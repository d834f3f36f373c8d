"""The tested set of versions is written down, and lies within the bounds of the project."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
TESTED = ("robots", "plots", "onnx", "test")


def needs(*extras: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    more = [text for name in extras for text in project["optional-dependencies"][name]]
    return [Requirement(text) for text in [*project["dependencies"], *more]]


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    found = dict(line.split("==") for line in lines if "==" in line)
    return {canonicalize_name(name): version for name, version in found.items()}


def test_every_dependency_of_the_tests_is_pinned_within_its_bounds():
    wanted, pinned = needs(*TESTED), pins("requirements.lock")
    outside = [str(need) for need in wanted if need.name != "safeexplorer"
               and not need.specifier.contains(pinned.get(canonicalize_name(need.name), "0"))]  # fmt: skip
    assert not outside
    assert "-c requirements.lock" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_lowest_versions_that_are_tested_are_the_lower_bounds():
    lowest = pins("requirements-lowest.txt")
    for need in needs("robots", "plots", "onnx"):
        bound = next(s.version for s in need.specifier if s.operator == ">=")
        assert Version(lowest[canonicalize_name(need.name)]) == Version(bound), need
    assert "-c requirements-lowest.txt" in (ROOT / "Makefile").read_text(encoding="utf-8")
