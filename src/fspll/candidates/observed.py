"""What is observed about the labels of a task: the one object that every rectifier is handed.

Shapes: n samples, l classes; any leading batch dimensions ``...`` stand for tasks of equal shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from fspll._common.errors import InputError, InputTypeError
from fspll.candidates.judgments import Judgments
from fspll.candidates.sets import Candidates

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Observed:
    """Candidate sets, and what else is known about the labels.

    Attributes
    ----------
    candidates : Candidates, or bool Tensor of shape (..., n, l)
        The labels that each sample may have. A tensor may hold a batch of tasks.
    votes : sparse array of shape (n, l), or Tensor of shape (..., n, l), optional
        How likely each candidate was before the features were seen, such as how many annotators
        gave it; only the ratios between a sample's candidates count. None where all candidates of
        every sample are equally likely.
    n_unlabeled : int
        How many further samples follow the n of the sets. They carry no label: each may be of any
        class that occurs.
    judgments : Judgments, optional
        Who gave which label, for one task; None where the annotators are not known. A label may be
        none of its sample's candidates: where a person settled the sample, or where only the labels
        with the most votes were kept.
    settled : bool array of shape (n,), optional
        Samples whose label a person settled, for one task: their one candidate is certain. None
        where there are none.

    Examples
    --------
    >>> observed = Observed.read(Candidates.read([{"a", "b"}, {"b"}]), [[3, 1], [0, 2]])
    >>> observed.shape, observed.votes.toarray().tolist()
    ((2, 2), [[3.0, 1.0], [0.0, 2.0]])
    """

    candidates: Candidates | Tensor
    votes: sparse.csr_array | Tensor | None = None
    n_unlabeled: int = 0
    judgments: Judgments | None = None
    settled: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        candidates: Candidates,
        votes: Any = None,
        n_unlabeled: int = 0,
        *,
        judgments: Judgments | None = None,
        settled: Any = None,
    ) -> Observed:
        """Check votes (n, l), dense or sparse, judgments and settled rows against candidate sets.

        Votes that are equal within every set say nothing and are dropped, so that every digit is
        as without them. So are judgments without a single label, and settled rows where none is.
        """
        return cls(
            candidates,
            _checked_votes(candidates, votes),
            n_unlabeled,
            _checked_judgments(candidates, judgments),
            _checked_settled(candidates, settled),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(..., n, l), without the unlabeled samples."""
        sets = self.candidates
        return tuple(sets.matrix.shape if isinstance(sets, Candidates) else sets.shape)

    @property
    def n_samples(self) -> int:
        """Samples per task, the unlabeled ones included."""
        return self.shape[-2] + self.n_unlabeled

    @property
    def n_classes(self) -> int:
        """Classes per task, l."""
        return self.shape[-1]

    def samples_per_class(self) -> int:
        """Return how many samples there are per class that occurs, rounded."""
        if isinstance(self.candidates, Candidates):
            occurring = float(len(np.unique(self.candidates.matrix.indices)))
        else:
            occurring = float(self.candidates.any(dim=-2).sum(dim=-1).double().mean())
        return round(self.n_samples / max(1.0, occurring))

    def mask(self, device: torch.device | str = "cpu") -> Tensor:
        """Return the candidates as a bool Tensor of shape (..., n + n_unlabeled, l)."""
        import torch

        sets = self.candidates
        mask = torch.from_numpy(sets.mask) if isinstance(sets, Candidates) else sets
        mask = mask.to(device)
        if self.n_unlabeled:
            occurs = mask.any(dim=-2, keepdim=True)
            shape = (*mask.shape[:-2], self.n_unlabeled, mask.shape[-1])
            mask = torch.cat([mask, occurs.expand(shape)], dim=-2)
        return mask

    def prior(self, device: torch.device | str = "cpu") -> Tensor | None:
        """Return the votes, positive at every candidate, as a Tensor of the shape of the mask."""
        import torch

        if self.votes is None:
            return None
        votes: Any = self.votes
        if sparse.issparse(votes):
            prior = np.ones((self.n_samples, self.n_classes))
            rows = np.repeat(np.arange(votes.shape[0]), np.diff(votes.indptr))
            prior[rows, votes.indices] = votes.data
            return torch.from_numpy(prior).to(device)
        return votes.to(device)

    def candidate_votes(self) -> np.ndarray | None:
        """Return the votes of one task, candidate by candidate in the order of the samples."""
        votes: Any = self.votes
        if votes is None:
            return None
        if sparse.issparse(votes):
            return votes.data
        matrix = self.sets().matrix
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return votes.cpu().numpy()[rows, matrix.indices]

    def take(self, rows: np.ndarray) -> Observed:
        """Return what is known about some samples of one task, by row numbers."""
        sets = self.sets()
        return Observed(
            sets.take(rows),
            None if self.votes is None else self.votes[rows],
            judgments=None if self.judgments is None else self.judgments.take(rows),
            settled=None if self.settled is None else self.settled[rows],
        )

    def sets(self) -> Candidates:
        """Return the candidates of one task as :class:`Candidates`."""
        if isinstance(self.candidates, Candidates):
            return self.candidates
        if self.candidates.ndim != 2:
            raise InputError(f"one task is (n, l), not a batch of {tuple(self.candidates.shape)}")
        return Candidates.from_mask(self.candidates.cpu().numpy())


def _checked_votes(candidates: Candidates, votes: Any) -> sparse.csr_array | None:
    """Return the votes for the candidates; None where they say nothing."""
    if votes is None:
        return None
    matrix = candidates.matrix
    votes = votes if hasattr(votes, "toarray") else np.asarray(votes)
    if votes.shape != matrix.shape:
        raise InputError(f"votes have shape {votes.shape}, but the candidates {matrix.shape}")
    votes = sparse.csr_array(votes, dtype=float)
    rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
    inside = np.asarray(votes[rows, matrix.indices]).ravel()
    if not (np.isfinite(inside).all() and (inside > 0).all()):
        raise InputError("votes must be a positive number for every candidate of a sample")
    if np.array_equal(inside, inside[matrix.indptr[rows]]):
        return None
    return sparse.csr_array((inside, matrix.indices, matrix.indptr), shape=matrix.shape)


def _checked_judgments(candidates: Candidates, judgments: Any) -> Judgments | None:
    if judgments is None:
        return None
    if not isinstance(judgments, Judgments):
        raise InputTypeError(f"judgments must be Judgments, not {type(judgments).__name__}")
    judgments.check(*candidates.matrix.shape)
    return judgments if len(judgments) else None


def _checked_settled(candidates: Candidates, settled: Any) -> np.ndarray | None:
    if settled is None:
        return None
    settled = np.asarray(settled)
    if settled.dtype != bool or settled.shape != (len(candidates),):
        raise InputError(
            f"settled must be one truth value per sample, of shape ({len(candidates)},), not "
            f"{settled.dtype} of shape {settled.shape}"
        )
    several = np.flatnonzero(settled & (candidates.sizes > 1))
    if len(several):
        raise InputError(
            f"row {several[0]} is settled, but it has {candidates.sizes[several[0]]} candidates; "
            "a person's answer leaves one"
        )
    return settled if settled.any() else None
