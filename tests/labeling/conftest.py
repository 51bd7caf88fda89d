"""Annotations as the readers return them, made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fspll.annotations.samples import Annotations


@pytest.fixture
def annotate():
    """Return a function that makes annotations of lists of labels."""

    def annotate(sets, **parts):
        classes = tuple(sorted({label for labels in sets for label in labels}))
        votes = np.array([[float(list(s).count(c)) for c in classes] for s in sets])
        names = parts.pop("names", tuple(f"s{i}" for i in range(len(sets))))
        return Annotations(
            names=tuple(names),
            classes=classes,
            votes=sparse.csr_array(votes),
            origins=tuple(f"labels.csv, row {i + 2}" for i in range(len(sets))),
            **parts,
        )

    return annotate
