"""Pieces of pages: escaped, whole, and without anything from outside."""

from __future__ import annotations

import base64
from html.parser import HTMLParser

import pytest

from fspll._common.html import elements as html

EVIL = "<script>alert('x')</script> & \"quoted\""
VOID = {"meta", "img"}


class Outline(HTMLParser):
    """Elements, attributes and text of a page; complains about elements left open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes, self.words = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_text_is_escaped_everywhere():
    page = html.page(
        EVIL,
        html.join(
            [
                EVIL,
                html.section(EVIL, EVIL, anchor=EVIL),
                html.table([EVIL, EVIL], [[EVIL, EVIL]], caption=EVIL),
                html.details(EVIL, EVIL),
                html.bullets([EVIL]),
                html.tiles([(EVIL, EVIL)]),
                html.figure(b"png", "png", EVIL),
                html.nested({EVIL: [{EVIL: EVIL}, EVIL]}),
            ]
        ),
        contents=[(EVIL, EVIL)],
    )
    outline = Outline(page)
    assert "script" not in outline.seen
    assert "".join(outline.words).count(EVIL) == 21
    assert ("id", EVIL) in outline.attributes
    assert ("alt", EVIL) in outline.attributes


def test_markup_is_kept():
    assert html.tag("p", html.tag("b", "1 < 2"), " > 0") == "<p><b>1 &lt; 2</b> &gt; 0</p>"
    assert (
        html.tag("td", colspan=2, class_="a b", title=None) == '<td colspan="2" class="a b"></td>'
    )


def test_a_page_asks_for_nothing_from_outside():
    page = html.page("title", html.figure(b"data", "png", "a picture"))
    outline = Outline(page)
    assert not {"script", "link", "iframe"} & set(outline.seen)
    sources = [value for name, value in outline.attributes if name in ("src", "href")]
    assert sources == ["data:image/png;base64," + base64.b64encode(b"data").decode()]
    assert "url(" not in page
    assert "@import" not in page
    assert 'name="viewport"' in page


def test_a_table_names_its_lines():
    outline = Outline(html.table(["row", "n"], [["PN", 3], ["MAML", 4]]))
    assert outline.words == ["row", "n", "PN", "3", "MAML", "4"]
    assert outline.attributes.count(("scope", "row")) == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (True, "yes"),
        (180000, "180,000"),
        (0.0003, "0.0003"),
        (12345.678, "12,345.7"),
        ([1, 2], "1, 2"),
        ([], "none"),
        ({}, "none"),
        ({"a": {"b": 1}}, "<dl><dt>a</dt><dd><dl><dt>b</dt><dd>1</dd></dl></dd></dl>"),
        ([[1, 2], [3]], "<ul><li>1, 2</li><li>3</li></ul>"),
    ],
)
def test_nested(value, shown):
    assert html.nested(value) == shown


def test_equal_dictionaries_become_a_table():
    outline = Outline(html.nested([{"r": 1, "s": 2.5}, {"r": 2, "s": None}]))
    assert "table" in outline.seen
    assert outline.words == ["r", "s", "1", "2.5", "2", "–"]
    assert "table" not in Outline(html.nested([{"r": 1}, {"s": 2}])).seen
    assert "table" not in Outline(html.nested([{}, {}])).seen
