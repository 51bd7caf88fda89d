"""Requests in which anything stands in the place of something; and the page of the docs."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fspll._common.errors import FsPLLError
from fspll.labeling.label_studio import AnnotationLog, SampleIndex, predict_tasks, read_event, setup

REQUESTS = json.loads((Path(__file__).parent / "requests.json").read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[3] / "docs" / "label-studio.md"
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value, path=()):
    """Yield the path of every value inside a value."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inside:
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))
        else:
            yield (*path, key)


def replaced(body, path, value):
    body = copy.deepcopy(body)
    *way, last = path
    inner = body
    for key in way:
        inner = inner[key]
    inner[last] = value
    return body


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_an_answer_or_a_sentence(result, data):
    name = data.draw(
        st.sampled_from(["setup", "predict", "created", "created_many", "deleted_many"])
    )
    body = REQUESTS[name]["body"]
    path = data.draw(st.sampled_from(list(places(body))))
    body = replaced(body, path, data.draw(ANYTHING))
    index = SampleIndex(result)
    with contextlib.suppress(FsPLLError):
        if name == "setup":
            found = setup(result, body)
        elif name == "predict":
            found = predict_tasks(result, body.get("tasks"), body.get("label_config"), index)
        else:
            found = AnnotationLog().apply(read_event(result, body, index))
        json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("name", ["health", "setup", "predict"])
def test_the_page_names_every_request(name):
    recorded = REQUESTS[name]
    assert f"`{recorded['method']} /{recorded['path']}`" in PAGE.read_text(encoding="utf-8")
    for key in recorded["body"] or ():
        assert f"`{key}`" in PAGE.read_text(encoding="utf-8")
