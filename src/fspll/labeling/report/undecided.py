"""What could not be decided, and why, in words for people."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fspll._common.words import counted
from fspll.labeling.reasons import Undecided
from fspll.labeling.result import Labeling
from fspll.labeling.wording import sample_name

# In the order in which they are worth reading: what they are called, in the summary and as a
# heading, and what can be done.
_KINDS = {
    "contradiction": (
        ("contradicts its candidates", "contradict their candidates"),
        "Samples that contradict their candidates",
        "They lie among samples of a label that nobody gave them. Either the true label is missing "
        "from their set, or the encoder sees something else than people do. Look at each: an "
        "answer outside the candidates is accepted.",
    ),
    "inseparable": (
        ("has labels that always come together", "have labels that always come together"),
        "Labels that always come together",
        "No sample has one of these labels without the other, so the data cannot say which is "
        "which. One answer for a sample of each side settles it.",
    ),
    "naming": (
        ("belongs to a group whose name is open", "belong to groups whose name is open"),
        "Groups whose name is open",
        "These samples form groups, but their sets allow more than one way of naming the groups. "
        "One answer often settles a whole group.",
    ),
    "few": (
        ("may have a label with hardly a sample", "may have labels with hardly a sample"),
        "Labels with hardly a sample",
        "A class cannot be recognized by one sample that may not even belong to it. Add a sample "
        "that has this label alone, or answer these.",
    ),
    "between": (
        ("lies between two classes", "lie between two classes"),
        "Samples between two classes",
        "They look like one as much as like the other. Nothing but a look at them helps.",
    ),
}


def in_order(kinds: list[str]) -> list[str]:
    """Return kinds of doubt, those first that are worth reading first."""
    return sorted(kinds, key=_order)


def in_words(kind: str, count: int) -> str:
    """Return how many samples have this kind of doubt: "12 lie between two classes"."""
    one, several = _KINDS[kind][0] if kind in _KINDS else (kind, kind)
    return counted(count, one, several)


def _order(kind: str) -> int:
    return list(_KINDS).index(kind) if kind in _KINDS else len(_KINDS)


def show_undecided(result: Labeling) -> list[dict[str, Any]]:
    """Return the kinds of doubt that there are, with their reasons and samples."""
    by_kind: dict[str, list[Undecided]] = defaultdict(list)
    for one in result.undecided:
        by_kind[one.kind].append(one)
    shown = []
    for kind in in_order(list(by_kind)):
        _, title, advice = _KINDS.get(kind, ((), kind, ""))
        reasons = _reasons(result, by_kind[kind])
        count = len(by_kind[kind])
        if kind == "contradiction" and not result.outside.any():
            advice += " (The label given is still one of the set.)"
        shown.append({"title": title, "advice": advice, "count": count, "reasons": reasons})
    return shown


def _reasons(result: Labeling, ones: list[Undecided]) -> list[dict[str, Any]]:
    """Return the reasons, the most frequent first, with the names of their samples."""
    samples: dict[str, list[str]] = defaultdict(list)
    for one in ones:
        samples[one.reason].append(sample_name(result, one.index))
    order = sorted(samples, key=lambda reason: -len(samples[reason]))
    return [
        {"sentence": reason[:1].upper() + reason[1:], "names": samples[reason]} for reason in order
    ]
