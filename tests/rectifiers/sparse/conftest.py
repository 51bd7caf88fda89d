"""Small clustered problems, and the grouped rule as a plain loop in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fspll.candidates import corrupt_mask


@pytest.fixture(scope="package", autouse=True)
def _one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def clusters():
    """Return a function that makes features, sparse candidates and true labels."""

    def make(n, n_classes, *, m=16, r=3, noise=0.5, seed=0, dtype=np.float32):
        rng = np.random.default_rng(seed)
        truth = rng.permutation(np.arange(n) % n_classes)
        centers = rng.normal(size=(n_classes, m))
        features = centers[truth] + noise * rng.normal(size=(n, m))
        mask = corrupt_mask(truth, n_classes, 1.0, r, rng)
        return features.astype(dtype), sparse.csr_array(mask), truth

    return make
