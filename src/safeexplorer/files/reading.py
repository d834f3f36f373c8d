"""Small files as they are read: what is wrong with one is said in a line that names it."""

import json
from pathlib import Path
from typing import Any


def read_json(path: Path, kind: type = dict) -> Any:
    """A JSON file whose content is of this kind, without NaN and infinities, which JSON does not know."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing") from None
    except (ValueError, RecursionError) as error:  # torn, not UTF-8, or nested beyond reason
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, kind):
        raise ValueError(f"{path} is damaged: it holds {type(content).__name__}, expected {kind.__name__}")
    return content


def read_json_if_any(path: Path) -> dict[str, Any] | None:
    """None where there is no such file."""
    return read_json(path) if path.is_file() else None


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
