"""Draw the import graph of the package, count its code and follow its calls.

``make architecture`` (or ``python docs/draw_architecture.py``) writes the drawn parts of
docs/architecture.md again. ``--count FOLDER`` prints the sizes of any version of the package.

A *room* is a folder or a file at the top of ``src/fspll``; ``__init__.py`` is the public face and
``__main__.py`` the door, and neither is a room. Every import counts, also inside a function and for
types only, and so does the place "fspll.module:name" in the text of a registry.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "fspll"
PAGE = HERE / "architecture.md"
NOT_ROOMS = {"__init__", "__main__"}
PLACE = re.compile(r"(fspll(?:\.\w+)+)(?::\w+)?")

CHAIN = "modules in the longest chain of imports"
# What `--count` prints of the code before the redesign, commit 8119ba9.
BEFORE = {"rooms": 29, CHAIN: 22}

Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Module:
    """One file: its dotted name, its tree, the dotted names that it imports or has as a text."""

    name: str
    path: Path
    tree: ast.Module
    imported: frozenset[str]
    places: frozenset[str]

    @property
    def room(self) -> str:
        """The part below the package; "__init__" for the package itself."""
        return self.name.split(".")[1] if "." in self.name else "__init__"

    @property
    def summary(self) -> str:
        """The first sentence of the docstring, without its period."""
        text = (ast.get_docstring(self.tree) or "").partition("\n\n")[0]
        return " ".join(text.split()).removesuffix(".")

    @property
    def functions(self) -> list[tuple[int, str]]:
        """Lines (docstring included, decorators not) and name of each of its functions."""
        return [
            ((node.end_lineno or node.lineno) - node.lineno + 1, node.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]


def read_package(package: Path) -> dict[str, Module]:
    """Return every module of a package folder by dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = ("fspll", *path.relative_to(package).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        found[name] = Module(name, path, tree, frozenset(_imports(tree)), frozenset(_places(tree)))
    return found


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: a relative import hides the room")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _places(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            place = PLACE.fullmatch(node.value)
            if place:
                yield place[1]


def module_graph(modules: dict[str, Module]) -> Graph:
    """Return which module imports which; a name inside a module counts as that module."""
    graph: Graph = {}
    for name, module in modules.items():
        targets = {_nearest(imported, modules) for imported in module.imported}
        # The package that a module is in has the name of its entry points: no place in it.
        targets |= {place for place in module.places & set(modules) if not _holds(place, name)}
        graph[name] = {target for target in targets if target and target != name}
    return graph


def _holds(package: str, name: str) -> bool:
    return name.startswith(f"{package}.")


def _nearest(imported: str, modules: dict[str, Module]) -> str | None:
    """Return the module that a dotted name is in, or None outside the package."""
    while imported and imported not in modules:
        imported = imported.rpartition(".")[0]
    return imported or None


def inner_graph(modules: dict[str, Module]) -> Graph:
    """Return the module graph of the rooms, without the public face and the door."""
    outside = {name for name, module in modules.items() if module.room in NOT_ROOMS}
    graph = module_graph(modules)
    return {name: graph[name] - outside for name in graph if name not in outside}


def room_graph(modules: dict[str, Module]) -> Graph:
    """Return which room imports from which other."""
    graph: Graph = {module.room: set() for module in modules.values()}
    for name, targets in module_graph(modules).items():
        graph[modules[name].room] |= {modules[target].room for target in targets}
    return {
        room: others - NOT_ROOMS - {room} for room, others in graph.items() if room not in NOT_ROOMS
    }


def room_of(file: str) -> str:
    """Return the room of a file below the package's folder."""
    return Path(file).with_suffix("").parts[0]


def find_cycle(graph: Graph) -> list[str]:
    """Return the nodes of one cycle in order, or nothing."""
    done: set[str] = set()

    def follow(node: str, trail: list[str]) -> list[str]:
        if node in trail:
            return trail[trail.index(node) :]
        if node in done:
            return []
        for target in sorted(graph[node]):
            if cycle := follow(target, [*trail, node]):
                return cycle
        done.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := follow(node, []))), [])


def in_order(graph: Graph) -> list[str]:
    """Return the nodes so that each comes after all that it imports from, then by name."""
    order: list[str] = []
    while len(order) < len(graph):
        ready = sorted(node for node in graph if node not in order and graph[node] <= set(order))
        if not ready:
            raise ValueError(f"there is a cycle: {' -> '.join(find_cycle(graph))}")
        order.append(ready[0])
    return order


