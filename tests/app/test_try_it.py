"""The page "Try it": its figures are those of the library, and drawings are recognized."""

from __future__ import annotations

import base64
import io
import itertools
import re

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra 'app' is not installed")

from PIL import Image
from starlette.testclient import TestClient

from fspll import FsPLLClassifier
from fspll.app import pad, playground
from fspll.app.server import make_app
from fspll.app.workspaces import Workspaces
from fspll.datasets.glyphs.alphabets import character
from fspll.datasets.glyphs.drawing import SPLITS
from fspll.diagnosis import ceiling
from fspll.tasks import TaskSettings, TaskSource

FIVE = {"classes": 5, "samples": 5, "candidates": 3, "seed": 11}
RECTIFIERS = {"pn": "none", "fspll": "fspll", "default": "adaptive"}


@pytest.fixture(scope="module")
def browser():
    return TestClient(
        make_app(Workspaces(), "token"), base_url="http://127.0.0.1", raise_server_exceptions=False
    )


def post(browser, what, given):
    return browser.post(f"/token/try/api/{what}", json=given)


def found(browser, what, given):
    answer = post(browser, what, given)
    assert answer.status_code == 200, answer.text
    return answer.json()


# -------------------------------------------------------------------- the task


@pytest.mark.parametrize(
    "settings", [FIVE, {**FIVE, "candidates": 4, "seed": 3}, {**FIVE, "seed": 1}]
)
def test_the_figures_are_those_of_the_classifier(browser, settings):
    shown = found(browser, "task", settings)
    drawn = playground.characters()
    shape = TaskSettings(settings["classes"], settings["samples"], 5, r=settings["candidates"] - 1)
    task = TaskSource(drawn.labels, shape, seed=settings["seed"]).task(0)
    for key, rectifier in RECTIFIERS.items():
        model = FsPLLClassifier(embedding="omniglot-conv4", rectifier=rectifier)
        model.fit(drawn.images[task.support], task.candidates)
        of_page = shown["methods"][key]
        assert of_page["labels_right"] == (model.labels_ == task.support_labels).sum()
        right = model.predict(drawn.images[task.query]) == task.query_labels
        assert of_page["queries_right"] == right.sum()
    assert shown["ceiling"] == pytest.approx(ceiling(task.candidates, task.support_labels))


def test_confidences_are_those_of_the_candidates_from_given_to_result(browser):
    shown = found(browser, "task", FIVE)
    solved = playground.solve(playground.Settings(**FIVE))
    for key, model in solved.models.items():
        steps = shown["methods"][key]["steps"]
        assert steps[0]["name"] == "as given"
        np.testing.assert_allclose(steps[0]["confidence"], 1 / 3, atol=1e-3)
        assert set(steps[0]["labels"]) == {-1}
        for row, drawing in enumerate(shown["given"]):
            assert drawing["truth"] in drawing["candidates"]
            expected = model.confidence_[row, drawing["candidates"]]
            np.testing.assert_allclose(steps[-1]["confidence"][row], expected, atol=1e-3)
        if key != "pn":
            assert steps[-1]["labels"] == model.labels_.tolist()
    names = {key: [step["name"] for step in one["steps"]] for key, one in shown["methods"].items()}
    assert names["pn"] == ["as given"]
    assert names["fspll"] == ["as given", *(f"round {number}" for number in range(1, 11))]
    assert names["default"][:3] == ["as given", "start", "round 1"]


def test_drawings_and_prototypes_lie_on_the_map(browser):
    shown = found(browser, "task", FIVE)
    points = np.array([one["at"] for one in shown["given"]])
    assert points.min() >= 0.06
    assert points.max() <= 0.94
    last = np.array(shown["methods"]["default"]["steps"][-1]["prototypes"])
    truth = np.array([one["truth"] for one in shown["given"]])
    means = np.stack([points[truth == label].mean(axis=0) for label in range(5)])
    np.testing.assert_allclose(last, means, atol=0.03)  # all labels of this task are found


def test_the_order_of_drawings_does_not_give_classes_away(browser):
    shown = found(browser, "task", FIVE)
    for what in ("given", "new"):
        order = shown[f"{what}_order"]
        assert sorted(order) == list(range(25))
        truth = [shown[what][place]["truth"] for place in order]
        assert sum(one == other for one, other in itertools.pairwise(truth)) < 10


