"""From annotations to labels: samples of every kind, answers, notes, and one class only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from fspll import FsPLLClassifier
from fspll._common.errors import DataError, InputError, InputTypeError
from fspll.candidates import corrupt
from fspll.embeddings import InputSpec, build_network, save_checkpoint
from fspll.labeling import label
from fspll.rectifiers import EqualWeights
from fspll.rectifiers.adaptive import AdaptiveRule

LETTERS = np.repeat(list("abcd"), 5)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 6)) * 4, 5, axis=0) + rng.normal(size=(20, 6)) * 0.3
    return X, corrupt(LETTERS, p=1, r=1, rng=rng)


@pytest.fixture
def drawings(tmp_path):
    """Twenty bright and dark squares in two folders, with the same names in both."""
    rng = np.random.default_rng(1)
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        for i in range(10):
            pixels = np.zeros((20, 20), dtype=np.uint8)
            pixels[5:15, 3 : 8 if folder == "x" else 17] = rng.integers(200, 255)
            Image.fromarray(pixels).save(tmp_path / folder / f"{i}.png")
    return tmp_path


@pytest.fixture
def checkpoint(tmp_path):
    network = build_network("conv4", width=8, size=16, seed=0)
    path = tmp_path / "net.safetensors"
    save_checkpoint(path, network, input_spec=InputSpec(16, 1, "bright-ink"))
    return path


# -------------------------------------------------------------------- vectors


def test_vectors_with_sets(blobs):
    X, sets = blobs
    found = label((X, sets))
    assert found.labels.tolist() == LETTERS.tolist()
    assert found.names[3] == "row 3"
    assert repr(found).startswith("Labeling(20 samples, 4 classes; ")
    direct = FsPLLClassifier(rectifier=AdaptiveRule(held_out=True)).fit(X, sets)
    np.testing.assert_array_equal(found.confidence, direct.confidence_.max(axis=1))
    ordered = np.sort(direct.confidence_, axis=1)
    np.testing.assert_allclose(found.margin, ordered[:, -1] - ordered[:, -2])
    for row in range(20):
        others = set(sets.names(row)) - {found.labels[row]}
        assert {found.runner_up[row]} == others
    assert found.rounds.prototypes.shape == (11, 4, 6)
    np.testing.assert_allclose(found.rounds.prototypes[-1], direct.prototypes_, atol=1e-9)
    assert found.rounds.labels.shape == (11, 20)
    assert found.encoder == "features"
    assert found.review == found.undecided == found.notes == []
    assert str(found).startswith("20 samples, 4 classes; 100.0% of the labels")
    assert found.classifier.predict(X[:2] + 0.1).tolist() == ["a", "a"]


@pytest.mark.parametrize("rectifier", ["fspll", "none"])
def test_other_rectifiers(blobs, rectifier):
    found = label(blobs, rectifier=rectifier)
    direct = FsPLLClassifier(rectifier=rectifier).fit(*blobs)
    assert found.labels.tolist() == direct.labels_.tolist()
    assert len(found.rounds.prototypes) == (11 if rectifier == "fspll" else 1)
    gains = [one.gain for one in found.review]
    assert gains == sorted(gains, reverse=True)
    doubts = 1 - found.confidence[[one.index for one in found.review]]
    np.testing.assert_allclose(gains, doubts)


def test_one_class_is_everybodys(annotate):
    found = label(annotate([["cat"]] * 5, features=np.arange(10.0).reshape(5, 2)))
    assert found.labels.tolist() == ["cat"] * 5
    assert found.confidence.tolist() == [1.0] * 5
    assert found.runner_up == (None,) * 5
    assert found.margin.tolist() == [1.0] * 5
    assert found.review == found.undecided == []


def test_one_sample(annotate):
    found = label(annotate([["cat", "dog"]], features=np.ones((1, 2))))
    assert found.labels[0] in ("cat", "dog")
    assert found.confidence[0] < 0.9


def test_votes_reach_the_classifier(annotate):
    sets = [["a", "a", "b"], ["a", "a", "b"], ["b", "b", "a"], ["b", "b", "a"]]
    X = np.repeat([[0.0], [0.1], [5.0], [5.1]], 8, axis=1)
    found = label(annotate(sets, features=X))
    assert found.labels.tolist() == ["a", "a", "b", "b"]
    assert found.confidence.min() > 0.8


def test_standardized_features(blobs, tmp_path):
    X, sets = blobs
    scale = np.array([1e5, 1, 1, 1, 1, 1])
    noisy = X * scale
    noisy[:, 0] = np.random.default_rng(5).normal(size=20) * 1e5
    (note,) = label((noisy, sets)).notes
    assert "times as much as others" in note
    assert "standardize=True" in note
    found = label((noisy, sets), standardize=True)
    assert found.labels.tolist() == LETTERS.tolist()
    assert found.notes == []
    np.testing.assert_allclose(found.features.std(axis=0), 1, atol=1e-4)
    found.classifier.save(tmp_path / "m.fspll")
    again = FsPLLClassifier.load(tmp_path / "m.fspll")
    np.testing.assert_array_equal(again.predict_proba(noisy), found.classifier.predict_proba(noisy))
    assert (again.predict(noisy) == LETTERS).all()


def test_numbers_stay_numbers():
    found = label((np.array([[0.0], [0.1], [5.0]]), [{1, 2}, {1}, {2}]), answers={"row 0": "2"})
    assert found.labels.tolist() == [2, 1, 2]
    assert found.answers == {"row 0": 2}


# -------------------------------------------------------------------- pictures and texts


def sets_of(n):
    return [["thin", "wide"] if i % 2 else ["thin"] for i in range(n)] + [
        ["thin", "wide"] if i % 2 else ["wide"] for i in range(n)
    ]


def test_pictures_of_the_same_name_in_two_folders(annotate, drawings, checkpoint):
    files = tuple(f"{folder}/{i}.png" for folder in "xy" for i in range(10))
    found = label(
        annotate(sets_of(10), names=files, files=files), encoder=checkpoint, images=drawings
    )
    assert found.labels.tolist() == ["thin"] * 10 + ["wide"] * 10
    assert found.pictures[13] == drawings / "y" / "3.png"
    assert found.classifier.predict([drawings / "y" / "0.png"]).tolist() == ["wide"]
    bare = tuple(f"{i}.png" for i in range(10)) * 2
    data = annotate(sets_of(10), files=bare)
    with pytest.raises(DataError, match=r"20 of 20 .*row 2\) may be any of x/0.png, y/0.png in"):
        label(data, encoder=checkpoint, images=drawings)


def test_pictures_are_found_below_the_folder_and_without_endings(annotate, drawings, checkpoint):
    (drawings / "y").rename(drawings.parent / "elsewhere")
    names = ("3", "/data/upload/1/4.png", "C:\\photos\\5.png", "x/6.png")
    data = annotate([["thin"]] * 4, names=names)
    found = label(data, encoder=checkpoint, images=drawings)
    assert [path.name for path in found.pictures] == ["3.png", "4.png", "5.png", "6.png"]


def test_damaged_and_missing_pictures(annotate, drawings, checkpoint):
    (drawings / "x" / "2.png").write_bytes((drawings / "x" / "2.png").read_bytes()[:50])
    files = tuple(f"{folder}/{i}.png" for folder in "xy" for i in range(10))
    files = (*files[:5], "x/99.png", *files[6:])
    data = annotate(sets_of(10), files=files)
    with pytest.raises(DataError) as raised:
        label(data, encoder=checkpoint, images=drawings)
    told = str(raised.value)
    assert told.startswith("2 of 20 samples cannot be read: ")
    assert "x/2.png (labels.csv, row 4) cannot be decoded" in told
    assert "x/99.png (labels.csv, row 7) is not in" in told
    found = label(
        data,
        encoder=checkpoint,
        images=drawings,
        skip_bad=True,
        answers={"s2": "thin", "s3": "thin"},
    )
    assert len(found) == 18
    assert [one.index for one in found.unreadable] == [2, 5]
    assert "s2" not in found.names
    assert found.notes[0].startswith("2 samples that cannot be read were left out: ")
    assert found.answers == {"s3": "thin"}


def test_a_folder_that_is_none(annotate, tmp_path, checkpoint):
    data = annotate([["a"], ["b"]])
    with pytest.raises(DataError, match="is not a folder of pictures"):
        label(data, encoder=checkpoint, images=tmp_path / "none")
    with pytest.raises(DataError, match="say where the pictures are"):
        label(data, encoder=checkpoint)


def test_pictures_in_memory(drawings, checkpoint):
    paths = [drawings / folder / f"{i}.png" for folder in "xy" for i in range(10)]
    sets = [set(labels) for labels in sets_of(10)]
    expected = label((paths, sets), encoder=checkpoint)
    assert expected.names[0] == str(paths[0])
    assert expected.pictures == tuple(paths)
    opened = [Image.open(path) for path in paths]
    arrays = np.stack([np.asarray(picture) for picture in opened])
    for pictures in (opened, arrays, torch.from_numpy(arrays)):
        found = label((pictures, sets), encoder=checkpoint)
        np.testing.assert_allclose(found.features, expected.features, atol=1e-5)
        assert found.labels.tolist() == expected.labels.tolist()
        assert found.names[0] == "row 0"


def test_texts_go_to_any_function(annotate):
    data = annotate([["a", "b"], ["a"], ["b"], ["b"]], texts=("x", "xx", "yyyy", "yyyyy"))
    found = label(data, encoder=lambda texts: [[len(text)] for text in texts])
    assert found.labels.tolist() == ["a", "a", "b", "b"]
    assert found.texts == data.texts
    found = label(
        (["x", "xx", "yyyy"], [{"a"}, {"a", "b"}, {"b"}]),
        encoder=lambda texts: [[len(text)] for text in texts],
    )
    assert found.labels.tolist() == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ({}, {}, "there are only names and labels of the samples; say where"),
        ({"files": ("a", "b")}, {}, "say what turns the samples into features"),
        ({}, {"encoder": "features"}, "needs vectors, and there are none; .*features=FILE"),
        ({}, {"encoder": lambda X: X, "images": "none"}, "none is not a folder of pictures"),
        ({"features": np.ones((2, 2))}, {"encoder": "nothing"}, "there is no encoder 'nothing'"),
        (
            {"texts": ("a", "b")},
            {"encoder": "omniglot-conv4", "standardize": True},
            "standardize=True is for encoder='features'",
        ),
    ],
)
def test_what_cannot_be_encoded(annotate, parts, options, message):
    with pytest.raises(InputError, match=message):
        label(annotate([["a"], ["b"]], **parts), **options)


class Refusing(EqualWeights):
    """A rectifier of one's own that cannot take these sets."""

    def check(self, observed):
        raise InputError(f"{observed.n_classes} classes are too few")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rectifier": Refusing()}, "2 classes are too few"),
        ({"rectifier": "evidense"}, "there is no rectifier 'evidense'; did you mean 'evidence'?"),
        ({"class_balance": "yes"}, "class_balance"),
        ({"answers": {"s9": "a"}}, "samples that do not exist: 's9'"),
        ({"answers": {"s0": None}}, "the answer for 's0' is None; labels are text or numbers"),
        ({"device": "gpu"}, "device must be 'auto', 'cpu'"),
    ],
)
def test_what_can_be_refused_is_refused_before_samples_are_encoded(annotate, options, message):
    def encode(texts):
        raise AssertionError("samples were encoded")

    data = annotate([["a"], ["a", "b"], ["b"]], texts=("x", "xx", "yyyyy"))
    with pytest.raises((ValueError, TypeError), match=message):
        label(data, encoder=encode, **options)


