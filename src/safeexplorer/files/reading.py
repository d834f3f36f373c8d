"""Small files as they are read: what is wrong with one is said in a line that names it."""

import json
import math
from pathlib import Path
from typing import Any

NUMBER = int | float


def read_json(path: Path, shape: Any = dict) -> Any:
    """A JSON file whose content has this shape (see `misfit`), without NaN and infinities, which JSON does not know."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse, parse_float=finite)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (ValueError, RecursionError) as error:  # torn, not UTF-8, or nested beyond reason
        raise ValueError(f"{path} is damaged: {error}") from None
    wrong = misfit(content, shape)
    if wrong is not None:
        raise ValueError(f"{path} is damaged: {wrong}")
    return content


def read_json_if_any(path: Path, shape: Any = dict) -> Any:
    """None where there is no such file."""
    return read_json(path, shape) if path.is_file() else None


def misfit(value: Any, shape: Any, name: str = "it") -> str | None:
    """Where a value is not of a shape: a type, [the shape of each] or {key: its shape}; None if it is.

    A key that ends in ? may be missing or null; the key * stands for every key.
    """
    kind = type(shape) if isinstance(shape, dict | list) else shape
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return f"{name} holds {type(value).__name__}, expected {getattr(kind, '__name__', kind)}"
    parts: list[tuple[Any, Any, str]] = []
    if isinstance(shape, list):
        parts = [(one, shape[0], f"{name}[{i}]") for i, one in enumerate(value)]
    for key, part in shape.items() if isinstance(shape, dict) else ():
        known = key.removesuffix("?")
        if key == "*":
            parts += [(one, part, f"{name}.{word}") for word, one in value.items()]
        elif known == key or value.get(known) is not None:
            if known not in value:
                return f"{name} has no {known}"
            parts.append((value[known], part, f"{name}.{known}"))
    return next((wrong for wrong in (misfit(*part) for part in parts) if wrong is not None), None)


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else refuse(text)
