"""What separates the candidates of a column."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fspll._common.errors import DataError
from fspll.annotations.splitting import Splitter, written_list
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
        (["cat\nlynx", "cat|x"], "\n"),
        (["cat or lynx", "lynx"], " or "),
        (["chat ou lynx", "lynx OU ours"], " or "),
        (["cat (big, old)", "lynx"], ""),
        (["cat (big, old), lynx", "lynx"], ","),
    ],
)
def test_the_sign_is_found(cells, sign):
    assert Splitter.choose(None, cells, "l.csv").delimiter == sign


@pytest.mark.parametrize(
    "cells", [["Greek/alpha", "Greek/beta"], ["n/a", "cat"], ["a/b"], ["a/b", "a", "n/x", "n/y"]]
)
def test_a_slash_that_may_belong_to_a_name_is_asked_about(cells):
    with pytest.raises(
        DataError, match=r"l\.csv: '.*/.*' may be one label or several.*delimiter=''"
    ):
        Splitter.choose(None, cells, "l.csv")
    assert Splitter.choose("", cells, "").labels(cells[0], "") == [cells[0]]
    assert Splitter.choose("/", cells, "").labels(cells[0], "") == cells[0].split("/")


def test_an_or_that_may_belong_to_a_name_is_asked_about():
    with pytest.raises(
        DataError, match=r"'war oder peace' may be one label or several; give delimiter=' oder '"
    ):
        Splitter.choose(None, ["war oder peace", "sleep"], "l.csv")


@pytest.mark.parametrize(
    ("cells", "shown", "last"),
    [
        (["cat|dog", "fox", "cat or fox"], "separators '|' and 'or'", ["cat", "fox"]),
        (["cat, dog", "fox", "cat, fox or dog"], "separators ',' and 'or'", ["cat", "fox", "dog"]),
        (["cat|dog", "tench, Tinca tinca"], "separator '|'", ["tench, Tinca tinca"]),
        (["cat|dog", "fox", "cat or wolf"], "separator '|'", ["cat or wolf"]),
        (["cat", "dog"], "one label per cell", ["dog"]),
        (["cat", '["dog"]'], "lists of labels", ["dog"]),
        (["cat|dog", '["dog"]'], "separator '|' and lists", ["dog"]),
    ],
)
def test_another_sign_between_labels_that_stand_alone_separates_too(cells, shown, last):
    splitter = Splitter.choose(None, cells, "")
    assert str(splitter) == shown
    assert splitter.labels(cells[-1], "") == last


def test_a_comma_has_to_be_shown_where_a_column_may_hold_one_label():
    cells = ["Gâteau, crème", "Gâteau, fruits", "Tarte"]
    with pytest.raises(DataError, match="'Gâteau, crème' may be one label or several"):
        Splitter.choose(None, cells, "", several=False)
    shown = Splitter.choose(None, ["cat, dog", "dog", "fox, cat"], "", several=False)
    assert shown.delimiter == ","


CAKES = ["Gâteau, crème", "Tarte", "Éclair", "Tarte", "Flan", "Éclair", "Tarte", "Flan", "Tarte"]


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("more", ["Tarte", "Gâteau, crème", "Baba, rhum"])
def test_a_comma_whose_parts_occur_nowhere_else_belongs_to_the_name(several, more):
    splitter = Splitter.choose(None, [*CAKES, more], "", several=several)
    assert splitter.labels("Gâteau, crème", "") == ["Gâteau, crème"]
    assert str(splitter) == "one label per cell (give delimiter=',' if ',' separates candidates)"
    assert Splitter.choose(",", CAKES, "").labels("Gâteau, crème", "") == ["Gâteau", "crème"]


@pytest.mark.parametrize(
    ("cells", "labels", "shown"),
    [
        ([*CAKES, "crème"], (), "separator ','"),  # a part stands alone
        ([*CAKES, "crème, Gâteau"], (), "separator ','"),  # in another order
        ([*CAKES, "Gâteau, fruits"], (), "separator ','"),  # with another partner
        ([*CAKES, "Baba,"], (), "separator ','"),
        ([*CAKES, "Tarte"], ("crème",), "separator ','"),  # it is known from elsewhere
        (CAKES, (), "separator ',' (give delimiter='' if it belongs to the names)"),  # too few
        (CAKES[:1] * 20, (), "separator ',' (give delimiter='' if it belongs to the names)"),
    ],
)
def test_a_comma_separates_all_the_same(cells, labels, shown):
    splitter = Splitter.choose(None, cells, "", labels=labels)
    assert str(splitter) == shown
    assert splitter.labels(cells[0], "") == ["Gâteau", "crème"]


def test_a_label_that_is_known_with_its_comma_is_not_split():
    assert Splitter.choose(None, CAKES[:3], "", labels=["Gâteau, crème"]).delimiter == ""


def test_written_candidates_do_not_depend_on_how_many_there_are():
    cells = join_candidates([[cake] for cake in [*CAKES, "Tarte"]])
    assert cells[0] == '["Gâteau, crème"]'


def test_cells_of_one_label_are_not_split():
    cells = ["Gâteau, crème", "Tarte", "a/b", "this or that", "x; y", "Tarte\nTatin"]
    splitter = Splitter.one_label(None, cells, "")
    assert [splitter.labels(cell, "") for cell in cells] == [[cell] for cell in cells]
    assert Splitter.one_label(",", cells, "").labels(cells[0], "") == ["Gâteau", "crème"]
    assert Splitter.one_label(None, ["a|b", "c,d"], "").labels("a|b", "") == ["a", "b"]
    with pytest.raises(DataError, match=r"l\.csv: 'cat, dog' may be one label or several"):
        Splitter.one_label(None, ["cat, dog", "dog", "cat"], "l.csv")


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
        ("[__import__('os')]", None),
        ("", None),
    ],
)
def test_written_lists(text, items):
    assert written_list(text) == items


def test_a_list_nested_too_deeply_is_none_of_labels():
    """Up to Python 3.12 it cannot be parsed; from 3.13 on its items are no labels."""
    items = written_list("[" * 5000 + "]" * 5000)
    if sys.version_info < (3, 13):
        assert items is None
    else:
        assert [type(item) for item in items] == [list]


LABEL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
LABELS = LABEL.map(str.strip).filter(bool) | st.sampled_from(["a|b", "a;b", "a/b", "[", "['x']"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(LABELS, min_size=1, max_size=4, unique=True), min_size=1, max_size=5))
def test_what_is_joined_is_split_again(sets):
    cells = join_candidates(sets)
    splitter = Splitter.choose(None, cells, "")
    assert [splitter.labels(cell.strip(), "") for cell in cells] == sets
