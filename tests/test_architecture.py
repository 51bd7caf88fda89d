"""docs/architecture.md is what the code is: its graph, its table, and the order of its walks."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import draw_architecture as drawing

PAGE = drawing.PAGE.read_text(encoding="utf-8")


@pytest.fixture
def package(tmp_path):
    """A package of four rooms: c imports b lazily, b imports a for a type, d names c in a text."""
    files = {
        "__init__.py": '"""The face."""\nimport fspll.d.deep\n',
        "a.py": '"""Bottom of it."""\nimport json\n',
        "b/__init__.py": '"""Second\nroom.\n\nMore."""\n',
        "b/one.py": "if TYPE_CHECKING:\n    from fspll.a import Thing\n",
        "c.py": "def later():\n    from fspll.b import one\n    from fspll import a\n",
        "d/__init__.py": "",
        "d/deep.py": 'PLACE = "fspll.c:later"\nNOTE = "see fspll.a: it says"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return drawing.read_package(tmp_path)


def test_every_kind_of_import_is_an_edge(package):
    assert drawing.room_graph(package) == {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"c"}}
    assert drawing.module_graph(package)["fspll.c"] == {"fspll.a", "fspll.b.one"}


def test_arrows_that_follow_from_others_are_left_out(package):
    reduced = drawing.reduce_transitively(drawing.room_graph(package))
    assert reduced == {"a": set(), "b": {"a"}, "c": {"b"}, "d": {"c"}}
    assert drawing.draw_graph(package).splitlines()[6:] == [
        "  b --> a",
        "  c --> b",
        "  d --> c",
        "```",
    ]


def test_the_longest_chain_counts_modules(package):
    chain = drawing.longest_chain(drawing.inner_graph(package))
    assert chain == ["fspll.d.deep", "fspll.c", "fspll.b.one", "fspll.a"]


def test_a_cycle_is_found_and_counted_once():
    ring = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"b"}}
    assert drawing.find_cycle(ring) == ["a", "b", "c"]
    assert drawing.longest_chain(ring) == ["a", "b", "c", "d"]
    assert drawing.longest_chain(ring | {"c": {"a"}}) == ["e", "b", "c", "a"]
    assert drawing.find_cycle({"a": {"b"}, "b": set()}) == []
    with pytest.raises(ValueError, match="there is a cycle: a -> b -> c"):
        drawing.in_order(ring)


def test_sizes(package):
    sizes = drawing.count(package)
    assert (sizes["rooms"], sizes["files"], sizes["lines"]) == ("4", "7", "15")
    assert sizes["longest function"] == "3 lines, `later` in `c`"


def test_the_page_is_current():
    assert drawing.draw(PAGE) == PAGE, "run `make architecture`"


def test_a_room_without_a_word_would_be_noticed():
    modules = drawing.read_package(drawing.PACKAGE)
    rooms = drawing.room_graph(modules)
    assert all(modules[f"fspll.{room}"].summary for room in rooms)
    assert drawing.find_part(PAGE, "rooms").count("\n") == len(rooms) + 2  # two lines of head


def test_only_calls_count_and_in_their_order(tmp_path):
    """Not what an import runs: a module that calls its own function on import is not entered."""
    code = (
        "import draw_architecture as d, pathlib, sys\n"
        "d.PACKAGE = pathlib.Path('pack').resolve()\n"
        "def run():\n    import pack.two, pack.one\n    pack.one.f()\n"
        "print(d.trace(run))\n"
    )
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "one.py").write_text(
        "def g(): pass\ndef f(): pack.three.h()\ng()\nimport pack.three\n"
    )
    (tmp_path / "pack" / "two.py").write_text("def unused(): pass\nunused()\n")
    (tmp_path / "pack" / "three.py").write_text("def h(): pass\n")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{drawing.HERE}:{tmp_path}", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['one.py::f', 'three.py::h']"


@pytest.mark.parametrize("name", drawing.WALKS)
def test_a_walk_is_what_runs(name):
    """The page names functions in the order in which the command first calls them."""
    steps = [place for place, _ in drawing.read_walk(PAGE, name)]
    entered = drawing.walk(name)
    assert 8 <= len(steps) == len(set(steps))
    assert not set(steps) - set(entered), "the command does not call these"
    assert steps == [place for place in entered if place in steps]


@pytest.mark.parametrize("name", drawing.WALKS)
def test_a_walk_returns_to_a_room_for_a_reason(name):
    left, room = set(), "cli"
    for place, text in drawing.read_walk(PAGE, name):
        now = drawing.room_of(place.partition("::")[0])
        if now != room:
            left.add(room)
            reason = re.search(r"^again, (because|to|as|for|after) \w+", text)
            assert bool(reason) == (now in left), f"{place}: {text}"
        room = now


def test_a_walk_shows_the_command_that_is_run():
    words = " ".join(PAGE.split())
    assert all(f"`{command}`" in words for command in drawing.WALKS.values())
