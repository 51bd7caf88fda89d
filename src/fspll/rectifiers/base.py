"""The interface of rectifiers: settings in, a fitted model of the task out.

A rectifier decides how credible each candidate of each sample is. It is a frozen dataclass of its
settings, which its constructor validates; :meth:`Rectifier.fit` takes embeddings and what was
observed about the labels, and returns a :class:`Fitted` model that gives the candidates'
confidence and classifies new samples. ``docs/extending.md`` has an example.

Shapes: n support samples, l classes, m features, q queries; ``...`` stands for any leading batch
dimensions, so that a thousand tasks are one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll._common.arguments import check_count
from fspll._common.errors import InputError
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates

DENSE_ENTRIES = 1 << 26  # of n x n or n x l, up to which tasks are solved densely
MOST_NEIGHBORS = 10  # that n_neighbors="auto" means beyond that


def is_large(n_samples: int, n_classes: int) -> bool:
    """Tell whether a dense rule would build an array of more than ``DENSE_ENTRIES``.

    >>> is_large(8_192, 100), is_large(10_000, 100), is_large(1_000, 100_000)
    (False, True, True)
    """
    return n_samples * max(n_samples, n_classes) > DENSE_ENTRIES


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples grouped by their features, before it is decided which label a group carries.

    Attributes
    ----------
    by_features : Tensor of shape (n, l)
        Probability that a sample belongs to each group, by its features alone.
    member : Tensor of shape (n, l)
        The same with what the candidates say; the assignment of labels to groups is based on it.
    naming : Tensor of shape (l, l)
        Probability that group g carries label c.
    """

    by_features: Tensor
    member: Tensor
    naming: Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """Every round of the rectification of one task, round 0 being the start.

    Attributes
    ----------
    confidence : Tensor of shape (T + 1, n, l)
    prototypes : Tensor of shape (T + 1, l, m)
        Zeros for a class that is nobody's candidate.
    groups : Groups, optional
        For rectifiers that assign labels to groups of samples.
    """

    confidence: Tensor
    prototypes: Tensor
    groups: Groups | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted(ABC):
    """What a rectifier found: how credible the candidates are, and a model of the classes.

    Attributes
    ----------
    confidence : Tensor of shape (..., n, l), or scipy.sparse.csr_array of shape (n, l)
        How credible each candidate is, zero off the candidates; rows sum to one. Sparse where
        there are many samples.
    prototypes : Tensor of shape (..., l, m)
        Zeros for a class that is nobody's candidate.
    present : bool Tensor of shape (..., l)
        Classes that are somebody's candidate. The others are never predicted.
    n_neighbors : int
        How many neighbors of a sample were used.
    trace : Trace, optional
        When it was asked for.
    weights : Tensor of shape (..., n, l), optional
        How much each sample counts in each prototype, where that is not its confidence: the
        paper's Q is not normalized. Meta-training takes prototypes with these weights.
    posterior : Tensor of shape (n, l), optional
        Probability of every class for one task, labels outside the candidate sets included, where
        the rectifier considers that a set may lack its true label. Not kept in a model file.
    """

    confidence: Tensor | sparse.csr_array
    prototypes: Tensor
    present: Tensor
    n_neighbors: int = 0
    trace: Trace | None = None
    weights: Tensor | None = None
    posterior: Tensor | None = None

    file_version: ClassVar[int] = 1  # of the model file that can hold it

    @abstractmethod
    def predict_proba(self, queries: Tensor) -> Tensor:
        """Return the probability of every class for queries (..., q, m), as (..., q, l)."""

    def most_probable(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the most probable class of each query, by column, and its probability."""
        best = self.predict_proba(queries).max(dim=-1)
        return best.indices, best.values

    def attributes(self) -> dict[str, Any]:
        """Return what a classifier shows of the model, as NumPy arrays by attribute name."""
        return {
            "prototypes_": self.prototypes.cpu().numpy(),
            "has_prototype_": self.present.cpu().numpy(),
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors, and what JSON can hold, from which the rectifier can restore this.

        The confidence is kept by the model file itself.
        """
        return {"prototypes": self.prototypes, "has_prototype": self.present}, {}


class StoredState(NamedTuple):
    """What a model file holds of a fitted model; the first two may be anything."""

    tensors: Mapping[str, Tensor]
    about: Mapping[str, Any]
    candidates: Candidates
    confidence: np.ndarray | sparse.csr_array  # (n, l)


@dataclass(frozen=True)
class Rectifier(ABC):
    """A way to weight candidates; subclasses are frozen dataclasses of their settings.

    Class attributes say what a rectifier can use: ``uses_votes`` (how many annotators gave each
    label), ``uses_judgments`` (who gave it), ``uses_unlabeled`` (samples without any label),
    ``handles_many`` (more samples or classes than dense arrays allow); whether its confidences
    and probabilities are meant as probabilities (``calibrated``) or only as scores that order
    labels; and whether features in other units give the same (``ignores_scale``). ``revision``
    changes when results do, so that stored results of an older rule are not reused.
    """

    name: ClassVar[str]
    revision: ClassVar[str] = "1"
    uses_votes: ClassVar[bool] = False
    uses_judgments: ClassVar[bool] = False
    uses_unlabeled: ClassVar[bool] = False
    handles_many: ClassVar[bool] = False
    calibrated: ClassVar[bool] = False
    ignores_scale: ClassVar[bool] = False

    def fit(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Rectify one task or a batch of tasks.

        Parameters
        ----------
        embeddings : float Tensor of shape (..., n, m)
            The samples, those without a label last.
        observed : Observed
            What is known about their labels.
        trace : bool
            Keep every round, for one task that is solved densely.
        """
        self.check(observed)
        if is_large(observed.n_samples, observed.n_classes):
            array = embeddings.detach().cpu().numpy()
            array.flags.writeable = False  # it may be a file that is memory-mapped
            return self.fit_many(array, observed)
        return self.fit_tasks(embeddings, observed, trace=trace)

    def check(self, observed: Observed) -> None:
        """Raise when this rectifier cannot take what was observed."""
        if observed.n_unlabeled and not self.uses_unlabeled:
            raise InputError(f"X_unlabeled is of no use to the rectifier {self.name!r}")
        if not is_large(observed.n_samples, observed.n_classes):
            return
        many = f"{observed.n_samples:,} samples x {observed.n_classes:,} classes"
        limit = f"up to {DENSE_ENTRIES} entries of samples x samples and samples x classes"
        if not self.handles_many:
            raise InputError(f"the rectifier {self.name!r} is for {limit}, not for {many}")
        if observed.n_unlabeled:
            raise InputError(f"X_unlabeled is for {limit}, not for {many}")

    def checked(self) -> Rectifier:
        """Return the same rectifier with whatever tells how far its result can be trusted."""
        return self

    @abstractmethod
    def fit_tasks(self, embeddings: Tensor, observed: Observed, *, trace: bool = False) -> Fitted:
        """Rectify tasks whose arrays of n x n and n x l entries fit into memory."""

    def fit_many(self, embeddings: np.ndarray, observed: Observed) -> Fitted:
        """Rectify one task of many samples, embeddings (n, m), without any array of n x n or n x l.

        They are read-only, and may lie in a file. Only called where ``handles_many`` says so.
        """
        raise InputError(f"the rectifier {self.name!r} does not handle many samples")

    @abstractmethod
    def restore(self, stored: StoredState) -> Fitted:
        """Make a fitted model again from its :meth:`Fitted.state`.

        What comes from a file may be anything: raise ``InputError`` (or let a missing tensor raise
        ``KeyError``) unless it is what ``state`` returns.
        """

    def settings(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return asdict(self)

    def seconds(self, n_samples: int, n_classes: int) -> float:
        """Return roughly what a task costs, for the order of work and the time left."""
        return 1e-3 + 5e-8 * n_samples**2


def resolve_neighbors(
    n_neighbors: int | str, observed: Observed, *, by_entries: bool = False
) -> int:
    """Return k: as given, or for "auto" one less than the samples per class that occurs.

    Where samples are solved entry by entry, "auto" is :data:`MOST_NEIGHBORS` at most.
    """
    if isinstance(n_neighbors, str):
        k = max(0, observed.samples_per_class() - 1)
        many = by_entries or is_large(observed.n_samples, observed.n_classes)
        return min(k, MOST_NEIGHBORS) if many else k
    return int(n_neighbors)


def check_neighbors(n_neighbors: Any) -> None:
    """Raise unless ``n_neighbors`` is a whole number of 0 or more, or "auto"."""
    if isinstance(n_neighbors, str):
        if n_neighbors != "auto":
            raise InputError(f"n_neighbors must be a whole number or 'auto', not {n_neighbors!r}")
        return
    check_count("n_neighbors", n_neighbors, 0)


def to_tensor(array: np.ndarray) -> Tensor:
    """Return an array as a tensor; a memory map or a reversed view is copied first."""
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))