def test_what_is_no_data():
    with pytest.raises(InputTypeError, match="label takes Annotations"):
        label("labels.csv")


# -------------------------------------------------------------------- answers


def test_an_answer_settles_its_sample_and_its_group(annotate):
    X = np.repeat([[0.0], [9.0]], 6, axis=0) + np.linspace(0, 0.5, 12)[:, None]
    data = annotate([["cat", "lynx"]] * 12, features=X)
    before = label(data)
    assert before.expected_accuracy < 0.6
    after = label(data, answers={"s0": "lynx"})
    assert after.labels.tolist() == ["lynx"] * 6 + ["cat"] * 6
    assert after.expected_accuracy > 0.95
    assert after.candidates.names(0) == ["lynx"]
    assert after.answered.tolist() == [True] + [False] * 11
    assert after.notes == []


def test_the_person_knows_better(annotate, blobs):
    X, sets = blobs
    data = annotate([sets.names(i) for i in range(20)], features=X)
    row = next(i for i in range(2, 20) if "d" not in sets.names(i))
    found = label(data, answers={f"s{row}": "d", "s1": "new"})
    assert found.labels[[row, 1]].tolist() == ["d", "new"]
    assert found.classes.tolist() == ["a", "b", "c", "d", "new"]
    assert found.notes == [
        f"2 answers not among the candidates (taken all the same): s{row}, s1",
        "labels that only answers have: new",
    ]


