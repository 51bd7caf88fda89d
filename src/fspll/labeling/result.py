"""What labeling found, as one object.

Shapes: n samples, l classes, m features, T rounds of rectification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.arguments import check_level
from fspll._common.errors import InputError
from fspll._common.words import counted
from fspll.annotations.answers import Answer
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.classifier import FsPLLClassifier
from fspll.embeddings.features import Unreadable
from fspll.labeling.audit import Audit
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.reasons import Undecided
from fspll.labeling.review import Question
from fspll.rectifiers.base import Trace
from fspll.rectifiers.held_out import Check


@dataclass(frozen=True, eq=False)
class Rounds:
    """How labels and prototypes moved, round 0 being the start.

    Attributes
    ----------
    prototypes : array of shape (T + 1, l, m)
        Class means; zeros for a class that is nobody's candidate.
    labels : int array of shape (T + 1, n)
        The column of the likeliest label of every sample. Where a rectifier decides at the end
        which label a group of samples carries, the last round may differ from the result.
    """

    prototypes: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, trace: Trace) -> Rounds:
        """Keep of a classifier's trace what a map shows."""
        return cls(trace.prototypes.cpu().numpy(), trace.confidence.argmax(dim=-1).cpu().numpy())


@dataclass(frozen=True)
class Annotator:
    """How often an annotator agrees with the outcome.

    Attributes
    ----------
    name : str
    judgments : int
        How many of the samples the annotator labeled.
    agreed : float
        How many of these have the label that the annotator gave; one over their number where the
        annotator gave several and one of them is it.
    """

    name: str
    judgments: int
    agreed: float

    @property
    def agreement(self) -> float:
        """Agreed over judgments."""
        return self.agreed / self.judgments


