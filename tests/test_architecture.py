"""The rooms of the package, and what each may import: only rooms above it, and libraries that live there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import safeexplorer

PACKAGE = Path(safeexplorer.__file__).parent
TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "architecture.md"
# From the nouns to the commands; each room may import only from rooms above it (and from itself).
ROOMS = [
    ["files"],
    ["acting"],
    ["recovery"],
    ["robots"],
    ["adapters"],
    ["learning"],
    ["accelerated"],
    ["pretraining"],
    ["runs"],
    ["campaigns"],
    ["theory", "audit", "realtime", "export"],
    ["paper"],
    ["report"],
    ["agent"],
    ["commands"],
    ["cli", "__init__"],
    ["__main__"],
]
LEVEL = {name: level for level, names in enumerate(ROOMS) for name in names}
# Where each large library is at home. Audits differentiate the loss.
LIBRARIES = {
    "jax": {"learning", "accelerated", "pretraining", "theory", "audit"},
    "optax": {"learning", "pretraining"},
    "mujoco": {"robots"},
    "matplotlib": {"paper", "pretraining"},
    "torch": {"adapters", "runs"},
}
# Torch is never needed: an adapter that OmniSafe's users import themselves, and the peer that `bench train` may time.
TORCH = {"adapters/omnisafe.py", "runs/benchmark.py"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every module that a file imports, on loading or on use; what only type checkers read is left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "safeexplorer"}
    return found


def rooms_imported(path: Path) -> set[str]:
    names = {name.split(".")[1] for name in imported(path) if name.startswith("safeexplorer.")}
    return names & set(LEVEL)


def test_every_module_lives_in_a_room():
    assert {room(path) for path in modules()} == set(LEVEL)


def test_at_most_five_files_stay_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 5


def test_no_room_imports_from_a_room_below_it_or_beside_it():
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in modules()
        for other in rooms_imported(path) - {room(path)}
        if LEVEL[other] >= LEVEL[room(path)]
    }
    assert wrong == set(), "\n".join(sorted(wrong))


def test_large_libraries_live_in_their_rooms():
    found = {(room(path), name.split(".")[0]) for path in modules() for name in imported(path)}
    wrong = {
        f"{where} imports {library}"
        for where, library in found
        if library in LIBRARIES and where not in LIBRARIES[library]
    }
    assert wrong == set()


def test_no_room_keeps_a_library_it_does_not_use():
    found = {(name.split(".")[0], room(path)) for path in modules() for name in imported(path)}
    assert {(library, where) for library, rooms in LIBRARIES.items() for where in rooms} <= found


def test_the_loss_never_asks_which_method_it_is_training():
    """As README and the page say: what a row of the table means is in the numbers of the batch."""
    source = (PACKAGE / "learning" / "loss.py").read_text(encoding="utf-8")
    assert "method" not in source.lower()
    assert "whose loss never asks which method it is training" in (PAGE.parents[1] / "README.md").read_text()


def test_torch_is_imported_only_where_somebody_brought_it():
    assert {str(p.relative_to(PACKAGE)) for p in modules() if "torch" in imported(p)} <= TORCH
    loaded = "import sys, safeexplorer.agent, safeexplorer.cli; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True).strip() == "False"


def test_acting_and_the_numbers_of_the_learners_load_without_jax():
    names = [f"safeexplorer.acting.{path.stem}" for path in (PACKAGE / "acting").glob("*.py")]
    names += [f"safeexplorer.learning.{name}" for name in ("methods", "hyperparameters", "constrained")]
    loaded = (
        f"import sys, importlib; [importlib.import_module(n) for n in {names}]; print('jax' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True).strip() == "False"


def test_the_folders_of_the_tests_are_the_rooms():
    """Beside them what tests share (`support`) and outputs kept for comparison (`golden`)."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == rooms | {"support", "golden"}


def test_tests_share_support_and_nothing_else():
    for path in TESTS.rglob("*.py"):
        tests = {name for name in imported(path) if re.match(r"(tests\.)?(.*\.)?(test_\w+|conftest)$", name)}
        assert tests == set(), path


def test_the_page_leads_one_transition_through_functions_that_exist():
    hops = re.findall(r"^\| \d+ \| `([\w/]+\.py): (\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert 10 <= len(set(hops)) == len(hops) <= 15
    for file, name in hops:
        nodes = ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8")))
        assert name in {getattr(node, "name", None) for node in nodes}, f"{file}: {name}"


def test_every_file_and_room_that_the_page_names_is_there():
    page, root = PAGE.read_text(encoding="utf-8"), PAGE.parents[1]
    for file in re.findall(r"`((?:\w+/)*\w+\.(?:py|toml))\b", page):
        assert (PACKAGE / file).is_file() or (root / file).is_file(), file
    assert [room for room in LEVEL if not re.search(rf"^ .*\b{room}\b", page, re.MULTILINE)] == [
        "__init__",
        "__main__",
    ]
