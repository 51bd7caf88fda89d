"""What a page offers as answers, and what it makes the file of answers from."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from fspll.labeling import label
from fspll.labeling.reasons import Undecided
from fspll.labeling.report import questions, write_report
from fspll.labeling.report.cards import show_samples
from fspll.labeling.report.gallery import Gallery
from fspll.labeling.report.questions import answer_data

EVIL = "</script><script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def found(annotate):
    """Nothing tells two labels apart, so that every sample is asked about."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    return label(annotate([["a", "b"]] * 29 + [["a", "c"]], features=X))


def page_of(result, tmp_path):
    write_report(result, tmp_path / "report.html")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def data_of(page):
    (code,) = re.findall(r'id="answer-data">(.*?)</script>', page)
    return json.loads(code)


def buttons_of(page):
    """Return the columns that are offered, by row: those of every list for that row."""
    offered = {}
    for row, content in re.findall(r'<ul class="bars" data-row="(\d+)"(.*?)</ul>', page, re.DOTALL):
        offered.setdefault(int(row), []).append(
            [int(one) for one in re.findall(r'<button[^>]* data-label="(\d+)"', content)]
        )
        # Real buttons, which wait for the script, and one for any other label.
        for button in re.findall(r"<button[^>]*>", content):
            assert 'type="button"' in button
            assert 'aria-pressed="false" disabled>' in button
        assert content.count("another label …") == 1
    return offered


def test_every_question_can_be_answered(found, tmp_path):
    page = page_of(found, tmp_path)
    asked = page.split('<section id="ask">')[1].split("</section>")[0]
    offered, data = buttons_of(asked), data_of(page)
    assert list(offered) == [one.index for one in found.review]
    assert len(offered) > questions.FIRST
    for one in found.review:
        (columns,) = offered[one.index]
        assert sorted(data["labels"][str(column)] for column in columns) == sorted(one.candidates)
    everywhere = buttons_of(page)
    assert {one.index for one in found.undecided} <= set(everywhere)
    assert set(data["samples"]) == {str(row) for row in everywhere}


def test_the_file_is_made_of_whole_names_labels_and_contents(annotate, tmp_path):
    name, long = "n\r\n" + "x" * 300, "b" * 300
    X = np.random.default_rng(0).normal(size=(9, 2))
    sets = [["a", long]] * 8 + [["a", "c"]]
    found = label(annotate(sets, features=X, names=[name, *map(str, range(8))]))
    data = data_of(page_of(found, tmp_path))
    assert data["file"] == "answers.csv"
    assert data["columns"] == ["sample", "answer", "content_hash"]
    assert data["samples"]["0"] == [name, found.contents[0]]
    assert found.contents[0].startswith("sha256-")
    assert data["suggested"] == ["a", long, "c"]
    assert data["labels"]["1"] == long
    without = dataclasses.replace(found, contents=())
    assert data_of(page_of(without, tmp_path))["samples"]["0"] == [name, ""]


def test_labels_outside_the_set_that_are_in_question_are_offered(found):
    doubt = Undecided(4, "contradiction", "lies among samples of c, ...", ("c", "a", "b"))
    found = dataclasses.replace(found, undecided=[doubt])
    one, other = show_samples(found, [4, 5], Gallery(None))
    assert [(choice.label, choice.share) for choice in one.outside] == [("c", None)]
    assert {choice.label for choice in one.candidates} == {"a", "b"}
    assert other.outside == []
    assert answer_data(found, [one])["labels"] == {0: "a", 1: "b", 2: "c"}


def test_numbers_are_answered_as_the_readers_write_them():
    X = np.random.default_rng(0).normal(size=(9, 2))
    found = label((X, [{1, 2}] * 8 + [{2, 10}]))
    data = answer_data(found, show_samples(found, range(9), Gallery(None)))
    assert data["labels"] == {0: "1", 1: "2", 2: "10"}


def test_another_result_has_another_key(found):
    def key(**changes):
        return answer_data(dataclasses.replace(found, **changes), [])["key"]

    keys = [
        key(),
        key(names=("other", *found.names[1:])),
        key(contents=("", *found.contents[1:])),
        key(labels=found.labels[::-1].copy()),
        key(confidence=found.confidence * 0.5),
        key(answers={"s0": "a"}),
    ]
    assert key() == keys[0]
    assert len(set(keys)) == len(keys)
    assert re.fullmatch(r"fspll-answers-[0-9a-f]{32}", keys[0])


def test_data_stay_data(found, tmp_path):
    found = dataclasses.replace(found, names=(EVIL, *found.names[1:]))
    page = page_of(found, tmp_path)
    assert EVIL not in page
    assert data_of(page)["samples"]["0"][0] == EVIL


def test_many_questions_and_labels_are_bounded(found, tmp_path, monkeypatch):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 12)
    monkeypatch.setattr(questions, "MOST_SUGGESTED", 2)
    page = page_of(found, tmp_path)
    asked = page.split('<section id="ask">')[1].split("</section>")[0]
    assert len(buttons_of(asked)) == 12
    assert f"{len(found.review) - 10} more questions, in this order" in asked
    assert f"and {len(found.review) - 12} more in review.csv" in asked
    assert data_of(page)["suggested"] == ["a", "b"]


def test_nothing_to_answer_needs_no_script(annotate, tmp_path):
    page = page_of(label(annotate([["a"]] * 4, features=np.eye(4))), tmp_path)
    assert "answer-data" not in page
    assert 'class="answered"' not in page
