"""What could not be decided, and why, in words for people."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Any

from fspll._common.words import counted
from fspll.labeling.reasons import Undecided
from fspll.labeling.report.cards import show_samples
from fspll.labeling.report.gallery import SMALL_SIDE, Gallery
from fspll.labeling.result import Labeling

MOST_GROUPS = 20  # of a kind; the samples of all others form one more
MOST_SAMPLES = 600  # of all groups together, but always a few of each
_LEAST_SAMPLES = 6  # of a group

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

# What reasons begin and end with, when several samples share them.
_PLURALS = (
    (re.compile(r"^lies (?=between |among )"), "lie "),
    (re.compile(r"^(the sets leave open whether )its"), r"\1their"),
    (re.compile(r"(?<=which is not among )its(?= candidates(?: \(|$))"), "their"),
)


def in_order(kinds: list[str]) -> list[str]:
    """Return kinds of doubt, those first that are worth reading first."""
    return sorted(kinds, key=_order)


def in_words(kind: str, count: int) -> str:
    """Return how many samples have this kind of doubt: "12 lie between two classes"."""
    one, several = _KINDS[kind][0] if kind in _KINDS else (kind, kind)
    return counted(count, one, several)


def _order(kind: str) -> int:
    return list(_KINDS).index(kind) if kind in _KINDS else len(_KINDS)


def show_undecided(result: Labeling, gallery: Gallery) -> list[dict[str, Any]]:
    """Return the kinds of doubt that there are, each with groups of samples.

    A group has its ``reason``, how many samples have it (``count``), and the least sure of them
    (``samples``); their pictures are added to the gallery. The last group of a kind may be without
    a reason: it has the samples of all groups that are too small to be shown one by one, of which
    there are ``n_merged``.
    """
    by_kind: dict[str, list[Undecided]] = defaultdict(list)
    for one in result.undecided:
        by_kind[one.kind].append(one)
    found = {kind: _groups(result, by_kind[kind]) for kind in in_order(list(by_kind))}
    most = max(_LEAST_SAMPLES, MOST_SAMPLES // max(1, sum(map(len, found.values()))))
    shown = []
    for kind, groups in found.items():
        _, title, advice = _KINDS.get(kind, ((), kind, ""))
        if kind == "contradiction" and not result.outside.any():
            advice += " (The label given is still one of the set.)"
        for group in groups:
            rows = [one.index for one in group.pop("ones")][:most]
            gallery.add(rows, SMALL_SIDE)
            group["samples"] = show_samples(result, rows, gallery)
        count = len(by_kind[kind])
        shown.append({"title": title, "advice": advice, "count": count, "groups": groups})
    return shown


def _groups(result: Labeling, ones: list[Undecided]) -> list[dict[str, Any]]:
    """Return samples of one kind by the labels in question, the largest group first."""
    members: dict[Hashable, list[Undecided]] = defaultdict(list)
    for one in sorted(ones, key=lambda one: result.confidence[one.index]):
        members[_in_question(result, one)].append(one)
    groups = sorted(members.values(), key=len, reverse=True)
    if len(groups) == MOST_GROUPS + 1:  # which one more line shows as well
        return [_group(group, _common_reason(group)) for group in groups]
    shown = [_group(group, _common_reason(group)) for group in groups[:MOST_GROUPS]]
    rest = groups[MOST_GROUPS:]
    if rest:
        merged = [one for group in rest for one in group]
        merged.sort(key=lambda one: result.confidence[one.index])
        shown.append(_group(merged, "", len(rest)))
    return shown


def _group(ones: list[Undecided], reason: str, n_merged: int = 1) -> dict[str, Any]:
    return {"reason": reason, "count": len(ones), "n_merged": n_merged, "ones": ones}


def _in_question(result: Labeling, one: Undecided) -> Hashable:
    """Return what samples of a group have in common, whichever of the labels is the likelier."""
    if one.kind == "contradiction":
        return one.labels[0]  # what it looks like; candidates differ from sample to sample
    candidates = set(result.candidates.names(one.index))
    return frozenset(one.labels), frozenset(one.labels) - candidates


def _common_reason(group: list[Undecided]) -> str:
    reasons = Counter(one.reason for one in group)
    ((reason, _),) = reasons.most_common(1)  # they differ in the order of two labels
    if group[0].kind == "contradiction" and len(reasons) > 1:
        reason = f"lies among samples of {group[0].labels[0]}, which is not among its candidates"
    if len(group) > 1:
        for pattern, plural in _PLURALS:
            reason = pattern.sub(plural, reason)
    begins_with_label = any(reason.startswith(str(label)) for label in group[0].labels)
    return reason if begins_with_label else reason[:1].upper() + reason[1:]
