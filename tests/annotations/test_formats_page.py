"""docs/formats.md is true: its files are written, its code runs, its output is compared."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

from fspll._common.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def run(code: str, names: dict[str, object]) -> str:
    """Run statement by statement, so that a refusal is shown and the next one runs."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for statement in ast.parse(code).body:
            module = ast.Module([statement], type_ignores=[])
            try:
                exec(compile(module, PAGE.name, "exec"), names)  # our own file
            except DataError as error:
                print(f"DataError: {error}")
    return shown.getvalue()


def test_the_page_shows_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert sum(language == "python" for language, _, _ in blocks) > 10
    names: dict[str, object] = {}
    printed = ""
    for language, title, content in blocks:
        if title:
            Path(title).parent.mkdir(exist_ok=True)
            Path(title).write_text(content, encoding="utf-8")
        elif language == "python":
            assert printed == "", "the page does not show what the code above prints"
            printed = run(content, names)
        else:
            assert language == ""
            assert printed == content
            printed = ""
    assert printed == ""


@pytest.mark.parametrize(
    "names", ["CANDIDATE_NAMES", "FILE_NAMES", "SAMPLE_NAMES", "ANNOTATOR_NAMES"]
)
def test_the_page_names_every_column_that_is_found(names):
    from fspll.annotations import grid

    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    own = [name for name in getattr(grid, names) if name not in grid.FILE_NAMES]
    for name in own or grid.FILE_NAMES:
        assert f"`{name}`" in page, name
