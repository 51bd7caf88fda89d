"""The house: which room may import from which, and what is imported before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fspll

ROOT = Path(fspll.__file__).parent

# A room imports only from rooms above it; rooms of one line may not import each other.
ORDER = [
    {"_common"},
    {"candidates"},
    {"datasets"},
    {"annotations"},
    {"tasks"},
    {"embeddings"},
    {"rectifiers"},
    {"modelfile"},
    {"classifier"},
    {"diagnosis"},
    {"baselines"},
    {"metalearning"},
    {"labeling"},
    {"experiments"},
    {"app"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
CORE = ("candidates", "tasks", "rectifiers", "modelfile", "classifier")
CORE_PACKAGES = {"torch", "numpy", "scipy", "sklearn", "fspll"}


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def is_type_checking(node: ast.AST) -> bool:
    test = getattr(node, "test", None)
    name = getattr(test, "id", None) or getattr(test, "attr", None)
    return isinstance(node, ast.If) and name == "TYPE_CHECKING"


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """Return (line, module) of every import, inside functions too, but not of types only."""
    found = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the room"
            if node.module == "fspll":
                found += [(node.lineno, f"fspll.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module or ""))
        if is_type_checking(node):
            waiting += node.orelse  # type: ignore[attr-defined]
        else:
            waiting += ast.iter_child_nodes(node)
    return found


FILES = sorted(ROOT.rglob("*.py"))


def modules(path: Path) -> list[tuple[int, str]]:
    return imported_modules(ast.parse(path.read_text(encoding="utf-8")))


def test_every_file_is_in_a_room():
    assert len(FILES) > 30
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms <= set(LEVEL), f"say in ORDER where {sorted(rooms - set(LEVEL))} belong"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_rooms_import_only_from_rooms_before_them(path):
    room = room_of(path)
    wrong = []
    for line, module in modules(path):
        package, _, rest = module.partition(".")
        if package != "fspll":
            continue
        other = rest.partition(".")[0]
        if room == "__init__":  # the public names come when they are used
            allowed = other == "_common"
        elif other == room:
            allowed = True
        else:
            allowed = LEVEL[other] < LEVEL[room] if other in LEVEL else other == "__version__"
        if not allowed:
            wrong.append(f"line {line}: {module}")
    assert not wrong, f"{room} may not import {wrong}"


def test_the_test_would_notice():
    code = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from fspll.cli import main
else:
    import fspll._common.devices
def later():
    from fspll import candidates
    import torch.nn as nn
"""
    found = sorted(module for _, module in imported_modules(ast.parse(code)))
    assert found == ["fspll._common.devices", "fspll.candidates", "torch.nn", "typing"]


@pytest.mark.parametrize("room", CORE)
def test_the_core_needs_four_packages_only(room):
    files = [path for path in FILES if room_of(path) == room]
    packages = {module.partition(".")[0] for path in files for _, module in modules(path)}
    assert files
    assert packages <= CORE_PACKAGES | set(sys.stdlib_module_names)


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules, sep='\\n')"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return {name.partition(".")[0] for name in shown.stdout.split()}


def test_importing_the_package_is_light():
    loaded = loaded_after("import fspll")
    assert "fspll" in loaded
    assert not loaded & {"torch", "sklearn", "scipy", "numpy", "PIL", "rich", "typer"}


def test_importing_the_command_line_is_light():
    loaded = loaded_after("import fspll.cli.main")
    assert {"fspll", "typer"} <= loaded
    assert not loaded & {"torch", "sklearn", "scipy", "PIL", "matplotlib", "joblib"}


def test_public_names_are_found_when_used():
    for name in fspll.__all__:
        assert getattr(fspll, name) is not None
    assert fspll.FsPLLClassifier.__module__ == "fspll.classifier"
    assert set(fspll._HOME) | {"__version__"} == set(fspll.__all__)
    assert dir(fspll) == sorted(fspll.__all__)
    with pytest.raises(AttributeError, match="module 'fspll' has no attribute 'nothing'"):
        fspll.nothing  # noqa: B018
