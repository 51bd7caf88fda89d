"""Features of any size: the same labels and probabilities, in memory and in files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from safetensors import safe_open

from fspll import FsPLLClassifier, modelfile
from fspll._common.errors import CheckpointError, InputError
from fspll.labeling import label
from fspll.rectifiers import base
from fspll.rectifiers.scaling import ScaledModel

N, L, M = 60, 4, 5


@pytest.fixture(scope="module")
def task():
    """Return samples, candidate sets and queries of four classes."""
    rng = np.random.default_rng(0)
    truth, centers = rng.integers(L, size=N), 3 * rng.normal(size=(L, M))
    sets = [{f"c{c}", f"c{(c + rng.integers(1, L)) % L}"} for c in truth]
    queries = centers[rng.integers(L, size=20)] + rng.normal(size=(20, M))
    return centers[truth] + rng.normal(size=(N, M)), sets, queries


SIZES = [(np.float64, exponent) for exponent in (-1000, -664, -300, -40, 40, 300)]
SIZES += [(np.float32, exponent) for exponent in (-110, -76, -40, 40)]


@pytest.mark.parametrize("rectifier", ["adaptive", "evidence"])
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize(("dtype", "exponent"), SIZES)
def test_the_size_of_features_does_not_matter(
    task, monkeypatch, tmp_path, rectifier, many, dtype, exponent
):
    if many:
        monkeypatch.setattr(base, "DENSE_ENTRIES", 10)
    X, sets, queries = task[0].astype(dtype), task[1], task[2].astype(dtype)
    usual = FsPLLClassifier(rectifier=rectifier, device="cpu").fit(X, sets)
    size = dtype(2.0**exponent)
    found = FsPLLClassifier(rectifier=rectifier, device="cpu").fit(X * size, sets)
    slack = 1e-6 if dtype == np.float64 else 1e-4
    expected = usual.predict_proba(queries)
    np.testing.assert_allclose(found.predict_proba(queries * size), expected, atol=slack)
    assert abs(found.confidence_ - usual.confidence_).max() < slack
    np.testing.assert_allclose(found.prototypes_ / size, usual.prototypes_, atol=1e-4)
    found.save(tmp_path / "m.fspll")
    read = FsPLLClassifier.load(tmp_path / "m.fspll")
    assert (read.predict_proba(queries * size) == found.predict_proba(queries * size)).all()
    assert (read.predict(queries * size) == usual.predict(queries)).all()
    assert (read.prototypes_ == found.prototypes_).all()


def test_features_of_ordinary_size_are_not_touched(task, tmp_path):
    X, sets, _ = task
    for size in (1.0, 2.0**-20, 2.0**20):
        clf = FsPLLClassifier(device="cpu").fit(X * size, sets)
        assert not isinstance(clf.model_, ScaledModel)
    assert not isinstance(FsPLLClassifier().fit(0 * X, sets).model_, ScaledModel)
    clf.save(tmp_path / "m.fspll")
    with safe_open(tmp_path / "m.fspll", framework="pt") as file:
        assert int(file.metadata()["format_version"]) < ScaledModel.file_version


def test_the_rule_of_the_paper_keeps_the_units(task):
    """Its probabilities are a softmax of distances: other units are another result."""
    X, sets, queries = task
    found = FsPLLClassifier(rectifier="fspll").fit(X * 1e-200, sets).predict_proba(queries * 1e-200)
    np.testing.assert_allclose(found, 1 / L)


def test_queries_far_away_get_probabilities(task):
    X, sets, queries = task
    clf = FsPLLClassifier().fit(X * 1e-200, sets)
    for size in (1.0, 1e100):
        found = clf.predict_proba(queries * size)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_rounds_and_copies_are_in_the_units_of_the_features(task):
    X, sets, queries = task
    usual = FsPLLClassifier(rectifier="evidence", device="cpu").fit(X, sets, trace=True)
    found = FsPLLClassifier(rectifier="evidence", device="cpu").fit(X * 2.0**-500, sets, trace=True)
    torch.testing.assert_close(found.trace_.prototypes * 2.0**500, usual.trace_.prototypes)
    tiny = queries * 2.0**-500
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (other.predict_proba(tiny) == found.predict_proba(tiny)).all()
    assert found.spread_ * 2.0**1000 == pytest.approx(usual.spread_)
    assert not hasattr(found.model_, "color")


@pytest.mark.parametrize("exponent", [True, "7", 1.5, 10**9, [1]])
def test_a_file_with_impossible_units(task, tmp_path, exponent):
    path = tmp_path / "m.fspll"
    FsPLLClassifier().fit(task[0] * 1e-200, task[1]).save(path)
    tensors, metadata = modelfile.FORMAT.read(path)
    modelfile.FORMAT.write(path, tensors, metadata | {"exponent": exponent})
    with pytest.raises(CheckpointError, match="is damaged: the exponent of its units is "):
        FsPLLClassifier.load(path)


def test_labels_of_tiny_features(task, tmp_path):
    X, sets, _ = task
    usual, tiny = label((X, sets)), label((X * 1e-200, sets))
    np.testing.assert_allclose(tiny.confidence, usual.confidence, atol=1e-6)
    assert tiny.labels.tolist() == usual.labels.tolist()
    tiny.save(tmp_path / "out")
    assert "nan" not in (tmp_path / "out" / "labels.csv").read_text().lower()


@pytest.mark.parametrize("size", [1e-200, 1e100])
def test_what_cannot_be_standardized_is_a_sentence(task, size):
    with pytest.raises(
        InputError, match=r"the largest feature is .*, beyond what an encoder can t"
    ):
        label((task[0] * size, task[1]), standardize=True)
