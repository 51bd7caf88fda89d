"""Files as people and their programs make them: read as a person means them, or refused in words.

``everyday/expected.json`` has the candidate sets that a person would mean, or the sentence that
names the fix; ``everyday/make.py`` says how other programs made their files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fspll._common.errors import DataError
from fspll.annotations import read_annotations

HERE = Path(__file__).parent / "everyday"
CASES = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
NEEDS = {".xlsx": "openpyxl", ".parquet": "pyarrow", ".feather": "pyarrow"}


def test_every_file_is_expected_to_be_something():
    files = {path.name for path in (HERE / "files").iterdir()}
    assert files == {case["file"] for case in CASES}
    assert len(files) >= 40
    made = {name for name in files if name.startswith(("pandas", "openpyxl", "libreoffice"))}
    assert len(made) >= 10


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case['file']}-{'-'.join(case.get('options', ()))}" for case in CASES]
)
def test_read_right_or_refused(case):
    path = HERE / "files" / case["file"]
    if path.suffix in NEEDS:
        pytest.importorskip(NEEDS[path.suffix])
    options = case.get("options", {})
    if "refused" in case:
        with pytest.raises(DataError, match=case["refused"]):
            read_annotations(path, **options)
        return
    found = read_annotations(path, **options)
    sets = {name: found.candidates.names(row) for row, name in enumerate(found.names)}
    assert {name: sorted(labels) for name, labels in sets.items()} == {
        name: sorted(labels) for name, labels in case["sets"].items()
    }
    assert found.summary.startswith(f"{case['file']}")
    assert f"{len(found)} samples, {len(found.classes)} label" in found.summary
