"""The guide to labeling: what it says of files and tables is true. tests/test_docs.py runs it."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np

from fspll.labeling import folder

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "labeling.md").read_text(encoding="utf-8")


def test_files_and_columns_are_called_as_it_says():
    tables = (folder.LABELS, folder.REVIEW, folder.ANSWERS, folder.AUDIT, folder.SURE)
    for name in (*tables, folder.MODEL, folder.REPORT):
        assert f"| `{name}` |" in GUIDE
    assert f"`{','.join(folder.LABEL_COLUMNS)}`" in GUIDE


def test_the_table_of_answers_is_what_was_measured():
    (shown,) = re.findall(r"<!-- asking -->\n(.*?)<!-- end asking -->", GUIDE, re.DOTALL)
    table = (ROOT / "results" / "asking.md").read_text(encoding="utf-8")
    assert shown.strip() == table[table.index("|") :].strip()


def test_the_review_list_needs_fewer_answers_than_asking_at_random():
    """The measurement of the guide's table, by its own script, on tasks small enough for a test."""
    spec = spec_from_file_location("asking", ROOT / "benchmarks" / "asking.py")
    asking = module_from_spec(spec)
    spec.loader.exec_module(asking)
    labels = np.repeat(np.arange(6), 6)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(6, 8))[labels] * 2 + rng.normal(size=(36, 8))
    row = asking.measure(features, labels, n_way=5, n_shot=3, r=3, n_tasks=3)
    assert row["review"]["answers_mean"] < row["random"]["answers_mean"]
    assert row["right_at_first"] < asking.ENOUGH  # there was something to ask
