"""A person's answers: which samples they are for, and in the place of their candidate sets.

Shapes: n samples, l classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.arguments import is_number
from fspll._common.errors import InputError, InputTypeError
from fspll._common.words import counted, did_you_mean, listed
from fspll.annotations.addresses import is_upload, original_names
from fspll.annotations.answers import Answer, Answers
from fspll.candidates.sets import Candidates

_SHOWN = 5
_ROW = re.compile(r"row [0-9]+")  # what readers call a sample without a name: no name to go by


def find_samples(
    wanted: Sequence[tuple[str, str]], names: Sequence[str], contents: Sequence[str]
) -> list[str | None]:
    """Return what samples are called now that had other names, or stood in other rows, before.

    A sample is the one of the same name and content; else one of the same content, whatever it is
    called; else one of the same name whose content has changed, unless the name is only a row's.
    Where a content is not known, the name decides. No sample is found twice by its content.

    Parameters
    ----------
    wanted : sequence of (name, content)
        As they were then; "" for a content that is not known.
    names, contents : sequences of str, of length n
        The samples now.

    Examples
    --------
    >>> now = ("row 2", "row 3", "row 4"), ("h0", "h1", "h2")  # a new first row
    >>> find_samples([("row 2", "h1"), ("row 3", "h2"), ("row 4", "h3")], *now)
    ['row 3', 'row 4', None]
    """
    content_of = dict(zip(names, contents, strict=True))
    found: list[str | None] = []
    for name, content in wanted:
        now = content_of.get(name)
        found.append(name if now is not None and (not content or now in ("", content)) else None)
    taken = set(found)
    free: dict[str, list[str]] = {}
    for name in reversed(names):
        if content_of[name] and name not in taken:
            free.setdefault(content_of[name], []).append(name)
    for place, (_, content) in enumerate(wanted):
        if found[place] is None and free.get(content):
            found[place] = free[content].pop()
    taken.update(found)
    for place, (name, _) in enumerate(wanted):
        if found[place] is None and name in content_of and name not in taken:
            found[place] = None if _ROW.fullmatch(name) else name
    return found


@dataclass
class Followed:
    """Answers of several files, by the samples that they are for.

    Attributes
    ----------
    given : dict of str to Answer
        As they were read, by the name that the sample has now; a later file's answer counts.
    absent : dict of (str, str) to Answer
        Those for samples that are not there, by name and content.
    moved : dict of str to str
        Names of samples that had others before.
    changed : list of str
        Samples whose content is another than when they were answered.
    used : dict of str to list of str
        The samples that each file of an earlier run has an answer for.
    """

    given: dict[str, Answer] = field(default_factory=dict)
    absent: dict[tuple[str, str], Answer] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    used: dict[str, list[str]] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, Any]:
        """The answers by sample."""
        return {name: one.label for name, one in self.given.items() if not one.discarded}

    @property
    def discarded(self) -> dict[str, Answer]:
        """The samples that are to be left out."""
        return {name: one for name, one in self.given.items() if one.discarded}

    def records(self, names: Sequence[str], contents: Sequence[str]) -> tuple[Answer, ...]:
        """Return the answers by the names and contents that their samples have now."""
        content_of = dict(zip(names, contents, strict=True))
        return tuple(
            replace(one, sample=name, content=content_of.get(name) or one.content)
            for name, one in self.given.items()
        )

    def leave_out(self, names: Sequence[str]) -> None:
        """Put the answers for all other samples, which could not be read, aside."""
        there = set(names)
        for name in [name for name in self.given if name not in there]:
            one = self.given.pop(name)
            self.absent[one.sample, one.content] = one

    def notes(self) -> list[str]:
        """Say which answers were found in other places than before, and which were not."""
        notes = []
        for source, names in self.used.items():
            count = sum(name in self.given and not self.given[name].discarded for name in names)
            if count:
                verb = "is" if count == 1 else "are"
                notes.append(f"{counted(count, 'answer')} of {source} {verb} used as well")
        if self.discarded:
            left_out = listed([*map(repr, self.discarded)], _SHOWN)
            count, verb = len(self.discarded), "was" if len(self.discarded) == 1 else "were"
            notes.append(
                f"{counted(count, 'sample')} that a person discarded {verb} left out: {left_out}"
            )
        moved = [f"{old!r} is {new!r} now" for old, new in self.moved.items() if new in self.given]
        if moved:
            whose = "its sample" if len(moved) == 1 else "their samples"
            notes.append(
                f"{counted(len(moved), 'answer')} moved with {whose}: {listed(moved, _SHOWN)}"
            )
        changed = [repr(name) for name in self.changed if name in self.given]
        if changed:
            notes.append(
                f"{counted(len(changed), 'answer')} taken for samples whose content has changed "
                f"since; check {'it' if len(changed) == 1 else 'them'}: {listed(changed, _SHOWN)}"
            )
        if self.absent:
            gone = list(dict.fromkeys(repr(name) for name, _ in self.absent))
            notes.append(
                f"{counted(len(self.absent), 'answer')} not used, as the sample is not here now; "
                f"kept for when it is: {listed(gone, _SHOWN)}"
            )
        return notes


def follow_answers(
    sources: Sequence[Answers], names: Sequence[str], contents: Sequence[str]
) -> Followed:
    """Find the samples that answers are for, though they may be called otherwise now.

    Parameters
    ----------
    sources : sequence of Answers
        Where two have an answer for the same sample, the later one counts.
    names, contents : sequences of str, of length n
        The samples; contents as :func:`fspll.annotations.answers.content_name` returns them.
    """
    content_of = dict(zip(names, contents, strict=True))
    followed = Followed()
    for source in sources:
        found = find_samples([(one.sample, one.content) for one in source.records], names, contents)
        before = original_names(one.sample for one in source.records if is_upload(one.sample))
        for one, name in zip(source.records, found, strict=True):
            if name is None and before.get(one.sample) in content_of:
                name = before[one.sample]
            if name is None and (source.kept or one.content or one.discarded):
                followed.absent[one.sample, one.content] = one
                continue
            # A name of the user's own that does not exist is left for `apply_answers` to refuse.
            name = one.sample if name is None else name
            now = content_of.get(name, "")
            followed.given[name] = one
            if name != one.sample:
                followed.moved[one.sample] = name
            elif one.content and now not in ("", one.content):
                followed.changed.append(name)
            if source.kept:
                followed.used.setdefault(source.source, []).append(name)
    return followed


def apply_answers(
    names: tuple[str, ...],
    classes: np.ndarray,
    votes: sparse.csr_array,
    answers: Mapping[str, Any],
) -> tuple[np.ndarray, sparse.csr_array, np.ndarray, list[str]]:
    """Make the sets of answered samples sets of one.

    Parameters
    ----------
    names : tuple of str
        The samples.
    classes : array of shape (l,)
    votes : sparse array of shape (n, l)
    answers : mapping of sample to label
        A label outside the candidates, even a new one, is taken with a note: the person knows
        better.

    Returns
    -------
    classes, votes
        With the answers in them, and with labels that only answers have.
    answered : bool array of shape (n,)
    notes : list of str
    """
    row_of = {name: row for row, name in enumerate(names)}
    strange = [name for name in answers if name not in row_of]
    if strange:
        raise InputError(
            f"answers are given for samples that do not exist: "
            f"{listed([*map(repr, strange)], _SHOWN)}; samples are called as in the "
            f"column 'sample' of labels.csv, e.g. {names[0]!r}"
        )
    for name, answer in answers.items():
        if not isinstance(answer, str) and not is_number(answer):
            raise InputTypeError(
                f"the answer for {name!r} is {answer!r:.60}; labels are text or numbers"
            )
    by_text = {str(one): one for one in classes.tolist()}
    given = {row_of[name]: by_text.get(str(one), one) for name, one in answers.items()}
    known = set(by_text.values())
    new = sorted({answer for answer in given.values() if answer not in known}, key=str)
    if new:
        merged = Candidates.from_sets([*([c] for c in classes.tolist()), *([c] for c in new)])
        place = {label: column for column, label in enumerate(merged.classes.tolist())}
        moved = np.array([place[label] for label in classes.tolist()])
        coo = votes.tocoo()
        votes = sparse.csr_array(
            (coo.data, (coo.coords[0], moved[coo.coords[1]])), shape=(len(names), len(place))
        )
        classes = merged.classes
    column = {label: number for number, label in enumerate(classes.tolist())}
    answered = np.zeros(len(names), dtype=bool)
    answered[list(given)] = True
    rows = np.array(list(given), dtype=np.int64)
    columns = np.array([column[answer] for answer in given.values()], dtype=np.int64)
    inside = np.asarray(votes[rows, columns]).ravel() > 0 if len(rows) else np.zeros(0, dtype=bool)
    outside = [names[row] for row, fits in zip(rows, inside, strict=True) if not fits]
    keep = sparse.dia_array(((~answered).astype(float)[None], [0]), shape=(len(names),) * 2)
    fixed = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=votes.shape)
    votes = sparse.csr_array(keep @ votes + fixed)
    votes.eliminate_zeros()
    votes.sort_indices()
    return classes, votes, answered, _notes(outside, new, sorted(by_text))


def _notes(outside: list[str], new: list[Any], known: list[str]) -> list[str]:
    notes = []
    if outside:
        notes.append(
            f"{counted(len(outside), 'answer')} not among the candidates "
            f"(taken all the same): {listed(outside, _SHOWN)}"
        )
    if new:
        shown = [f"{one}{did_you_mean(str(one), known)}" for one in new]
        notes.append(f"labels that only answers have: {', '.join(shown)}")
    return notes
