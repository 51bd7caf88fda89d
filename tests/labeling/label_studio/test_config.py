"""Labeling configurations: ours, and those of others, which may be anything."""

from __future__ import annotations

import pytest

from fspll._common.errors import InputError
from fspll.labeling.label_studio import Control, read_config, write_config

IMAGE = '<Image name="picture" value="$photo"/>'
CAT, LYNX = '<Choice value="cat"/>', '<Choice value="lynx"/>'
CLASSES = ["cat", "lynx"]


def choices(*inside, name="animal", **attributes):
    more = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<Choices name="{name}" toName="picture"{more}>{"".join(inside)}</Choices>'


def view(*inside):
    return f"<View>{IMAGE}{''.join(inside)}</View>"


@pytest.mark.parametrize("show", ["image", "text", "sample"])
def test_what_is_written_is_read(show):
    classes = ['a "b"', "<R&D>", "it's", "two\nlines", "\ttab", "é 猫", 7]
    found = read_config(write_config(classes, show), classes)
    assert found == Control("label", show, show, {str(one): str(one) for one in classes})


def test_a_label_that_no_xml_can_hold_is_named():
    with pytest.raises(InputError, match=r"the label 'a\\x01b' holds a character that XML"):
        write_config(["fine", "a\x01b"], "text")


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (
            [choices(CAT, LYNX)],
            Control("animal", "picture", "photo", {"cat": "cat", "lynx": "lynx"}),
        ),
        # Choices may be wrapped, have others below them, and an alias that results carry.
        (
            [choices("<View>", '<Choice value="cat" alias="c"/>', "</View>")],
            Control("animal", "picture", "photo", {"cat": "c", "c": "c"}),
        ),
        (
            [choices('<Choice value="big"><Choice value="lynx"/></Choice>')],
            Control("animal", "picture", "photo", {"big": "big", "lynx": "lynx"}),
        ),
        # Of several the one with most of the classes, whatever its place.
        (
            [choices(CAT, '<Choice value="sad"/>', name="mood"), choices(CAT, LYNX)],
            Control("animal", "picture", "photo", {"cat": "cat", "lynx": "lynx"}),
        ),
        (
            [choices(CAT, LYNX, name="part", perRegion="true"), choices(CAT)],
            Control("animal", "picture", "photo", {"cat": "cat"}),
        ),
        ([choices(value="$options")], Control("animal", "picture", "photo", None)),
    ],
)
def test_the_control_of_the_labels_is_found(inside, expected):
    assert read_config(view(*inside), CLASSES) == expected


def test_objects_that_show_no_field_have_no_key():
    config = (
        '<View><Image name="a" valueList="$all"/><Choices name="c" toName="a">%s</Choices></View>'
    )
    assert read_config(config % CAT, CLASSES).key is None
    text = '<Text name="a" value="See $title"/>'
    several = f'<View>{text}<Choices name="c" toName="a,b">%s</Choices></View>'
    found = read_config(several % CAT, CLASSES)
    assert (found.to_name, found.key) == ("a", "title")


def test_a_label_of_the_project_becomes_a_result():
    control = Control("animal", "picture", "photo", {"cat": "c", "7": "7"})
    assert control.result("cat") == [
        {
            "from_name": "animal",
            "to_name": "picture",
            "type": "choices",
            "value": {"choices": ["c"]},
        }
    ]
    assert control.result(7)[0]["value"] == {"choices": ["7"]}
    assert control.result("dog") == []
    assert Control("a", "b", None, None).result("dog")[0]["value"] == {"choices": ["dog"]}


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no labeling configuration; expected the XML of a project"),
        ({"a": 1}, "there is no labeling configuration; expected the XML of a project"),
        ("  ", "there is no labeling configuration; expected the XML of a project"),
        ("<View>", "the labeling configuration is no XML: no element found: line 1, column 6"),
        ("<View>\ud800</View>", "the labeling configuration is no XML: 'utf-8' codec can't"),
        (
            "<View>" + "x" * (1 << 20) + "</View>",
            "the labeling configuration has 1,048,589 characters, of which at most 1,048,576",
        ),
        (
            f'<!DOCTYPE v [<!ENTITY l0 "ha">{LAUGHS}]>' + view(choices('<Choice value="&l8;"/>')),
            "the labeling configuration declares a document type or entities, which are not read",
        ),
        (
            '<!DOCTYPE v SYSTEM "file:///etc/passwd">' + view(choices(CAT)),
            "the labeling configuration declares a document type or entities, which are not read",
        ),
        (
            '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE v>' + view(choices(CAT)),
            "the labeling configuration declares a document type or entities, which are not read",
        ),
        (
            view(),
            "the labeling configuration has no <Choices> with a label of this result, such as",
        ),
        (
            view(choices('<Choice value="dog"/>', name="pet\x7f")),
            r"a label of this result, such as 'cat'; it has <Choices> called 'pet\\\\x7f'",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read_config(text, CLASSES)


def test_deep_configurations_are_read_in_time():
    deep = "<View>" * 60_000 + choices(CAT) + IMAGE + "</View>" * 60_000
    assert read_config(deep, CLASSES).choices == {"cat": "cat"}
