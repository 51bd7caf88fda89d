"""Samples with candidate labels, as every reader returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse

from fspll._common.errors import DataError
from fspll._common.words import counted, listed, shorten
from fspll.candidates.judgments import Judgments
from fspll.candidates.sets import Candidates

_SHOWN, _LETTERS = 8, 30  # labels in a summary, and letters of each


@dataclass(frozen=True, eq=False)
class Annotations:
    """n samples, each with the labels it may have, from a file that people wrote.

    Attributes
    ----------
    names : tuple of str
        One name per sample, all different: what the file calls it, or "row 7" where it does not.
    classes : tuple of str
        The labels that occur, sorted.
    votes : sparse float array of shape (n, l)
        How many annotators gave a label to a sample; 1 where the file only lists candidates. A
        label that nobody gave is not a candidate. Every row has at least one.
    origins : tuple of str
        Where each sample was read, for messages: "labels.csv, row 7".
    files : tuple of str, optional
        The picture of each sample, as written in the file: relative to a folder, or absolute.
    texts : tuple of str, optional
        The text of each sample.
    features : array of shape (n, m), optional
        Vectors that came in the same file.
    judgments : Judgments, optional
        Who gave which label; None where the file does not say who labeled what, or where no sample
        was labeled by more than one annotator. Labels that ``combine="majority"`` left out
        are kept here; one that is no class any more has the column -1.
    source : str
        The name of the file.
    understood : tuple of str
        How the file was read, for :attr:`summary`.
    columns : tuple of (str, tuple of str)
        The name and the cells of every other column of a table, one cell per sample; without
        columns in which the rows of one sample differ.
    renamed : mapping of str to str
        Labels that got another name, which answers given before follow.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...]
    votes: sparse.csr_array
    origins: tuple[str, ...]
    files: tuple[str, ...] | None = None
    texts: tuple[str, ...] | None = None
    features: np.ndarray | None = None
    judgments: Judgments | None = None
    source: str = ""
    understood: tuple[str, ...] = ()
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        if self.votes.shape != (n, len(self.classes)):
            raise DataError(
                f"{n} samples and {len(self.classes)} classes do not fit votes of shape "
                f"{self.votes.shape}"
            )
        others = (cells for _, cells in self.columns)
        for part in (self.origins, self.files, self.texts, self.features, *others):
            if part is not None and len(part) != n:
                raise DataError(f"{n} samples but {len(part)} of something that each has one of")
        if self.judgments is not None:
            self.judgments.check(n, len(self.classes), others=True)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def candidates(self) -> Candidates:
        """The candidate sets: every label that somebody gave."""
        return Candidates.from_mask(self.votes > 0, classes=list(self.classes))

    @property
    def summary(self) -> str:
        """One line on how the file was understood: samples, labels, columns, separator."""
        labels = counted(len(self.classes), "label")
        parts = [
            counted(len(self), "sample"),
            f"{labels} ({listed([shorten(label, _LETTERS) for label in self.classes], _SHOWN)})",
            *self.understood,
        ]
        return (f"{self.source}: " if self.source else "") + ", ".join(parts)

    def __repr__(self) -> str:
        return f"Annotations({self.summary})"

    def take(self, rows: np.ndarray) -> Annotations:
        """Return some of the samples, with all classes kept."""
        rows = np.asarray(rows)
        chosen = rows.nonzero()[0] if rows.dtype == bool else rows

        def some(part: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return None if part is None else tuple(part[i] for i in chosen)

        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            votes=self.votes[chosen],
            origins=tuple(self.origins[i] for i in chosen),
            files=some(self.files),
            texts=some(self.texts),
            features=None if self.features is None else self.features[chosen],
            judgments=None if self.judgments is None else self.judgments.take(chosen),
            columns=tuple((name, tuple(cells[i] for i in chosen)) for name, cells in self.columns),
        )