@dataclass(frozen=True, eq=False)
class Labeling:
    """Clean labels with everything needed to trust, question and use them.

    Attributes
    ----------
    names : tuple of str
        The samples.
    classes : ndarray of shape (l,)
        The labels that occur, as ``candidates.classes``.
    labels : ndarray of shape (n,)
        The likeliest candidate of every sample; or, with ``outside=True``, the most probable class.
    confidence : ndarray of shape (n,)
        The probability that this label is right, where the rectifier is ``calibrated``; otherwise
        a score. It holds under the condition that :func:`fspll.labeling.wording.condition` names:
        candidate sets alone cannot show mistakes that people make again and again.
    runner_up : tuple of label or None
        The second likeliest of the labels in ``probabilities``; None where there is only one.
    margin : ndarray of shape (n,)
        Probability of the label less that of the runner-up.
    audit : Audit or None
        Labels that were drawn at random for a person to check, with the answers so far. Where there
        are answers, ``confidence`` and ``probabilities`` are recalibrated by them, see
        :mod:`fspll.labeling.audit`.
    candidates : Candidates
        The sets that were used: those of the annotators, with the answers in their place.
    probabilities : sparse array of shape (n, l)
        The probability of every candidate, and of the label where it is outside the set. Rows sum
        to less than one where a set may lack its true label.
    missing : ndarray of shape (n,)
        The probability that none of the candidates is right; zeros where it is not known.
    outside : bool ndarray of shape (n,)
        Labels that are not among the candidates of their sample.
    check : Check or None
        What samples that were held out say about the labels, without any true label.
    features : array of shape (n, m)
        What the encoder made of the samples.
    classifier : FsPLLClassifier or BaselineModel
        Fitted; predicts new samples, and can be saved.
    encoder : str
        The name of the encoder.
    rectifier : str
        The rule or the baseline that weighted the candidates.
    calibrated : bool
    review : list of Question
        What to show a person first.
    undecided : list of Undecided
        Samples whose label is not settled, and samples that contradict their sets; with reasons.
    answers : dict of str to label
        What a person answered, by sample.
    answered : bool ndarray of shape (n,)
    contents : tuple of str
        The hash of every sample's content, see :mod:`fspll.annotations.answers`.
    records : tuple of Answer
        The answers as they were given, with time and author where they are known, and the samples
        that a person discarded, which are not among ``names``.
    absent : tuple of Answer
        Answers for samples that are not here: removed since, or left out as they cannot be read.
    absent_audit : Audit or None
        The same of an audit.
    rounds : Rounds or None
        For the map of the report; None when there are too many samples to keep them.
    notes : list of str
        What a user should know about this run.
    unreadable : list of Unreadable
        Samples that were left out.
    pictures : tuple of Path or None
        The file of every sample, where samples are pictures.
    files : tuple of str or None
        The pictures as the file of labels writes them: paths, or addresses of Label Studio.
    texts : tuple of str or None
        The text of every sample, where samples are texts.
    observed : Observed or None
        What was known about the labels: the candidates, votes, who said what, and which samples a
        person settled.
    annotators : list of Annotator
        How often each annotator agrees with the outcome, those who labeled most first; empty where
        annotators are not known.
    columns : tuple of (str, tuple of str)
        The other columns of the table, see :class:`fspll.annotations.Annotations`.
    understood : str
        How the file of labels was understood, see :attr:`fspll.annotations.Annotations.summary`;
        empty where the labels came from no file.
    """

    names: tuple[str, ...]
    labels: np.ndarray
    confidence: np.ndarray
    runner_up: tuple[Any, ...]
    margin: np.ndarray
    candidates: Candidates
    probabilities: sparse.csr_array
    features: np.ndarray
    classifier: FsPLLClassifier | BaselineModel
    encoder: str
    review: list[Question]
    undecided: list[Undecided]
    answers: dict[str, Any] = field(default_factory=dict)
    answered: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    rounds: Rounds | None = None
    notes: list[str] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    pictures: tuple[Path, ...] | None = None
    texts: tuple[str, ...] | None = None
    observed: Observed | None = None
    annotators: list[Annotator] = field(default_factory=list)
    missing: np.ndarray = field(default_factory=lambda: np.zeros(0))
    outside: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    check: Check | None = None
    audit: Audit | None = None
    understood: str = ""
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    contents: tuple[str, ...] = ()
    records: tuple[Answer, ...] = ()
    absent: tuple[Answer, ...] = ()
    absent_audit: Audit | None = None
    files: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def classes(self) -> np.ndarray:
        """The labels that occur, of shape (l,)."""
        return self.candidates.classes

    @property
    def rectifier(self) -> str:
        """The name of the rule or baseline that weighted the candidates."""
        model = self.classifier
        return model.name if isinstance(model, BaselineModel) else model.rectifier_.name

    @property
    def calibrated(self) -> bool:
        """Whether ``confidence`` is meant as a probability; see there."""
        model = self.classifier
        return model.calibrated if isinstance(model, BaselineModel) else model.rectifier_.calibrated

    @property
    def expected_accuracy(self) -> float:
        """The share of right labels to expect: the mean confidence."""
        return float(self.confidence.mean())

    def sure(self, level: float) -> np.ndarray:
        """Return the rows of the largest subset whose labels are together this sure.

        It consists of the labels with the highest confidence, as many as have a mean confidence of
        at least ``level``; the surest come first.

        Examples
        --------
        >>> from fspll import label
        >>> found = label(([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"b"}]))
        >>> len(found.sure(0.99))
        3
        """
        check_level("sure", level)
        if not self.calibrated and not (self.audit and self.audit.n_answers):
            raise InputError(
                f"the rule {self.rectifier!r} gives scores, not probabilities, so sure={level:g} "
                "would say nothing; audit some labels first (audit=30), or take the default "
                "rectifier"
            )
        order = np.argsort(-self.confidence, kind="stable")
        means = np.cumsum(self.confidence[order]) / np.arange(1, len(order) + 1)
        return order[: int((means >= level - 1e-12).sum())]

    def to_frame(self) -> Any:
        """Return a pandas data frame with one row per sample and the columns of ``labels.csv``.

        ``candidates`` are lists. ``file`` or ``text`` follows, where samples are pictures or
        texts, and then whatever other columns the table of labels had. It takes the extra
        ``tables``.

        Cells are as they were read: a label or a name that begins with ``=`` is a formula in what
        pandas' own ``to_excel`` and ``to_csv`` write. :meth:`to_xlsx` and :meth:`save` write no
        formulas.
        """
        from fspll.labeling.frames import to_frame

        return to_frame(self)

    def to_xlsx(self, path: Path | str) -> None:
        """Write what ``labels.csv`` holds as a spreadsheet, in which no cell is a formula.

        It takes the extra ``tables``.
        """
        from fspll.labeling.saving import write_xlsx

        write_xlsx(self, Path(path))

    def save(
        self,
        folder: Path | str,
        *,
        overwrite: bool = False,
        report: bool = True,
        sure: float | None = None,
        forget_answers: bool = False,
        excel: bool = False,
    ) -> None:
        """Write ``labels.csv``, ``review.csv``, the model and ``report.html`` into a folder.

        With answers of a person there is also ``answers.csv``, which the next run reads again.
        Answers that the folder holds already, in ``answers.csv``, ``audit.csv`` or a filled-in
        ``review.csv``, are kept there, whatever this result was made of. Where annotators are
        known, ``annotators.csv`` says how often each agrees with the outcome; ``audit.csv`` has the
        labels that were drawn for an audit.

        Parameters
        ----------
        folder : path
            Made if it does not exist. An earlier result is replaced file by file, each whole.
        overwrite : bool, default=False
            Also write into a folder that holds other things; files of other names stay.
        report : bool, default=True
            Write ``report.html``: one page with the samples, a map and what to ask a person.
        sure : float, optional
            Write ``sure.csv``: the largest subset of labels that are together this sure, see
            :meth:`sure`.
        forget_answers : bool, default=False
            Throw away the answers that the folder holds.
        excel : bool, default=False
            Begin every CSV file with a byte-order mark, without which Excel garbles accents.

        Examples
        --------
        >>> import tempfile
        >>> from fspll import label
        >>> found = label(([[0.0], [0.1], [5.0]], [{"a", "b"}, {"a"}, {"b"}]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(folder)
        ...     print(*sorted(path.name for path in Path(folder).iterdir()))
        labels.csv model.fspll report.html review.csv
        """
        from fspll.labeling.saving import save

        save(
            self,
            Path(folder),
            overwrite=overwrite,
            report=report,
            sure=sure,
            forget_answers=forget_answers,
            excel=excel,
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: summary, classes and the first questions."""
        from fspll.labeling.report.notebook import show_in_notebook

        return show_in_notebook(self)

    def __repr__(self) -> str:
        return f"Labeling({self})"

    def __str__(self) -> str:
        sure = int((self.confidence >= 0.9).sum())
        return (
            f"{counted(len(self), 'sample')}, {counted(len(self.classes), 'class', 'classes')}; "
            f"{self.expected_accuracy:.1%} of the labels are expected to be right, "
            f"{sure} with a confidence of at least 90%"
        )
