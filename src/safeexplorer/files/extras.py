"""Packages that only some features need, imported when they are asked for."""

from importlib import import_module
from typing import Any


def load(module: str, extra: str, wanted_by: str) -> Any:
    """The module, or one line that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ValueError(f"{wanted_by} needs {module}: pip install safeexplorer[{extra}]") from error
