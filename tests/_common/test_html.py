"""Pieces of pages: escaped, whole, and without anything from outside."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from html.parser import HTMLParser

import pytest
from jinja2 import UndefinedError

from fspll._common.html.rendering import environment

EVIL = "<script>alert('x')</script> & \"quoted\""
VOID = {"meta", "img"}
EVERYTHING = """
{% extends "base.html.j2" %}
{% from "macros.html.j2" import bullets, details, figure, name, nested, section, table, tiles %}
{% block body %}
{{ evil }}
{% call section(evil, evil) %}{{ evil }}{% endcall %}
{{ table([evil, evil], [[evil, evil]], evil) }}
{% call(cell) table([evil], [[evil]]) %}{{ name(cell) }}{% endcall %}
{% call details(evil) %}{{ evil }}{% endcall %}
{{ bullets([evil]) }}
{{ tiles([(evil, evil)]) }}
{{ figure("png".encode(), "png", evil) }}
{{ nested({evil: [{evil: evil}, evil]}) }}
{% endblock %}
"""
PICTURE = """
{% extends "base.html.j2" %}
{% from "macros.html.j2" import figure %}
{% block body %}{{ figure(image, "png", "a picture") }}{% endblock %}
"""


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


def page(template, **values):
    return environment("fspll._common.html").from_string(template).render(values)


def macro(called, *values):
    module = environment("fspll._common.html").get_template("macros.html.j2").module
    return str(getattr(module, called)(*values))


def test_text_is_escaped_everywhere():
    outline = Outline(page(EVERYTHING, title=EVIL, contents=[(EVIL, EVIL)], evil=EVIL))
    assert "script" not in outline.seen
    assert "".join(outline.words).count(EVIL) == 23
    assert ("id", EVIL) in outline.attributes
    assert ("alt", EVIL) in outline.attributes


def test_markup_of_templates_is_kept():
    template = '{% from "macros.html.j2" import bullets, name %}{{ bullets([name("1 < 2"), ">"]) }}'
    shown = '<ul><li><span class="name">1 &lt; 2</span></li><li>&gt;</li></ul>'
    assert page(template) == shown


def test_a_long_name_is_whole_when_pointed_at():
    long = '"' + 80 * "x"
    outline = Outline(macro("name", long))
    assert ("title", long) in outline.attributes
    assert len(outline.words[0]) == 60


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(UndefinedError, match="'contents' is undefined"):
        page('{% extends "base.html.j2" %}', title="title")


def test_a_page_asks_for_nothing_from_outside():
    whole = page(PICTURE, title="title", contents=[], image=b"data")
    outline = Outline(whole)
    assert not {"script", "link", "iframe"} & set(outline.seen)
    sources = [value for name, value in outline.attributes if name in ("src", "href")]
    assert sources == ["data:image/png;base64," + base64.b64encode(b"data").decode()]
    assert "url(" not in whole
    assert "@import" not in whole
    assert 'name="viewport"' in whole


def policy(whole):
    """Return the directives of a page's Content-Security-Policy."""
    (element,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', whole)
    assert whole.index("Content-Security-Policy") < whole.index("<style>")
    return dict(one.strip().split(" ", 1) for one in unescape(element).split(";"))


def test_the_policy_of_a_page_lets_nothing_in_or_out():
    whole = page(PICTURE, title="title", contents=[], image=b"data")
    assert policy(whole) == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
        "script-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_a_script_runs_by_its_hash_alone():
    made = environment("fspll.labeling.report")
    whole = made.from_string(
        '{% extends "base.html.j2" %}'
        '{% block scripts %}{{ script_hash("map.js") }}{% endblock %}'
        '{% block body %}{{ script("map.js") }}{% endblock %}'
    ).render(title="a", contents=None)
    (code,) = re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)
    assert "map-data" in code
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert policy(whole)["script-src"] == f"'sha256-{digest}'"


def test_a_table_names_its_lines():
    outline = Outline(macro("table", ["row", "n"], [["PN", 3], ["MAML", 4]]))
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
    assert macro("nested", value) == shown


def test_equal_dictionaries_become_a_table():
    outline = Outline(macro("nested", [{"r": 1, "s": 2.5}, {"r": 2, "s": None}]))
    assert "table" in outline.seen
    assert outline.words == ["r", "s", "1", "2.5", "2", "–"]
    assert "table" not in Outline(macro("nested", [{"r": 1}, {"s": 2}])).seen
    assert "table" not in Outline(macro("nested", [{}, {}])).seen
