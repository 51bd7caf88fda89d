"""docs/formats.md names what the readers know. tests/test_docs.py runs its code."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


@pytest.mark.parametrize(
    "names", ["CANDIDATE_NAMES", "FILE_NAMES", "SAMPLE_NAMES", "ANNOTATOR_NAMES"]
)
def test_the_page_names_every_column_that_is_found(names):
    from fspll.annotations import grid

    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    own = [name for name in getattr(grid, names) if name not in grid.FILE_NAMES]
    for name in own or grid.FILE_NAMES:
        assert f"`{name}`" in page, name
