"""The worked examples are true: their code and commands run, and print what the pages show."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest

from fspll.cli.main import main
from fspll.embeddings.encoders.text import missing_package

PAGES = sorted((Path(__file__).parents[1] / "docs" / "examples").glob("*.md"))
BLOCK = re.compile(r"^```([\w ]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.usefixtures("one_thread")


def command(line, monkeypatch):
    """Run ``fspll ...`` as it is written."""
    words = shlex.split(line)
    assert words[0] == "fspll"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0, line


def test_there_are_two_examples():
    assert [page.name for page in PAGES] == ["characters.md", "tickets.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_what_happens(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    compared = 0
    for kind, content in BLOCK.findall(page.read_text(encoding="utf-8")):
        language, _, needs = kind.partition(" ")
        assert language in ("", "python", "console")
        skipped = needs == "extra" and missing_package() is not None
        if language:
            assert not printed, "the page does not show what the code above prints"
        if language == "python":
            code = compile(content, page.name, "exec")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                if not skipped:
                    exec(code, names)  # our own file
            printed = None if skipped else out.getvalue()
        elif language == "console" and not skipped:
            for line in content.splitlines():
                command(line, monkeypatch)
        elif content.startswith("pip install"):
            assert 'text = ["' in (page.parents[2] / "pyproject.toml").read_text()
        elif not language:
            if printed is not None:
                assert content == printed
                compared += 1
            printed = ""
    assert not printed
    assert compared >= 4
    report = (tmp_path / "result" / "report.html").read_text(encoding="utf-8")
    assert "got one label each" in report
    for name in ("labels.csv", "review.csv", "model.fspll"):
        assert (tmp_path / "result" / name).is_file()
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link
