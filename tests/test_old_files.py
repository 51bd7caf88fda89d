"""Model files written before rectifiers had an interface: they load and predict the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fspll import FsPLLClassifier
from fspll.rectifiers.base import Rectifier

FOLDER = Path(__file__).parent / "files" / "before-registries"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
INPUTS = np.load(FOLDER / "inputs.npz")


@pytest.mark.parametrize(
    "name", ["evidence", "evidence-float32", "fspll", "none", "many-evidence", "many-fspll"]
)
def test_they_predict_the_same(name, tmp_path):
    expected, queries = EXPECTED[name], INPUTS["Q"]
    exactly = {"rtol": 1e-7, "atol": 1e-12}
    if "float32" in name:
        queries = queries.astype(np.float32)
        exactly["rtol"] = 1e-4  # processors differ in the last digits of single precision
    clf = FsPLLClassifier.load(FOLDER / f"{name}.fspll")
    for _ in range(2):  # as read, and once more after being written by today's code
        assert isinstance(clf.rectifier_, Rectifier)
        assert clf.labels_.tolist() == expected["labels"]
        confidence = clf.confidence_
        if "many" in name:
            confidence = confidence.toarray()
        np.testing.assert_allclose(confidence, expected["confidence"], **exactly)
        assert clf.predict(queries).tolist() == expected["predicted"]
        np.testing.assert_allclose(clf.predict_proba(queries), expected["proba"], **exactly)
        clf.save(tmp_path / "again.fspll")
        clf = FsPLLClassifier.load(tmp_path / "again.fspll")