def reduce_transitively(graph: Graph) -> Graph:
    """Drop the edge a -> c where a reaches c through another edge; the rest reaches as much."""
    reached = {node: _reached(graph, node) for node in graph}
    return {
        node: {t for t in targets if not any(t in reached[other] for other in targets - {t})}
        for node, targets in graph.items()
    }


def longest_chain(graph: Graph) -> list[str]:
    """Return the longest path of imports that meets no module twice, from the importing end."""
    ring = {node: _ring(graph, node) for node in graph}  # those in a cycle with it, itself included

    @cache
    def below(node: str, met: frozenset[str]) -> tuple[str, ...]:
        """Return the longest path from a node, past those of its ring that were met before."""
        onward = [
            below(target, met | {node} if target in ring[node] else frozenset())
            for target in sorted(graph[node] - met)
        ]
        return (node, *max(onward, key=len, default=()))

    return list(max((below(node, frozenset()) for node in sorted(graph)), key=len, default=()))


def _ring(graph: Graph, node: str) -> set[str]:
    return {other for other in _reached(graph, node) if node in _reached(graph, other)} | {node}


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def count(modules: dict[str, Module]) -> dict[str, str]:
    """Return the sizes of a package: what is counted, and how much there is of it."""
    lines = {name: _lines(module.path) for name, module in modules.items()}
    functions = [
        (length, f"`{function}` in `{_shown(name)}`")
        for name, module in modules.items()
        for length, function in module.functions
    ]
    long_file = max(lines, key=lambda name: (lines[name], name))
    length, function = max(functions)
    return {
        "rooms": str(len(room_graph(modules))),
        "files": str(len(modules)),
        "lines": f"{sum(lines.values()):,}",
        "longest file": f"{lines[long_file]} lines, `{_shown(long_file)}`",
        "longest function": f"{length} lines, {function}",
        "files above 400 lines": str(sum(many > 400 for many in lines.values())),
        "functions above 60 lines": str(sum(length > 60 for length, _ in functions)),
        CHAIN: str(len(longest_chain(inner_graph(modules)))),
    }


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _shown(module: str) -> str:
    return module.removeprefix("fspll.").replace(".", "/")


def draw_rooms(modules: dict[str, Module]) -> str:
    """Return a table of the rooms, in an order in which each imports only from those above it."""
    graph = room_graph(modules)
    lines = ["| room | what is in it | imports from |", "|---|---|---|"]
    for room in in_order(graph):
        others = ", ".join(sorted(graph[room])) or "nothing"
        lines.append(f"| `{room}` | {modules[f'fspll.{room}'].summary} | {others} |")
    return "\n".join(lines)


def draw_chain(modules: dict[str, Module]) -> str:
    """Return how far imports reach, now and before, and the longest chain there is now."""
    chain = longest_chain(inner_graph(modules))
    now = {"rooms": len(room_graph(modules)), CHAIN: len(chain)}
    lines = ["| | before | now |", "|---|---:|---:|"]
    lines += [f"| {name} | {BEFORE[name]} | {figure} |" for name, figure in now.items()]
    steps = [f"`{_file_of(modules[name])}`" for name in chain]
    return "\n".join([*lines, "", "The longest chain: " + " → ".join(steps) + "."])


def _file_of(module: Module) -> str:
    return module.path.relative_to(PACKAGE).as_posix()


def draw_graph(modules: dict[str, Module]) -> str:
    """Return the graph between rooms as a Mermaid diagram, what all stand on at the top."""
    graph = room_graph(modules)
    reduced = reduce_transitively(graph)
    lines = ["```mermaid", "flowchart BT"]
    lines += [f'  {room.strip("_")}["{room}"]' for room in in_order(graph)]
    lines += [
        f"  {room.strip('_')} --> {target.strip('_')}"
        for room in in_order(graph)
        for target in sorted(reduced[room])
    ]
    return "\n".join([*lines, "```"])


def replace_part(page: str, name: str, text: str) -> str:
    """Return the page with another text between ``<!-- name -->`` and ``<!-- end name -->``."""
    start, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"the page has no part between {start.strip()} and {end.strip()}")
    return f"{before}{start}{text}\n{end}{after}"


