"""The short form of ``benchmarks/faults.py``, and what docs/security.md says of the long one."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def faults(monkeypatch):
    """Return the script as a module."""
    if sys.platform == "win32":
        pytest.skip("the faults are made by signals, limits and mounts, which Windows has not")
    spec = spec_from_file_location("faults", ROOT / "benchmarks" / "faults.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "faults", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "runs"),
    [("label-killed", 2), ("label-disk-full", 1), ("label-read-only", 1), ("label-twice", 1)],
)
def test_nothing_is_lost_and_the_next_run_works(faults, name, runs):
    outcome = faults.run_scenario(name, runs, seed=1)
    if outcome.note.startswith("not run: "):
        pytest.skip(outcome.note)
    assert outcome.failures == []
    assert outcome.runs == runs


def test_a_lost_answer_and_a_torn_file_would_be_found(faults, tmp_path):
    work = faults.Labelings(tmp_path, faults.np.random.default_rng(0))
    code, complaint = faults.Command(*work.command()).finish()
    assert (code, complaint) == (0, "")
    work.fill_in()
    assert work.problems() == []
    (sample,) = work.acknowledged
    (work.out / "review.csv").unlink()
    (work.out / "model.fspll").write_bytes((work.out / "model.fspll").read_bytes()[:-9])
    (work.out / "labels.csv").write_text("sample,label\n")
    lost, lines, model = work.problems()
    assert lost == f"the answer for {sample} is lost"
    assert lines == "labels.csv has 1 lines"
    assert model.startswith("the model is damaged: ")


def test_the_page_shows_what_was_measured(faults):
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- faults -->\n(.*?)<!-- end faults -->", page, re.DOTALL)
    assert shown == (ROOT / "results" / "faults.md").read_text(encoding="utf-8")
    found = faults.json.loads((ROOT / "results" / "faults.json").read_text(encoding="utf-8"))
    assert {"label-killed", "label-disk-full", "label-read-only", "label-twice"} <= set(found)
    assert not any(one["failures"] for one in found.values())
