"""What the site takes from beside this folder: the README is its first page, examples are files of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "rsl_rl.md": "plugins/rsl_rl/README.md",
}
# How files link to each other in the repository, and how in the site.
LINKS = {
    "](docs/": "](",
    "](CONTRIBUTING.md)": "](contributing.md)",
    "](CHANGELOG.md)": "](changelog.md)",
    "](examples)": "](bring-your-own.md#examples)",
    "](../examples/": "](examples/",
    "](../plugins/rsl_rl/README.md": "](rsl_rl.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Pages and examples that lie elsewhere in the repository."""
    root = Path(config.config_file_path).parent
    examples = {f"examples/{path.name}": path for path in sorted((root / "examples").glob("*.py"))}
    for name, source in {**PAGES, **examples}.items():
        files.append(File.generated(config, name, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links as they are in the site."""
    for here, there in LINKS.items():
        markdown = markdown.replace(here, there)
    return markdown
