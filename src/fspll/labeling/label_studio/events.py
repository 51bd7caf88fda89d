"""What people answered in Label Studio, from the events that it posts to a webhook.

Events are unsigned: whoever knows the address of the webhook can send them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fspll._common.errors import InputError
from fspll._common.words import visible
from fspll.labeling.label_studio.config import Control, read_config
from fspll.labeling.label_studio.matching import SampleIndex
from fspll.labeling.result import Labeling

_GIVEN = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
_DELETED = ("ANNOTATIONS_DELETED", "ANNOTATION_DELETED")
_LETTERS = 60


@dataclass(frozen=True)
class Given:
    """The label that a person gave to a sample in Label Studio.

    Attributes
    ----------
    annotation : int
        Its number there, by which it is changed and deleted.
    sample : str
        The sample's name.
    label : label
        A class of the result, or a text that is none.
    """

    annotation: int
    sample: str
    label: Any


@dataclass(frozen=True)
class Event:
    """What an event says about answers.

    Attributes
    ----------
    action : str
        What happened, in Label Studio's words.
    given : tuple of Given
    withdrawn : tuple of int
        Annotations that give no answer, or none any more: deleted, skipped, or without a label.
    ignored : tuple of str
        Why annotations give no answer, a sentence each.
    """

    action: str
    given: tuple[Given, ...] = ()
    withdrawn: tuple[int, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass
class AnnotationLog:
    """The annotations that gave an answer, so that those that are deleted can be withdrawn.

    Label Studio names only the number of a deleted annotation. Where several people annotated a
    sample, the last answer counts; when it is withdrawn, the one before counts again.

    Examples
    --------
    >>> log = AnnotationLog()
    >>> log.apply(Event("ANNOTATION_CREATED", given=(Given(7, "a.png", "cat"),)))
    {'a.png': 'cat'}
    >>> log.apply(Event("ANNOTATIONS_DELETED", withdrawn=(7,)))
    {'a.png': None}
    """

    given: dict[int, Given] = field(default_factory=dict)  # in the order of their last change

    def apply(self, event: Event) -> dict[str, Any]:
        """Return the answers that an event changes: the label of each sample, None for no answer.

        An annotation that is not known here is none to withdraw.
        """
        changed: dict[str, Any] = {}
        for number in (*event.withdrawn, *(one.annotation for one in event.given)):
            before = self.given.pop(number, None)
            if before is not None:
                changed[before.sample] = None
        for one in event.given:
            self.given[one.annotation] = one
            changed[one.sample] = None
        for one in self.given.values():
            if one.sample in changed:
                changed[one.sample] = one.label
        return changed


def read_event(result: Labeling, event: Any, index: SampleIndex | None = None) -> Event:
    """Return what an event of ``POST /webhook`` says about the samples of a result.

    Predictions that somebody turned into annotations without looking at the tasks ("Create
    annotations from predictions") are no answers: they are this package's own guesses.

    Parameters
    ----------
    result : Labeling
    event : dict
        The body.
    index : SampleIndex, optional
        Of this result; made anew by default.

    Raises
    ------
    InputError
        When it is no event, or of a project that does not fit the result.
    """
    action = event.get("action") if isinstance(event, dict) else None
    if not isinstance(action, str):
        raise InputError("an event of Label Studio is an object with its name in 'action'")
    if action in _DELETED:
        deleted = event.get("annotations", event.get("annotation"))
        return Event(action, withdrawn=tuple(_number(one) for one in _objects(deleted)))
    if action not in _GIVEN:
        return Event(visible(action)[:_LETTERS])
    control = _control(result, event.get("project"))
    index = SampleIndex(result) if index is None else index
    tasks = {_number(task): task for task in _objects(event.get("task"))}
    given, withdrawn, ignored = [], [], []
    for annotation in _objects(event.get("annotation")):
        number = _number(annotation)
        about = annotation.get("task")
        task = tasks.get(about) if isinstance(about, int) else None
        row = None if task is None else index.find(task, control.key if control else None)
        reason = _no_answer(action, annotation)
        labels = [] if reason else list(_labels(annotation, control))
        if not reason and row is None:
            reason = "its task is about no sample of this result"
        elif not reason and len(labels) != 1:
            reason = f"it has {len(labels)} labels, not one" if labels else "it has no label"
        if reason or row is None:
            withdrawn.append(number)
            ignored.append(f"annotation {number} is no answer: {reason}")
        else:
            label = _class_of(result, labels[0], control)
            given.append(Given(number, result.names[row], label))
    return Event(action, tuple(given), tuple(withdrawn), tuple(ignored))


def _no_answer(action: str, annotation: dict[str, Any]) -> str:
    if annotation.get("was_cancelled"):
        return "it was skipped"
    if action == "ANNOTATIONS_CREATED" and annotation.get("parent_prediction") is not None:
        return "it is a prediction that nobody looked at"
    return ""


def _control(result: Labeling, project: Any) -> Control | None:
    config = project.get("label_config") if isinstance(project, dict) else None
    return None if config is None else read_config(config, result.classes.tolist())


def _labels(annotation: dict[str, Any], control: Control | None) -> Iterator[str]:
    """Yield the choices of an annotation, each once."""
    results = annotation.get("result")
    if not isinstance(results, list | None):
        raise InputError("the 'result' of an annotation of Label Studio is a list")
    found: dict[str, None] = {}
    for one in results or []:
        value = one.get("value") if isinstance(one, dict) else None
        choices = value.get("choices") if isinstance(value, dict) else None
        if choices is None or (control and one.get("from_name") != control.from_name):
            continue  # a box, or another question
        if not isinstance(choices, list) or not all(isinstance(text, str) for text in choices):
            raise InputError("the 'choices' of an annotation of Label Studio are a list of texts")
        found.update(dict.fromkeys(choices))
    yield from found


def _class_of(result: Labeling, choice: str, control: Control | None) -> Any:
    """Return the class that a choice stands for, by its name or its alias; else the choice."""
    for one in result.classes.tolist():
        known = control and control.choices
        if choice == (known.get(str(one), str(one)) if known else str(one)):
            return one
    return choice


def _objects(value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, dict) for one in found):
        raise InputError("the annotations and tasks of an event of Label Studio are objects")
    return found


def _number(value: dict[str, Any]) -> int:
    number = value.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise InputError("the annotations and tasks of an event of Label Studio have numbers")
    return number
