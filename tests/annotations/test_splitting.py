"""What separates the candidates of a column."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fspll._common.errors import DataError
from fspll.annotations.splitting import Splitter, find_delimiter, written_list
from fspll.annotations.writing import join_candidates


@pytest.mark.parametrize(
    ("cells", "sign"),
    [
        (["cat", "snow leopard"], ""),
        (["cat|dog", "a;b,c/d"], "|"),
        (["tench, Tinca tinca|pike", "pike"], "|"),
        (["cat;dog", "a,b"], ";"),
        (["cat, dog", "Greek/alpha"], ","),
        (["cat/dog", "dog"], "/"),
        (["cat/dog", "dog / fox"], "/"),
        (['["a,b"]', "c"], ""),
        (["{'a', 'b'}", "c|d"], "|"),
        ([None, ["a|b"], 3], ""),
        (["[odd", "(x)", "{}"], ""),
    ],
)
def test_the_sign_is_found(cells, sign):
    assert find_delimiter(cells, "l.csv") == sign


@pytest.mark.parametrize("cells", [["Greek/alpha", "Greek/beta"], ["n/a", "cat"], ["a/b"]])
def test_a_slash_that_may_belong_to_a_name_is_asked_about(cells):
    with pytest.raises(
        DataError, match=r"l\.csv: '.*/.*' may be one label or several.*delimiter=''"
    ):
        find_delimiter(cells, "l.csv")
    assert Splitter.choose("", cells, "").labels(cells[0], "") == [cells[0]]
    assert Splitter.choose("/", cells, "").labels(cells[0], "") == cells[0].split("/")


def test_a_given_sign_is_the_only_one():
    split = Splitter.choose(" ", [], "").labels
    assert split("cat  dog|fox cat", "") == ["cat", "dog|fox"]
    assert Splitter.choose(",", [], "").labels('["a","b"]', "") == ['["a"', '"b"]']


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("{'b', 'a'}", ["a", "b"]),
        ("('a',)", ["a"]),
        ("[1, 2]", [1, 2]),
        ('{"choices": ["a"]}', ["a"]),
        ("[]", []),
        (r"['\d']", [r"\d"]),
        ("[a, b]", None),
        ("(unknown)", None),
        ("(1)", None),
        ("{'a': 1}", None),
        ("[" * 5000 + "]" * 5000, None),
        ("[__import__('os')]", None),
        ("", None),
    ],
)
def test_written_lists(text, items):
    assert written_list(text) == items


LABEL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
LABELS = LABEL.map(str.strip).filter(bool) | st.sampled_from(["a|b", "a;b", "a/b", "[", "['x']"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(LABELS, min_size=1, max_size=4, unique=True), min_size=1, max_size=5))
def test_what_is_joined_is_split_again(sets):
    cells = join_candidates(sets)
    splitter = Splitter.choose(None, cells, "")
    assert [splitter.labels(cell.strip(), "") for cell in cells] == sets
