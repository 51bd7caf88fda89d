"""What a notebook shows of a result: little, whole and harmless."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from fspll import label

EVIL = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """Check that tags nest; keep the rows of tables."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.rows = [], set(), []

    def handle_starttag(self, tag, attrs):
        assert not attrs
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert reader.tags <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    return reader


def test_summary_classes_and_first_questions(annotate):
    X = np.array([[0.0], [0.2], [5.0], [5.2], [2.6]])
    found = label(annotate(["a", "ab", "b", "b", "ab"], features=X))
    page = found._repr_html_()
    share = f"{found.expected_accuracy:.1%}"
    assert f"<b>5 samples, 2 classes</b>; expect {share} of the labels to be right" in page
    rows = read(page).rows
    assert rows[0] == ["label", "chosen for", "candidate of", "mean confidence", "smallest"]
    assert [row[:3] for row in rows[1:3]] == [
        ["a", str((found.labels == "a").sum()), "3"],
        ["b", str((found.labels == "b").sum()), "4"],
    ]
    assert rows[3] == ["sample", "guess", "sure", "why"]
    assert [row[0] for row in rows[4:]] == [found.names[one.index] for one in found.review[:5]]
    assert len(rows) > 4


@pytest.mark.parametrize("where", ["name", "label", "text"])
def test_everything_is_escaped(annotate, where):
    names = [f"{EVIL}{i}" if where == "name" else f"row {i}" for i in range(6)]
    other = EVIL if where == "label" else "b"
    texts = tuple(f"{EVIL} {i}" if where == "text" else f"words {i}" for i in range(6))
    data = annotate([["a", other]] * 5 + [[other]], names=names, texts=texts)
    found = label(data, encoder=lambda texts: np.arange(len(texts))[:, None] * 1.0)
    page = found._repr_html_()
    read(page)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_it_is_small_for_many_samples_classes_and_words(annotate):
    n = 400
    X = np.random.default_rng(0).normal(size=(n, 2))
    names = [f"{'long ' * 200}{i}" for i in range(n)]
    sets = [[f"{'c' * 300}{i % 50}", f"{'c' * 300}{(i + 1) % 50}"] for i in range(n)]
    found = label(annotate(sets, names=names, features=X))
    page = found._repr_html_()
    assert len(page) < 10_000
    assert "The 12 least sure of 50 classes:" in page
    assert f"(5 of {len(found.review)}):" in page


def test_a_text_says_more_than_the_number_of_its_row(annotate):
    names = [f"row {i}" for i in range(2, 6)]
    texts = ("the cat sat on the mat " * 9, "a dog", "the cats", "dogs bark")
    data = annotate(["ab"] * 4, names=names, texts=texts)
    found = label(data, encoder=lambda texts: np.arange(len(texts))[:, None] * 1.0)
    shown = [row[0] for row in read(found._repr_html_()).rows]
    assert "row 3: a dog" in shown
    assert any(name.startswith("row 2: the cat sat on the mat") and "…" in name for name in shown)
