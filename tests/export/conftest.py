"""What the tests of exported models share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def task():
    """Return a function that draws vectors in groups, and candidate sets of two names each."""

    def draw(n=60, n_classes=5, n_features=8, dtype=np.float32, seed=0):
        random = np.random.default_rng(seed)
        centers = 2 * random.normal(size=(n_classes, n_features))
        labels = np.arange(n) % n_classes
        X = (centers[labels] + random.normal(size=(n, n_features))).astype(dtype)
        others = (labels + random.integers(1, n_classes, n)) % n_classes
        names = [f"name {c}" for c in range(n_classes)]
        return X, [{names[a], names[b]} for a, b in zip(labels, others, strict=True)]

    return draw
