"""Annotations as the readers return them, made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from fspll.annotations.samples import Annotations
from fspll.candidates import corrupt_mask


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


@pytest.fixture(scope="session")
def take_truth_out():
    """Return a function that takes the truth out of some sets, for another label."""

    def take_truth_out(mask, truth, rows, rng):
        mask = mask.copy()
        for row in rows:
            others = np.flatnonzero(~mask[row])
            mask[row, truth[row]] = False
            mask[row, rng.choice(others)] = True
        return mask

    return take_truth_out


@pytest.fixture(scope="session")
def digits():
    data = load_digits()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.target))[:800]
    truth = data.target[rows]
    return data.data[rows], truth, corrupt_mask(truth, 10, 1.0, 2, rng)


@pytest.fixture(scope="session")
def stripped(digits, take_truth_out):
    """A tenth of the sets lack their truth: (X, truth, mask, rows that lack it)."""
    X, truth, mask = digits
    rng = np.random.default_rng(1)
    rows = rng.choice(800, 80, replace=False)
    return X, truth, take_truth_out(mask, truth, rows, rng), rows
