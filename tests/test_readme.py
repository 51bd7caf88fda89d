"""What the README shows is true: its code runs, its commands and its files exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from fspll.cli.main import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_five_lines_do_what_they_say():
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)  # our own file
    clf = names["clf"]
    assert clf.labels_.tolist() == ["cat", "cat", "dog", "dog", "fox", "fox"]
    assert clf.predict([[1, 1], [8, 1]]).tolist() == ["cat", "dog"]


def test_every_command_of_the_table_exists_and_none_is_missing():
    shown = set(re.findall(r"^\| `fspll (\w+)", README, re.MULTILINE))
    assert shown == set(get_command(app).commands)


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_links_between_pages_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / target).exists(), target
