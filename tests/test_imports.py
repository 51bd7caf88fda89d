"""The rooms: which may import from which, and what is imported before it is needed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import draw_architecture
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
    {"export"},
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


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """Return (line, module) of every import, inside functions and of types only, too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the room"
            if node.module == "fspll":
                found += [(node.lineno, f"fspll.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module or ""))
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
        if room == "__init__" or other == room:  # the public face names everything
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
    assert found == [
        "fspll._common.devices",
        "fspll.candidates",
        "fspll.cli",
        "torch.nn",
        "typing",
    ]


def defined_names(tree: ast.AST) -> set[str]:
    """Return the private names of functions, classes, variables and attributes of a file."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def private_names(tree: ast.AST, elsewhere: set[str]) -> list[str]:
    """Return where a file takes a name with a leading underscore from another module.

    In an import, or as an attribute whose name other files define and it does not.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            taken = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            taken = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [
            f"line {node.lineno}: {name}"
            for name in taken
            if name.startswith("fspll.") and any(map(is_private, name.split(".")))
        ]
    strange = elsewhere - defined_names(tree)
    return found + [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in strange
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_common"


def test_private_names_stay_in_their_module():
    trees = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    everywhere = set().union(*map(defined_names, trees.values()))
    assert len(everywhere) > 100
    found = {str(path): private_names(tree, everywhere) for path, tree in trees.items()}
    assert not {path: names for path, names in found.items() if names}


def test_private_names_would_be_noticed():
    code = """
from fspll._common.files import _write, read
from fspll.labeling import pipeline
import fspll.labeling._hidden
from other import _thing
def _mine(clf, report):
    return clf._encode(pipeline._prepare, clf.__class__, _mine, clf._own, report._asdict())
class Thing:
    def __init__(self): self._own = self._encode()
"""
    assert private_names(ast.parse(code), {"_encode", "_prepare", "_mine", "_own"}) == [
        "line 2: fspll._common.files._write",
        "line 4: fspll.labeling._hidden",
        "line 7: clf._encode",
        "line 7: pipeline._prepare",
    ]


def through_a_package(tree: ast.AST, packages: dict[str, set[str]]) -> list[str]:
    """Return where a file takes a name from a package that has it from another module itself."""
    return [
        f"line {node.lineno}: {node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in packages.get(node.module or "", ())
    ]


def test_names_come_from_the_module_that_defines_them():
    """Packages gather names for users; inside, that would only make chains of imports longer."""
    found = draw_architecture.read_package(ROOT)
    packages = {
        name: {
            alias.name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("fspll.")
            for alias in node.names
        }
        for name, module in found.items()
        if module.path.name == "__init__.py"
    }
    assert packages["fspll.diagnosis"] >= {"Diagnosis", "diagnose"}
    wrong = {
        name: through_a_package(module.tree, packages)
        for name, module in found.items()
        if name not in packages
    }
    assert not {name: lines for name, lines in wrong.items() if lines}


def test_a_name_from_a_package_would_be_noticed():
    code = "from json import diagnose\nfrom fspll.diagnosis import analysis, diagnose\n"
    found = through_a_package(ast.parse(code), {"fspll.diagnosis": {"diagnose"}})
    assert found == ["line 2: fspll.diagnosis.diagnose"]


def test_the_rooms_are_few_and_import_each_other_in_one_direction():
    modules = draw_architecture.read_package(ROOT)
    graph = draw_architecture.room_graph(modules)
    assert 10 < len(graph) <= 17
    assert draw_architecture.find_cycle(graph) == []
    assert set(graph) <= set(LEVEL)


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
    for room in ("", ".annotations", ".embeddings", ".metalearning"):
        package = importlib.import_module(f"fspll{room}")
        assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError, match="module 'fspll' has no attribute 'nothing'"):
        fspll.nothing  # noqa: B018
