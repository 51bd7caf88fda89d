"""What could not be decided, and why, in words for people."""

from __future__ import annotations

from collections import defaultdict

from fspll._common.html import elements as html
from fspll._common.html.elements import Html, tag
from fspll.labeling import Labeling, Undecided
from fspll.labeling.report.words import beginning, counted, listed

SURE = 0.9
_REASONS, _NAMES = 25, 6

# In the order in which they are worth reading: what they are called, in the summary and as a
# heading, and what can be done.
_KINDS = {
    "contradiction": (
        ("contradicts its candidates", "contradict their candidates"),
        "Samples that contradict their candidates",
        "They lie among samples of a label that nobody gave them. Either the true label is missing "
        "from their set, or the encoder sees something else than people do. Look at each: an "
        "answer outside the candidates is accepted. (The label given is still one of the set.)",
    ),
    "twins": (
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


def show_undecided(result: Labeling) -> Html:
    """Return a table for each kind of doubt, with the reasons and the samples."""
    if not result.undecided:
        return tag("p", f"Nothing: every label is at least {SURE:.0%} sure and fits its set.")
    by_kind: dict[str, list[Undecided]] = defaultdict(list)
    for one in result.undecided:
        by_kind[one.kind].append(one)
    parts = []
    for kind in in_order(list(by_kind)):
        _, title, advice = _KINDS.get(kind, ((), kind, ""))
        parts += [tag("h3", f"{title} ({len(by_kind[kind]):,})"), tag("p", advice)]
        parts.append(_reasons(result, by_kind[kind]))
    return html.join(parts)


def _reasons(result: Labeling, ones: list[Undecided]) -> Html:
    """Return the reasons, the most frequent first, with their samples."""
    samples: dict[str, list[str]] = defaultdict(list)
    for one in ones:
        samples[one.reason].append(result.names[one.index])
    order = sorted(samples, key=lambda reason: -len(samples[reason]))
    items = [
        tag(
            "li",
            tag("span", beginning(_sentence(reason), 300), class_="name"),
            tag("div", _which(samples[reason]), class_="soft"),
        )
        for reason in order[:_REASONS]
    ]
    if len(order) > _REASONS:
        items.append(tag("li", f"and {counted(len(order) - _REASONS, 'more reason')} like these"))
    return tag("ul", *items, class_="why")


def _which(names: list[str]) -> Html:
    return html.join([counted(len(names), "sample"), ": ", listed(names, _NAMES)])


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:]
