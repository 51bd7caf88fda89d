"""Which samples a page shows, and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fspll._common.errors import InputError
from fspll._common.words import did_you_mean, listed, shorten
from fspll.app.table import Table

SORTS = ("doubt", "name", "label")
ANSWERED = ("yes", "no", "discarded")
KINDS = ("contradiction", "inseparable", "naming", "few", "between")
LONGEST = 200  # characters of a search
_MOST_ALIKE = 2000  # names among which a similar one is looked for


@dataclass(frozen=True)
class Query:
    """What was asked for; an empty text asks for everything.

    Attributes
    ----------
    sort : {"doubt", "name", "label"}
    label : str
        Samples that have this label now.
    reason : str
        A kind of doubt, see :class:`fspll.labeling.reasons.Undecided`.
    annotator : str
        Samples that this annotator labeled.
    answered : {"", "yes", "no", "discarded"}
        Whether a person gave the label, or left the sample out.
    q : str
        What name, text or another column of the sample contains.
    page : int
        From 1.
    """

    sort: str = "doubt"
    label: str = ""
    reason: str = ""
    annotator: str = ""
    answered: str = ""
    q: str = ""
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Query:
        """Read the query of an address."""
        sort, answered = given.get("sort") or "doubt", given.get("answered", "")
        reason, q = given.get("reason", ""), given.get("q", "").strip()
        page = given.get("page") or "1"
        _check("sort", sort, SORTS)
        _check("answered", answered, ("", *ANSWERED))
        _check("reason", reason, ("", *KINDS))
        if len(q) > LONGEST:
            raise InputError(f"a search has at most {LONGEST} characters, not {len(q)}")
        if not re.fullmatch("[1-9][0-9]{0,8}", page):
            raise InputError(f"page is a number from 1, not {page!r:.40}")
        label, annotator = given.get("label", ""), given.get("annotator", "")
        return cls(sort, label, reason, annotator, answered, q, int(page))


def matching(table: Table, query: Query) -> np.ndarray:
    """Return which samples a query asks for, as a mask of shape (n,)."""
    keep = np.ones(len(table), dtype=bool)
    if query.label:
        if query.label not in table.classes:
            raise InputError(_unknown("label", query.label, table.classes))
        keep &= table.columns == table.classes.index(query.label)
    if query.reason:
        keep &= _mask(table, table.kinds.get(query.reason, np.zeros(0, dtype=np.int64)))
    if query.annotator:
        keep &= _mask(table, _labeled_by(table, query.annotator))
    if query.answered == "no":
        keep &= ~(table.answered | table.discarded)
    elif query.answered:
        keep &= table.answered if query.answered == "yes" else table.discarded
    if query.q:
        sought = query.q.casefold()
        keep &= np.fromiter((sought in one for one in table.fixed.words), bool, len(table))
    return keep


def choose(table: Table, query: Query) -> np.ndarray:
    """Return the samples that a query asks for, in its order, of all pages together."""
    order = table.fixed.by_name if query.sort == "name" else getattr(table, f"by_{query.sort}")
    return order[matching(table, query)[order]]


def _labeled_by(table: Table, name: str) -> np.ndarray:
    said = table.fixed.judgments
    if said is None:
        raise InputError("these labels do not say which annotator gave which")
    if name not in said.names:
        raise InputError(_unknown("annotator", name, said.names))
    return said.rows[said.annotators == said.names.index(name)]


def _mask(table: Table, rows: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(table), dtype=bool)
    mask[rows] = True
    return mask


def _check(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        names = listed([repr(one) for one in known if one])
        raise InputError(f"{what} is one of {names}, not {value!r:.40}")


def _unknown(what: str, name: str, known: tuple[str, ...]) -> str:
    similar = did_you_mean(name[:LONGEST], known[:_MOST_ALIKE])
    return f"there is no {what} {shorten(name)!r} here{similar}"
