"""What people answered in Label Studio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fspll import label
from fspll._common.errors import InputError
from fspll.labeling.label_studio import AnnotationLog, Event, Given, read_event


def test_an_annotation_is_an_answer(result, body):
    assert read_event(result, body("created")) == Event(
        "ANNOTATION_CREATED", given=(Given(1, "IMG_507.jpg", "cat"),)
    )
    assert read_event(result, body("updated")) == Event(
        "ANNOTATION_UPDATED", given=(Given(1, "IMG_507.jpg", "lynx"),)
    )


def test_deleted_annotations_are_withdrawn(result, body):
    assert read_event(result, body("deleted")) == Event("ANNOTATIONS_DELETED", withdrawn=(2,))
    assert read_event(result, body("deleted_many")).withdrawn == (1, 3, 4)
    old = {"action": "ANNOTATION_DELETED", "annotation": {"id": 5}}
    assert read_event(result, old).withdrawn == (5,)


def test_skipped_annotations_are_none(result, body):
    assert read_event(result, body("skipped")) == Event(
        "ANNOTATION_CREATED",
        withdrawn=(2,),
        ignored=("annotation 2 is no answer: it was skipped",),
    )


def test_predictions_that_nobody_looked_at_are_none(result, body):
    event = body("created_many")
    found = read_event(result, event)
    assert found.given == ()
    assert found.ignored == (
        "annotation 3 is no answer: it is a prediction that nobody looked at",
        "annotation 4 is no answer: it is a prediction that nobody looked at",
    )
    for one in event["annotation"]:
        one["parent_prediction"] = None
    found = read_event(result, event)
    assert found.given == (Given(4, "my cat (1) é.jpg", "cat"),)
    assert found.ignored == ("annotation 3 is no answer: it has no label",)
    # A person who saw the prediction and submitted it has answered.
    event = body("created")
    event["annotation"]["parent_prediction"] = 1
    assert read_event(result, event).given == (Given(1, "IMG_507.jpg", "cat"),)


@pytest.mark.parametrize(
    "action", ["START_TRAINING", "PROJECT_UPDATED", "TASKS_CREATED", "\x1b[2J"]
)
def test_other_events_say_nothing(result, body, action):
    event = body("training") | {"action": action}
    assert read_event(result, event) == Event(action.replace("\x1b", "\\x1b"))


def test_one_label_and_no_other(result, body):
    event = body("created")
    (given,) = event["annotation"]["result"]
    given["value"]["choices"] = ["cat", "lynx"]
    found = read_event(result, event)
    assert (found.given, found.withdrawn) == ((), (1,))
    assert found.ignored == ("annotation 1 is no answer: it has 2 labels, not one",)
    event["annotation"]["result"] = [
        {**given, "value": {"choices": ["cat"]}},
        {**given, "value": {"choices": ["cat"]}},
        {**given, "from_name": "mood", "value": {"choices": ["sad"]}},
        {"type": "rectanglelabels", "value": {"rectanglelabels": ["eye"]}},
    ]
    assert read_event(result, event).given == (Given(1, "IMG_507.jpg", "cat"),)
    event["annotation"]["result"] = None
    assert read_event(result, event).ignored == ("annotation 1 is no answer: it has no label",)


def test_tasks_about_no_sample(result, body):
    event = body("created")
    event["task"]["data"] = {"image": "/data/upload/1/dae11086-other.jpg"}
    expected = ("annotation 1 is no answer: its task is about no sample of this result",)
    assert read_event(result, event).ignored == expected
    for change in ({"task": None}, {"task": {**event["task"], "id": 99}}):
        assert read_event(result, body("created") | change).ignored == expected


def test_labels_by_alias_by_number_and_new_ones(result, body):
    event = body("created")
    project = event["project"]
    project["label_config"] = project["label_config"].replace(
        'value="cat"', 'value="cat" alias="c"'
    )
    (given,) = event["annotation"]["result"]
    given["value"]["choices"] = ["c"]
    assert read_event(result, event).given[0].label == "cat"
    given["value"]["choices"] = ["something else"]
    assert read_event(result, event).given[0].label == "something else"
    numbers = label((np.array([[0.0], [0.1], [5.0]]), [{1, 2}, {1}, {2}]), progress=False)
    numbers = replace(numbers, names=("IMG_507.jpg", "b", "c"))
    del event["project"]
    given["value"]["choices"] = ["2"]
    event["task"]["data"]["sample"] = "IMG_507.jpg"
    assert read_event(numbers, event).given == (Given(1, "IMG_507.jpg", 2),)


def changed(event, path, value):
    """Put a value where a path of keys leads."""
    *way, last = path
    for key in way:
        event = event[key]
    event[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("action",), None, "an event of Label Studio is an object with its name in 'action'"),
        (("action",), ["ANNOTATION_CREATED"], "an object with its name in 'action'"),
        (("annotation",), 7, "annotations and tasks of an event of Label Studio are objects"),
        (("annotation",), [7], "annotations and tasks of an event of Label Studio are objects"),
        (("task",), "IMG_507.jpg", "annotations and tasks of an event of Label Studio are objects"),
        (
            ("annotation", "id"),
            "1",
            "annotations and tasks of an event of Label Studio have numbers",
        ),
        (("annotation", "id"), True, "annotations and tasks of an event of Label Studio have num"),
        (("task", "id"), None, "annotations and tasks of an event of Label Studio have numbers"),
        (("task", "data"), None, "a task of Label Studio is an object with its fields in 'data'"),
        (
            ("annotation", "result"),
            {"a": 1},
            "the 'result' of an annotation of Label Studio is a l",
        ),
        (
            ("annotation", "result", 0, "value", "choices"),
            [["cat"]],
            "the 'choices' of an annotation of Label Studio are a list of texts",
        ),
        (
            ("annotation", "result", 0, "value", "choices"),
            "cat",
            "the 'choices' of an annotation of Label Studio are a list of texts",
        ),
        (("project", "label_config"), "<View/>", "no <Choices> with a label of this result"),
        (("project", "label_config"), 7, "there is no labeling configuration"),
    ],
)
def test_what_is_no_event(result, body, path, value, message):
    event = body("created")
    changed(event, path, value)
    with pytest.raises(InputError, match=message):
        read_event(result, event)


@pytest.mark.parametrize("event", [None, [], "created", 7, {}])
def test_what_is_no_object(result, event):
    with pytest.raises(InputError, match="an event of Label Studio is an object with its name in"):
        read_event(result, event)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("annotation", "result", 0), 7),
        (("annotation", "result", 0, "value"), None),
        (("annotation", "task"), [1]),
        (("annotation", "task"), {"id": 1}),
    ],
)
def test_what_says_nothing_is_no_answer(result, body, path, value):
    event = body("created")
    changed(event, path, value)
    found = read_event(result, event)
    assert (found.given, found.withdrawn) == ((), (1,))


# -------------------------------------------------------------------- several events


def test_the_last_answer_counts_until_it_is_withdrawn():
    log = AnnotationLog()
    first, second = Given(1, "a", "cat"), Given(2, "a", "lynx")
    assert log.apply(Event("", (first,))) == {"a": "cat"}
    assert log.apply(Event("", (second,))) == {"a": "lynx"}
    assert log.apply(Event("", (replace(first, label="dog"),))) == {"a": "dog"}
    assert log.apply(Event("", withdrawn=(1,))) == {"a": "lynx"}
    assert log.apply(Event("", withdrawn=(1, 9))) == {}
    assert log.apply(Event("", (Given(2, "b", "cat"),))) == {"a": None, "b": "cat"}
    assert log.apply(Event("", withdrawn=(2,))) == {"b": None}
    assert log.given == {}
