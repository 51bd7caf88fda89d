"""What could not be decided: grouped by kind and labels, illustrated, and of bounded size."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from fspll.labeling import label
from fspll.labeling.reasons import Undecided
from fspll.labeling.report import undecided, write_report
from fspll.labeling.report.gallery import Gallery
from fspll.labeling.report.undecided import show_undecided

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def labeled(annotate):
    """Return a function that labels n samples, doubts some, and has one more with all labels."""

    def labeled(n, doubts):
        known = {"a", "b", *(label for _, _, labels in doubts for label in labels)}
        data = annotate([["a", "b"]] * n + [sorted(known)], features=np.arange(n + 1.0)[:, None])
        ones = [Undecided(row, *doubt) for row, doubt in enumerate(doubts)]
        sure = np.linspace(0.9, 0.1, n + 1)  # the last is the least sure
        found = label(data, rectifier="none")
        return dataclasses.replace(found, undecided=ones, confidence=sure)

    return labeled


def between(a, b, end=""):
    return "between", f"lies between {a} and {b}{end}", (a, b)


def shown(result):
    """Return (kind, reason, count, names) of every group."""
    return [
        (kind["title"], group["reason"], group["count"], [one.name for one in group["samples"]])
        for kind in show_undecided(result, Gallery(None))
        for group in kind["groups"]
    ]


def test_samples_are_grouped_by_the_labels_in_question(labeled):
    outside = ", which is not among its candidates"
    like = [("contradiction", f"lies among c{outside} ({x})", ("c", x)) for x in "abb"]
    together = ("inseparable", "a and b always come together", ("a", "b"))
    doubts = [between(*"ab"), between(*"ba"), between(*"ba"), between(*"ac", outside), *like]
    assert shown(labeled(9, [*doubts, together])) == [
        (
            "Samples that contradict their candidates",
            "Lie among samples of c, which is not among their candidates",
            3,
            ["s6", "s5", "s4"],  # the least sure first
        ),
        ("Labels that always come together", "a and b always come together", 1, ["s7"]),
        ("Samples between two classes", "Lie between b and a", 3, ["s2", "s1", "s0"]),
        ("Samples between two classes", f"Lies between a and c{outside}", 1, ["s3"]),
    ]


def test_a_reason_that_a_group_shares_is_said_in_the_plural(labeled):
    naming = ("naming", "the sets leave open whether its group is a or b", ("a", "b"))
    ((_, reason, _, _),) = shown(labeled(3, [naming]))
    assert reason == "The sets leave open whether its group is a or b"
    ((_, reason, _, _),) = shown(labeled(3, [naming] * 2))
    assert reason == "The sets leave open whether their group is a or b"
    # Labels stay as they are.
    odd = ("between", "lies between its and lies between b", ("its", "lies between b"))
    ((_, reason, _, _),) = shown(labeled(3, [odd] * 2))
    assert reason == "Lie between its and lies between b"


def test_many_groups_and_large_ones_are_bounded(labeled, tmp_path):
    most_groups, most = undecided.MOST_GROUPS, undecided.MOST_SAMPLES
    pairs = [(f"{row % 40}", f"{row % 40 + 1}") for row in range(800)]
    pairs[0] = ("rare", "rarer")
    result = labeled(800, [between(*pair) for pair in pairs])
    groups = shown(result)
    assert len(groups) == most_groups + 1
    assert {count for _, _, count, _ in groups[:-1]} == {20}
    assert groups[-1][1:3] == ("", 20 * 20)  # without a reason: those of 21 smaller groups
    assert {len(names) for *_, names in groups} == {20, most // len(groups)}
    write_report(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<details>") == len(groups) + 1  # and the questions
    assert 'Other labels, in 21 smaller groups</span><span class="soft">400 samples<' in page
    assert f"The {most // len(groups)} least sure of 400 are shown; labels.csv has all." in page
    ((*_, count, names),) = shown(labeled(800, [between(*"ab")] * 800))
    assert (count, len(names)) == (800, most)
    # One group more than fits would only be renamed.
    pairs = [(f"{row}", "x") for row in range(most_groups + 1)]
    assert all(reason for _, reason, _, _ in shown(labeled(30, [between(*one) for one in pairs])))


def test_lines_show_a_few_texts_or_names(labeled, tmp_path):
    texts = tuple(f"about <b>{row}</b> " + "and so on " * 30 for row in range(10))
    result = labeled(9, [between(*"ab")] * 9)
    for texts_shown, words in ((None, "s8"), (texts, "about &lt;b&gt;8&lt;/b&gt; and so on")):
        write_report(dataclasses.replace(result, texts=texts_shown), tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        (line,) = re.findall(r"<summary><span class=.why.*?</summary>", page, re.DOTALL)
        few = re.findall(r'<span class="name">([^<]*)</span>', line.split("few")[1])
        assert len(few) == 2
        assert few[0].startswith(words)
        assert len(few[0]) < 100


def test_nothing_to_show(labeled, tmp_path):
    write_report(labeled(9, []), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Nothing: by the model every label is at least 90% sure and fits its set." in page
    assert "<h3>" not in page