def find_part(page: str, name: str) -> str:
    """Return what is between ``<!-- name -->`` and ``<!-- end name -->``."""
    return page.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- end {name} -->")[0]


# Walks: which functions of which files a run really enters, and in which order.


def trace(run: Callable[[], object]) -> list[str]:
    """Return the functions of the package that a run calls, in order of the first call.

    Each is "file::function". What a module does while it is being imported does not count.
    """
    top = str(PACKAGE) + "/"
    entered: dict[str, None] = {}
    importing: list[FrameType] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if not (code.co_filename.startswith(top) and code.co_filename.endswith(".py")):
            return
        if code.co_name == "<module>":
            if event == "call":
                importing.append(frame)
            elif event == "return":
                importing.remove(frame)
        elif event == "call" and not importing:
            entered.setdefault(f"{code.co_filename.removeprefix(top)}::{code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return list(entered)


def run_command(line: str) -> None:
    """Run ``fspll ...`` in this process."""
    from fspll.cli.main import main

    before, sys.argv = sys.argv, shlex.split(line)
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"{line} ended with {ended.code}") from ended
    finally:
        sys.argv = before


def make_small() -> None:
    """Shrink what the commands take long for: the order of their calls stays the same."""
    from fspll.datasets.glyphs.drawing import SPLITS
    from fspll.experiments.reproduce import profiles

    SPLITS.update({name: classes[:20] for name, classes in SPLITS.items()})
    profiles._EPOCH = 2


def write_pictures() -> None:
    """Write six drawings of five characters, one folder per class, and a table of candidates."""
    from PIL import Image

    from fspll.datasets import load_glyphs

    drawn = load_glyphs(5, 6, split="test")
    lines = ["file,candidates"]
    for row, (image, label) in enumerate(zip(drawn.images, drawn.labels, strict=True)):
        name = f"drawn/{'abcde'[label]}/{row}.png"
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(name)
        lines.append(f"{name},{'abcde'[label]}" + f"|{'bcdea'[label]}" * (row % 3 > 0))
    Path("labels.csv").write_text("\n".join(lines) + "\n")


WALKS = {  # the commands of the page
    "label": "fspll label labels.csv --images . --encoder omniglot-conv4 --out result",
    "episode": "fspll train --dataset drawn --tasks 1 --epochs 1 --n-way 3 --out result",
    "cell": "fspll reproduce omniglot --dataset glyphs --profile quick --rows FsPLL --r 1 --n-way 5"
    " --n-shot 5 --tasks 2 --jobs 1 --out result",
}


def walk(name: str) -> list[str]:
    """Return the functions that the command of a walk enters, in a new process of one thread."""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--trace", name],
            cwd=folder,
            env={**os.environ, "XDG_CACHE_HOME": folder, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.partition("entered:\n")[2].splitlines()


def read_walk(page: str, name: str) -> list[tuple[list[str], str]]:
    """Return the steps of a walk as the page has them: "file::function", and what it does."""
    steps = re.findall(
        r"^\d+\. `([^`]+)`: (.+?)(?=\n\d+\. |\Z)", find_part(page, f"walk {name}"), re.M | re.S
    )
    return [(place, " ".join(text.split())) for place, text in steps]


def main() -> None:
    """Write the drawn parts of the page, or print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=Path, metavar="FOLDER", help="print the sizes of a package")
    parser.add_argument("--walk", choices=list(WALKS), help="print the functions that it enters")
    parser.add_argument("--trace", choices=list(WALKS), help="the same, in this process and folder")
    asked = parser.parse_args()
    if asked.count:
        for name, figure in count(read_package(asked.count)).items():
            print(f"{name}: {figure}")
    elif asked.walk:
        print(*walk(asked.walk), sep="\n")
    elif asked.trace:
        make_small()
        write_pictures()
        print("entered:", *trace(lambda: run_command(WALKS[asked.trace])), sep="\n")
    else:
        PAGE.write_text(draw(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def draw(page: str) -> str:
    """Return the page with everything that is drawn from the code as it is now."""
    modules = read_package(PACKAGE)
    page = replace_part(page, "rooms", draw_rooms(modules))
    page = replace_part(page, "graph", draw_graph(modules))
    return replace_part(page, "chain", draw_chain(modules))


if __name__ == "__main__":
    main()
