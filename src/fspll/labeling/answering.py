"""A person's answers in the place of candidate sets.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from fspll._common.arguments import is_number
from fspll._common.errors import InputError, InputTypeError
from fspll._common.words import counted, listed
from fspll.candidates.sets import Candidates

_SHOWN = 5


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
    return classes, votes, answered, _notes(outside, new)


def _notes(outside: list[str], new: list[Any]) -> list[str]:
    notes = []
    if outside:
        notes.append(
            f"{counted(len(outside), 'answer')} not among the candidates "
            f"(taken all the same): {listed(outside, _SHOWN)}"
        )
    if new:
        notes.append(f"labels that only answers have: {', '.join(map(str, new))}")
    return notes