def test_the_same_address_is_the_same_task(browser):
    first = found(browser, "task", FIVE)
    playground._solve.cache_clear()
    assert found(browser, "task", FIVE) == first
    assert found(browser, "task", {**FIVE, "seed": 12}) != first


def test_undecided_labels_are_named(browser):
    shown = found(browser, "task", {"classes": 3, "samples": 1, "candidates": 3, "seed": 0})
    assert shown["ceiling"] == pytest.approx(1 / 3)
    assert shown["undecided"] == [["A", "B", "C"]]
    known = found(browser, "task", {"classes": 3, "samples": 1, "candidates": 1, "seed": 0})
    assert (known["ceiling"], known["undecided"]) == (1, [])
    assert known["methods"]["pn"]["labels_right"] == 3


def test_pictures_are_ink_on_transparent_paper(browser):
    shown = found(browser, "task", FIVE)["given"][0]["picture"]
    image = Image.open(io.BytesIO(base64.b64decode(shown.removeprefix("data:image/png;base64,"))))
    solved = playground.solve(playground.Settings(**FIVE))
    drawn = playground.characters().images[solved.given[0]]
    np.testing.assert_array_equal(np.array(image.getchannel("A")), drawn)


# -------------------------------------------------------------------- the pad


def test_characters_drawn_on_the_pad_are_recognized(browser):
    settings = {"classes": 10, "samples": 5, "candidates": 2, "seed": 5}
    solved = playground.solve(playground.Settings(**settings))
    classes = playground.characters().labels[solved.given]
    right = []
    for label in range(10):
        strokes = character(0, SPLITS["test"][int(classes[solved.truth == label][0])]).strokes
        # Small, in a corner of the pad: the server centers and enlarges it.
        given = {**settings, "strokes": (0.3 + 0.2 * strokes).tolist()}
        probabilities = found(browser, "draw", given)["probabilities"]
        assert set(probabilities) == set(RECTIFIERS)
        assert sum(probabilities["default"]) == pytest.approx(1, abs=1e-5)
        right.append(int(np.argmax(probabilities["default"])) == label)
    assert sum(right) >= 8, right


def test_a_new_drawing_can_be_put_on_the_pad(browser):
    answer = found(browser, "draw", {**FIVE, "query": 7})
    solved = playground.solve(playground.Settings(**FIVE))
    drawn = playground.characters()
    model = FsPLLClassifier(embedding="omniglot-conv4")
    model.fit(drawn.images[solved.given], solved.candidates)
    expected = model.predict_proba(drawn.images[solved.new[7:8]])[0]
    np.testing.assert_allclose(answer["probabilities"]["default"], expected, atol=1e-4)
    assert answer["picture"] == found(browser, "task", FIVE)["new"][7]["picture"]


def test_a_drawing_is_centered_and_enlarged_wherever_it_is():
    strokes = np.array([[[0.0, 0.0], [1.0, 0.5]], [[0.2, 1.0], [0.2, 0.0]]])
    large = pad.draw_strokes(strokes.tolist())
    small = pad.draw_strokes((0.1 + 0.2 * strokes).tolist())
    assert np.abs(large.astype(int) - small).max() <= 1
    rows, columns = np.nonzero(large > 100)
    assert (rows.min() + rows.max(), columns.min() + columns.max()) == (27, 27)
    assert 19 <= np.ptp(rows) + 1 <= 22
    # The glyphs' own pen: as much ink per length of the line.
    assert large.sum() / 255 == pytest.approx(1.36 * 19.5 * (1 + 1.25**0.5), rel=0.15)


def test_a_dot_stays_a_dot_and_a_scribble_is_bounded():
    dot = pad.draw_strokes([[[0.5, 0.5]]])
    assert 1 <= (dot > 0).sum() <= 9
    np.testing.assert_array_equal(pad.draw_strokes([[[0.9, 0.1], [0.9, 0.1]]]), dot)
    scribble = pad.draw_strokes(np.random.default_rng(0).random((50, 100, 2)).tolist())
    assert scribble.shape == (28, 28)
    assert scribble[6:22, 6:22].min() > 100


