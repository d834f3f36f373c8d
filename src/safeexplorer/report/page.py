"""The page: one file with its style, its script and its data inside. It asks the network for nothing."""

import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from safeexplorer.files.writing import write_text
from safeexplorer.report.content import content
from safeexplorer.runs.results import Result


def write_page(
    results: Sequence[Result], path: Path, title: str = "Safe exploration: runs side by side"
) -> None:
    """Write the comparison of `results` to `path`."""
    parts = files("safeexplorer.report")
    data = json.dumps(content(results, title), allow_nan=False, separators=(",", ":"))
    pieces = {
        "title": html.escape(title),
        "style": parts.joinpath("page.css").read_text(encoding="utf-8"),
        "charts": parts.joinpath("charts.js").read_text(encoding="utf-8"),
        "script": parts.joinpath("page.js").read_text(encoding="utf-8"),
        "data": data.replace("<", "\\u003c"),  # nothing in the data can end the element that holds it
    }
    template = parts.joinpath("page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda mark: pieces[mark[1]], template)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)
