"""The labeling configuration of a project: written for a result, and read from somebody's own.

What is read comes from outside. It is bounded, goes through a parser that expands nothing, and may
declare neither a document type nor entities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from fspll._common.errors import InputError
from fspll._common.words import listed, visible

LABEL = "label"  # the name of our <Choices>: the column of the answers in a CSV export
SAMPLE = "sample"  # the field of our tasks with the sample's name
_OBJECTS = {"image": "Image", "text": "Text", SAMPLE: "Text"}
_LONGEST = 1 << 20  # characters
_SHOWN = 5
_FIELD = re.compile(r"\$(\w+)")
# What XML cannot hold, escaped or not.
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Control:
    """The ``<Choices>`` of a project that takes the labels.

    Attributes
    ----------
    from_name : str
        Its name.
    to_name : str
        The name of the object that it is about.
    key : str or None
        The field of a task that the object shows; None where the configuration does not say.
    choices : mapping of str to str, or None
        How a result writes each label: by the alias of its choice, where it has one. None where
        every task brings its own choices.
    """

    from_name: str
    to_name: str
    key: str | None
    choices: Mapping[str, str] | None

    def result(self, label: Any) -> list[dict[str, Any]]:
        """Return a label as the result of a prediction; empty where the project does not have it.

        >>> Control("label", "image", "image", {"cat": "cat"}).result("dog")
        []
        """
        choice = str(label) if self.choices is None else self.choices.get(str(label))
        if choice is None:
            return []
        return [
            {
                "from_name": self.from_name,
                "to_name": self.to_name,
                "type": "choices",
                "value": {"choices": [choice]},
            }
        ]


def write_config(classes: Sequence[Any], show: str) -> str:
    """Return the configuration of a project whose tasks get one of the classes.

    Parameters
    ----------
    classes : sequence of label
    show : {"image", "text", "sample"}
        The field of the tasks that a person looks at.

    Examples
    --------
    >>> print(write_config(["cat", "R&D"], "text"))
    <View>
      <Header size="5" value="Candidates: $candidates"/>
      <Choices name="label" toName="text" choice="single" showInline="true">
        <Choice value="cat"/>
        <Choice value="R&amp;D"/>
      </Choices>
      <Text name="text" value="$text"/>
    </View>
    """
    strange = [visible(str(one)) for one in classes if _NO_XML.search(str(one))]
    if strange:
        raise InputError(
            f"the label '{strange[0]}' holds a character that XML, and so Label Studio, cannot hold"
        )
    return "\n".join(
        [
            "<View>",
            '  <Header size="5" value="Candidates: $candidates"/>',
            f'  <Choices name="{LABEL}" toName="{show}" choice="single" showInline="true">',
            *(f"    <Choice value={quoteattr(str(one))}/>" for one in classes),
            "  </Choices>",
            # Below, as pictures and texts may be larger than the window.
            f'  <{_OBJECTS[show]} name="{show}" value="${show}"/>',
            "</View>",
        ]
    )


# -------------------------------------------------------------------- reading


@dataclass
class _Choices:
    from_name: str
    to_name: str
    dynamic: bool
    choices: dict[str, str] = field(default_factory=dict)


@dataclass
class _Reader:
    """What a configuration has of use, filled in element by element."""

    keys: dict[str, str | None] = field(default_factory=dict)
    found: list[_Choices] = field(default_factory=list)
    inside: list[_Choices | None] = field(default_factory=list)  # one per open element

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name, value = attributes.get("name"), attributes.get("value", "")
        current = self.inside[-1] if self.inside else None
        if tag == "Choices":
            current = _Choices(
                name or "", attributes.get("toName", "").split(",")[0].strip(), "$" in value
            )
            # One for every region that a person draws is about something else.
            if name and attributes.get("perRegion", "false").lower() != "true":
                self.found.append(current)
        elif tag == "Choice" and current is not None:
            written = attributes.get("alias") or value
            if written:
                current.choices[written] = written
                current.choices.setdefault(value, written)
        elif name:
            key = _FIELD.search(value)
            self.keys[name] = key[1] if key else None
        self.inside.append(current)

    def end(self, tag: str) -> None:
        self.inside.pop()


def read_config(text: Any, classes: Sequence[Any]) -> Control:
    """Return where a project takes the labels of a result.

    Of several ``<Choices>`` it is the one that has most of the classes, the first of these.

    Parameters
    ----------
    text : str
        The configuration, from anybody.
    classes : sequence of label
        Those of the result.

    Raises
    ------
    InputError
        When the text is no configuration, or has no ``<Choices>`` with a label of the result.
    """
    read = _parse(text)
    labels = {str(one) for one in classes}
    usable = [one for one in read.found if one.dynamic or labels & set(one.choices)]
    if not usable:
        has = listed([repr(visible(one.from_name)) for one in read.found], _SHOWN)
        raise InputError(
            "the labeling configuration has no <Choices> with a label of this result, such as "
            f"{str(classes[0])!r}" + (f"; it has <Choices> called {has}" if has else "")
        )
    best = max(usable, key=lambda one: len(labels & set(one.choices)))
    choices = None if best.dynamic else best.choices
    return Control(best.from_name, best.to_name, read.keys.get(best.to_name), choices)


def _parse(text: Any) -> _Reader:
    if not isinstance(text, str) or not text.strip():
        raise InputError("there is no labeling configuration; expected the XML of a project")
    if len(text) > _LONGEST:
        raise InputError(
            f"the labeling configuration has {len(text):,} characters, of which at most "
            f"{_LONGEST:,} are read"
        )
    read = _Reader()
    # The text is decoded already: an encoding that it declares would be a second opinion.
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = read.start
    parser.EndElementHandler = read.end
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(text.encode(), True)
    except (expat.ExpatError, UnicodeEncodeError) as error:
        raise InputError(f"the labeling configuration is no XML: {error}") from None
    return read


def _refuse(*_: Any) -> NoReturn:
    raise InputError(
        "the labeling configuration declares a document type or entities, which are not read"
    )
