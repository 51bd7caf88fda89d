"""Tables made from known sets, in random layouts and dialects, give the same sets back."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fspll._common.errors import DataError
from fspll.annotations import read_annotations

# Names as people give them; some contain what elsewhere stands between labels.
NAMES = [
    *["cat", "dog", "snow leopard", "Bär", "Éclair", "猫", "it's", "N.N.", "0", "1", "x", "a-b"],
    *["Gâteau, crème", "tench; Tinca tinca", "n/a", "hit or miss", "cat (tame, old)", "a & b"],
    *['the "big" one', "=1+1", "-", "?"],
]
LABEL = st.sampled_from(NAMES) | st.text("abcdefgéüñ ", min_size=1, max_size=6).map(str.strip)


def sets_of(label):
    """Sets of labels, some of which may be empty."""
    labels = st.lists(label.filter(bool), max_size=4, unique_by=str.casefold)
    return st.lists(labels, min_size=2, max_size=8)


SETS = sets_of(LABEL)
PLAIN_SETS = sets_of(LABEL.filter(lambda name: not re.search(r"/| or |[;,]", name)))
JOINERS = {"|": "|", ";": "; ", ",": ", ", "\n": "\n"}


def joined(sets, draw):
    """One cell of candidates per sample, joined by a sign that no label contains."""
    sign = draw(st.sampled_from([*JOINERS, "JSON", "Python"]))
    used = {label for labels in sets for label in labels}
    if sign in JOINERS:
        # The surest sign in a column separates: a label must not contain it, nor a surer one.
        surer = ["\n", "|", ";", ","][: ["\n", "|", ";", ","].index(sign) + 1]
        plain = [label.replace("(tame, old)", "") for label in used]
        assume(not any(one in label for one in surer for label in plain))
    write = {"JSON": json.dumps, "Python": repr}.get(sign) or JOINERS.get(sign, "").join
    header = draw(st.sampled_from(["candidates", "Labels", "candidate labels"]))
    return [header], [[write(labels) if labels else ""] for labels in sets]


def in_columns(sets, draw):
    """One column per candidate."""
    stem = draw(st.sampled_from(["label_", "rater", "Annotator "]))
    width = max(2, *(len(labels) for labels in sets))
    rows = [[*labels, *[""] * (width - len(labels))] for labels in sets]
    return [f"{stem}{n}" for n in range(1, width + 1)], rows


def in_marks(sets, draw):
    """One column per label."""
    labels = sorted({label for labels in sets for label in labels})
    assume(len(labels) > 1)
    yes, no = draw(st.sampled_from([("x", ""), ("1", "0"), ("TRUE", "FALSE"), ("yes", "no")]))
    return labels, [[yes if label in one else no for label in labels] for one in sets]


def in_rows(names, sets):
    """One row per sample and label, each by another annotator."""
    rows = [
        [name, f"person {n}", label]
        for name, labels in zip(names, sets, strict=True)
        for n, label in enumerate(labels or [""])
    ]
    return ["sample", "annotator", "label"], rows


def as_text(table, draw):
    separator = draw(st.sampled_from(",;\t"))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    # Where lines end in "\r", the module leaves cells with "\n" without quotes.
    every = end == "\r" or draw(st.booleans())
    quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end).writerows(table)
    return text.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))


@settings(max_examples=300, deadline=None)
@given(sets=SETS, data=st.data())
def test_the_same_sets_come_back(tmp_path_factory, sets, data):
    assume(any(len(labels) > 1 for labels in sets))
    folder = tmp_path_factory.mktemp("dialect")
    names = [f"{n}{data.draw(st.sampled_from(['', '.png']))}" for n in range(len(sets))]
    layout = data.draw(st.sampled_from([joined, in_columns, in_marks, in_rows]))
    if layout is in_rows:
        header, rows = in_rows(names, sets)
    else:
        header, rows = layout(sets, data.draw)
        column = data.draw(st.sampled_from(["file", "id", "Sample Name"]))
        header, rows = [column, *header], [[a, *b] for a, b in zip(names, rows, strict=True)]
    if data.draw(st.booleans()):
        header, rows = [*header, "note"], [[*row, "two\nlines, really"] for row in rows]
    kind = data.draw(st.sampled_from(["csv", "xlsx", "jsonl"]))
    path = folder / f"table.{kind}"
    if kind == "csv":
        path.write_bytes(as_text([header, *rows], data.draw))
    elif kind == "jsonl":
        lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        book = pytest.importorskip("openpyxl").Workbook()
        for number, row in enumerate([header, *rows], start=1):
            for place, cell in enumerate(row, start=1):
                book.active.cell(number, place, cell or None).data_type = "s"  # "=1+1" is text
        book.save(path)
    found = read_annotations(path)
    read = {name: sorted(found.candidates.names(n)) for n, name in enumerate(found.names)}
    expected = {name: sorted(one) for name, one in zip(names, sets, strict=True) if one}
    assert read == expected, found.summary


@settings(max_examples=100, deadline=None)
@given(sets=PLAIN_SETS, sign=st.sampled_from([" or ", "/", " / ", " ou "]))
def test_weak_signs_are_read_right_or_asked_about(tmp_path_factory, sets, sign):
    sets = [labels for labels in sets if labels]
    assume(any(len(labels) > 1 for labels in sets))
    path = tmp_path_factory.mktemp("weak") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [[f"s{n}", sign.join(labels)] for n, labels in enumerate(sets)]
        csv.writer(file).writerows([["id", "candidates"], *rows])
    try:
        found = read_annotations(path)
    except DataError:
        with pytest.raises(DataError, match="may be one label or several; give delimiter="):
            read_annotations(path)
        found = read_annotations(path, delimiter=sign)
    assert [sorted(found.candidates.names(n)) for n in range(len(found))] == [
        sorted(labels) for labels in sets
    ]
