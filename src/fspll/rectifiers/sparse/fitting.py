"""What a classifier needs from many samples, whichever rule is asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fspll.candidates import Candidates
from fspll.rectifiers.evidence import EvidenceSettings
from fspll.rectifiers.paper import Settings
from fspll.rectifiers.sparse.evidence import weigh_evidence_sparse
from fspll.rectifiers.sparse.paper import rectify_sparse

DENSE_ENTRIES = 1 << 26  # of n x n or n x l, up to which the dense rules are used
MOST_NEIGHBORS = 10  # that n_neighbors="auto" means beyond that


def is_large(n_samples: int, n_classes: int) -> bool:
    """Tell whether a dense rule would build an array of more than ``DENSE_ENTRIES``.

    >>> is_large(8_192, 100), is_large(10_000, 100), is_large(1_000, 100_000)
    (False, True, True)
    """
    return n_samples * max(n_samples, n_classes) > DENSE_ENTRIES


class LargeFit(NamedTuple):
    """What :func:`fit_large` returns; the last two for the default rule only."""

    prototypes: np.ndarray  # (l, m)
    present: np.ndarray  # (l,) bool
    confidence: sparse.csr_array  # (n, l), rows sum to one
    spread: float | None = None
    believed: np.ndarray | None = None  # (l,) bool


def fit_large(
    embeddings: Any, candidates: Candidates, settings: Settings | EvidenceSettings
) -> LargeFit:
    """Rectify many samples by the rule that the settings belong to, on the processor.

    Parameters
    ----------
    embeddings : float ndarray of shape (n, m)
    candidates : Candidates
    settings : Settings or EvidenceSettings
    """
    if isinstance(settings, EvidenceSettings):
        confidence, model = weigh_evidence_sparse(embeddings, candidates, settings)
        return LargeFit(model.prototypes, model.present, confidence, model.spread, model.believed)
    prototypes, present, confidence = rectify_sparse(embeddings, candidates, settings)
    total = np.add.reduceat(confidence.data, confidence.indptr[:-1])
    confidence.data /= np.repeat(total, np.diff(confidence.indptr))
    return LargeFit(prototypes, present, confidence)
