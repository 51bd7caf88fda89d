"""What the README shows is true: its code runs, its commands and its files exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from typer.main import get_command

from fspll.cli.main import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()


def test_the_five_lines_do_what_they_say():
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)  # our own file
    clf = names["clf"]
    assert clf.labels_.tolist() == ["cat", "cat", "dog", "dog", "fox", "fox"]
    assert clf.predict([[1, 1], [8, 1]]).tolist() == ["cat", "dog"]


def test_every_command_of_the_table_exists_and_none_is_missing():
    shown = set(re.findall(r"^\| `fspll (\w+)", COMMANDS, re.MULTILINE))
    assert shown == set(get_command(app).commands)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "results/**/*.md")
    for path in ROOT.glob(pattern)
)


def anchors(text):
    """Return the names that a page's headings have in links."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_page_is_looked_at():
    assert len(PAGES) > 25
    assert {"README.md", "CONTRIBUTING.md", "docs/labeling.md", "results/README.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page):
    path = ROOT / page
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, place in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        leads = path.parent / target if target else path
        assert leads.exists(), target
        if place:
            assert place in anchors(leads.read_text(encoding="utf-8")), f"{target}#{place}"


@pytest.mark.parametrize("page", PAGES)
def test_files_and_names_of_the_code_exist(page):
    """What a page calls `some/file.py` or fspll.some.name is there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for file in re.findall(r"`([\w./]+/\w+\.py)`", text):
        places = (ROOT / file, ROOT / "src" / file, ROOT / "src" / "fspll" / file)
        assert any(place.exists() for place in places), file
    for name in re.findall(r"\bfspll(?:\.[a-z]\w*){2,}", text):
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), attribute), name
