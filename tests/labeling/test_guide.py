"""The guide to labeling: its code runs, and what it says of files and tables is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fspll.labeling import saving

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "labeling.md").read_text(encoding="utf-8")


def test_the_python_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    exec(compile(block, "labeling.md", "exec"), {})  # our own file
    assert float(capsys.readouterr().out) > 0.95
    assert saving.is_result(tmp_path / "result")


def test_files_and_columns_are_called_as_it_says():
    for name in (saving.LABELS, saving.REVIEW, saving.MODEL, saving.REPORT, saving.ANSWERS):
        assert f"| `{name}` |" in GUIDE
    assert f"`{','.join(saving.LABEL_COLUMNS)}`" in GUIDE


def test_the_table_of_answers_is_what_was_measured():
    (shown,) = re.findall(r"<!-- asking -->\n(.*?)<!-- end asking -->", GUIDE, re.DOTALL)
    table = (ROOT / "results" / "asking.md").read_text(encoding="utf-8")
    assert shown.strip() == table[table.index("|") :].strip()
    rows = json.loads((ROOT / "results" / "asking.json").read_text(encoding="utf-8"))["rows"]
    for found in rows.values():
        for row in found:
            assert row["review"]["answers_mean"] <= row["random"]["answers_mean"]
