"""A setting is declared once, on its field: default, help, and what is allowed."""

import math
from collections.abc import Sequence
from dataclasses import Field, asdict, field, fields
from typing import Any

LARGEST = 1e15  # of any number; beyond it whole ones are no longer exact
WIDEST, DEEPEST = 8192, 16  # layers of networks
LONGEST = 4096  # characters of a text
KINDS = {"int": int, "float": float, "str": str, "bool": bool, "tuple[int, ...]": tuple}


def setting(
    default: Any,
    help: str,
    at_least: float = -math.inf,
    at_most: float = math.inf,
    *,
    above: float = -math.inf,
    choices: Sequence[str] = (),
) -> Any:
    """A field of a frozen dataclass of settings. A type `| None` says that None may stand for not chosen."""
    rule = {"at_least": at_least, "above": above, "at_most": at_most, "choices": tuple(choices)}
    return field(default=default, metadata={"help": help, **rule})


def kind_of(f: Field) -> type:
    """int, float, str, bool, or tuple for widths."""
    return KINDS[f.type.removesuffix(" | None")]


def check_fields(settings: Any) -> None:
    """Refuse what the declarations do not allow: one line that names the field, what was got and what is allowed."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if not (value is None and f.type.endswith(" | None")):
            huge = isinstance(value, int | float) and LARGEST < abs(value) < math.inf
            demand(settings, f.name, is_allowed(f, value), f"up to {LARGEST:g}" if huge else allowed(f))


def demand(settings: Any, name: str, holds: bool, allowed: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise ValueError(f"{name} is {getattr(settings, name)!r}; allowed: {allowed}")


def is_allowed(f: Field, value: Any) -> bool:
    """Is it of the kind, and within the bounds?"""
    kind, rule = kind_of(f), f.metadata
    if kind is tuple:
        wide = isinstance(value, tuple | list) and 0 < len(value) <= DEEPEST
        return wide and all(type(width) is int and 0 < width <= WIDEST for width in value)
    if kind is str:
        readable = isinstance(value, str) and value.isprintable() and len(value) <= LONGEST
        return readable and (not rule["choices"] or value in rule["choices"])
    if kind is bool:
        return isinstance(value, bool)
    number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    within = number and rule["above"] < value and rule["at_least"] <= value <= rule["at_most"]
    return within and abs(value) <= LARGEST


def allowed(f: Field) -> str:
    """In words."""
    kind, rule = kind_of(f), f.metadata
    if kind is tuple:
        return f"1 to {DEEPEST} widths from 1 to {WIDEST}"
    if kind in (str, bool):
        words = {str: f"a printable text of up to {LONGEST} characters", bool: "True or False"}
        return ", ".join(rule["choices"]) or words[kind]
    low, above, high = rule["at_least"], rule["above"], rule["at_most"]
    number = "a whole number" if kind is int else "a number"
    if low > -math.inf and high < math.inf:
        return f"{number} from {low:g} to {high:g}"
    bounds = [f"above {above:g}"] * (above > -math.inf) + [f"of at least {low:g}"] * (low > -math.inf)
    bounds += [f"of at most {high:g}"] * (high < math.inf)
    return " ".join([number, " and ".join(bounds)]).strip()


def option(name: str) -> str:
    """A setting as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def share_of(settings: Any, part: type) -> Any:
    """A dataclass made of the settings that have the names of its fields."""
    return part(**{f.name: getattr(settings, f.name) for f in fields(part)})


def plain(settings: Any) -> dict[str, Any]:
    """Values as JSON gives them back."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(settings).items()}


def difference(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Field by field, what changed."""
    keys = [*old, *(key for key in new if key not in old)]
    return [f"{key}: {old.get(key)!r} -> {new.get(key)!r}" for key in keys if old.get(key) != new.get(key)]