def test_answers_for_nobody(annotate):
    data = annotate([["a"], ["b"]], features=np.eye(2))
    with pytest.raises(InputError, match=r"that do not exist: 'x'; .* e.g. 's0'"):
        label(data, answers={"x": "a"})


def test_a_label_that_nobody_may_have_any_more_is_dropped(annotate):
    data = annotate([["a", "c"], ["b"], ["a"]], features=np.array([[0.0], [5.0], [0.1]]))
    found = label(data, answers={"s0": "a"})
    assert found.classes.tolist() == ["a", "b"]


# -------------------------------------------------------------------- many samples


@pytest.mark.parametrize("rectifier", ["adaptive", "evidence"])
def test_many_samples_are_labeled_without_rounds(monkeypatch, blobs, annotate, rectifier):
    """What is large is set low, so that the sparse road is taken by few."""
    monkeypatch.setattr("fspll.rectifiers.base.DENSE_ENTRIES", 10)
    X, sets = blobs
    names = [sets.names(row) for row in range(20)]
    names[0] = [*names[0], names[0][0]]
    found = label(annotate(names, features=X), answers={"s3": "a"}, rectifier=rectifier)
    assert (found.labels == LETTERS).mean() > 0.9
    assert found.rounds is None
    assert found.notes == []
    assert found.answers == {"s3": "a"}
    gains = [one.gain for one in found.review]
    assert gains == sorted(gains, reverse=True)