# -------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": 2}, "classes must be a whole number from 3 to 20, not 2"),
        ({"classes": 21}, "classes must be a whole number from 3 to 20, not 21"),
        ({"classes": "5"}, "classes must be a whole number from 3 to 20, not '5'"),
        ({"samples": 0}, "samples must be a whole number from 1 to 10, not 0"),
        ({"samples": 11}, "samples must be a whole number from 1 to 10, not 11"),
        ({"samples": True}, "samples must be a whole number from 1 to 10, not True"),
        ({"candidates": 0}, "candidates must be a whole number from 1 to 5, not 0"),
        ({"candidates": 6}, "candidates must be a whole number from 1 to 5, not 6"),
        ({"candidates": 2.5}, "candidates must be a whole number from 1 to 5, not 2.5"),
        ({"seed": -1}, "seed must be a whole number from 0 to 999999, not -1"),
        ({"seed": None}, "seed must be a whole number from 0 to 999999, not None"),
    ],
)
@pytest.mark.parametrize("what", ["task", "draw"])
def test_settings_outside_the_limits_are_refused(browser, what, change, message):
    answer = post(browser, what, {**FIVE, **change})
    assert (answer.status_code, answer.json()["error"]) == (400, message)


POINT = "a point is [x, y], shares of the pad's side between -10 and 10, not "


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a drawing is a list of strokes, at least one"),
        ({"strokes": []}, "a drawing is a list of strokes, at least one"),
        ({"strokes": {"0": 1}}, "a drawing is a list of strokes, at least one"),
        ({"strokes": [[]]}, "a stroke is a list of points [x, y], at least one"),
        ({"strokes": [7]}, "a stroke is a list of points [x, y], at least one"),
        ({"strokes": [[[0.1]]]}, POINT + "[0.1]"),
        ({"strokes": [[[0.1, "b"]]]}, POINT + "[0.1, 'b']"),
        ({"strokes": [[[0.1, True]]]}, POINT + "[0.1, True]"),
        ({"strokes": [[[0.1, 1e300]]]}, POINT + "[0.1, 1e+300]"),
        (
            {"strokes": [[[0, 0]]] * 101},
            "a drawing has at most 100 strokes and 5,000 points in all; clear the pad and draw it "
            "with fewer",
        ),
        (
            {"strokes": [[[0, 0]] * 5001]},
            "a drawing has at most 100 strokes and 5,000 points in all; clear the pad and draw it "
            "with fewer",
        ),
        ({"query": 25}, "query must be the number of a new drawing, 0 to 24, not 25"),
        ({"query": "1"}, "query must be the number of a new drawing, 0 to 24, not '1'"),
    ],
)
def test_what_is_no_drawing_is_refused(browser, given, message):
    answer = post(browser, "draw", {**FIVE, **given})
    assert (answer.status_code, answer.json()["error"]) == (400, message)


@pytest.mark.parametrize("what", ["task", "draw"])
def test_what_is_no_json_is_refused(browser, what):
    def send(content, kind="application/json"):
        headers = {"content-type": kind}
        return browser.post(f"/token/try/api/{what}", content=content, headers=headers)

    assert "the request is not JSON" in send(b"{classes: 5}").json()["error"]
    assert "must be a JSON object" in send(b"[5, 5, 3, 1]").json()["error"]
    assert "must be JSON" in send(b"{}", "text/plain").json()["error"]
    assert send(b" " * ((1 << 20) + 1)).status_code == 413
    text = '{"classes": 5, "samples": 5, "candidates": 3, "seed": 1, "strokes": [[[NaN, 1]]]}'
    if what == "draw":
        assert POINT + "[nan, 1]" in send(text.encode()).json()["error"]


# -------------------------------------------------------------------- the page


def test_the_page_explains_every_method_and_holds_no_script_of_its_own(browser):
    page = browser.get("/token/try?classes=7&seed=4")
    assert page.status_code == 200
    for method in playground.METHODS:
        assert f'value="{method.key}"' in page.text
        assert method.about.replace("'", "&#39;") in page.text
    assert not re.search(r"\sstyle=|\son\w+=|<script(?![^>]*src)", page.text)
    for name in re.findall(r'/token/static/([\w.]+)"', page.text):
        assert browser.get(f"/token/static/{name}").status_code == 200


def test_every_element_that_the_scripts_look_for_is_on_the_page(browser):
    page = browser.get("/token/try").text
    for name in ("try.js", "pad.js"):
        script = browser.get(f"/token/static/{name}").text
        for one in re.findall(r'find\("([\w-]+)"\)', script):
            assert f'id="{one}"' in page, f"{name} looks for #{one}"
