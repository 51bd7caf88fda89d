"""Many samples, many classes: rectification whose cost grows with the candidate entries.

The dense rules (:mod:`fspll.rectifiers.paper`, :mod:`fspll.rectifiers.evidence`) build arrays of n
x n and n x l entries for n samples and l classes. Here candidates stay sparse, and no array is
larger than a constant times the number of candidate entries, the samples' features or the
prototypes, apart from blocks of a fixed size.
"""

from __future__ import annotations

from fspll.rectifiers.sparse.entries import best_labels
from fspll.rectifiers.sparse.evidence import (
    SparseClassModel,
    SparsePosterior,
    weigh_evidence_sparse,
)
from fspll.rectifiers.sparse.fitting import (
    DENSE_ENTRIES,
    MOST_NEIGHBORS,
    LargeFit,
    fit_large,
    is_large,
)
from fspll.rectifiers.sparse.paper import SparseRectified, rectify_sparse
from fspll.rectifiers.sparse.prediction import all_probabilities, most_probable

__all__ = [
    "DENSE_ENTRIES",
    "MOST_NEIGHBORS",
    "LargeFit",
    "SparseClassModel",
    "SparsePosterior",
    "SparseRectified",
    "all_probabilities",
    "best_labels",
    "fit_large",
    "is_large",
    "most_probable",
    "rectify_sparse",
    "weigh_evidence_sparse",
]
