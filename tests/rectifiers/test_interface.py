"""The interface of rectifiers: names, instances, what each can use, files."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.base import clone

from fspll import FsPLLClassifier
from fspll._common import tensorfiles
from fspll._common.errors import CheckpointError, InputError, InputTypeError
from fspll.candidates import Candidates
from fspll.candidates.observed import Observed
from fspll.modelfile import FORMAT
from fspll.rectifiers import (
    RECTIFIERS,
    AdaptiveRule,
    EvidenceRule,
    FsPLLRule,
    PrototypeRectifier,
    base,
    make_rectifier,
)

X = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.2], [5.0, 5.1], [5.2, 5.0], [5.1, 5.2]])
SETS = [{"a", "b"}, {"a"}, {"a", "b"}, {"a", "b"}, {"b"}, {"b", "a"}]


@dataclass(frozen=True)
class Squared(PrototypeRectifier):
    """Weights candidates by the square of their votes, or equally; for these tests."""

    power: float = 2.0

    name = "squared-votes"
    uses_votes = True

    def candidate_weights(self, embeddings, mask, prior):
        weights = mask.to(embeddings.dtype)
        return weights if prior is None else weights * prior.to(embeddings.dtype) ** self.power


@pytest.fixture
def registered():
    """Register the outside rectifier for the length of a test."""
    RECTIFIERS.register("squared-votes", Squared)
    yield
    del RECTIFIERS._things["squared-votes"]


# -------------------------------------------------------------------- names and instances


def test_the_registered_rectifiers_are_what_their_names_say():
    assert RECTIFIERS.names()[:4] == ["adaptive", "evidence", "fspll", "none"]
    for name in ("adaptive", "evidence", "fspll", "none"):
        assert RECTIFIERS.get(name).name == name
        assert isinstance(make_rectifier(name), RECTIFIERS.get(name))


@pytest.mark.parametrize(
    ("by_name", "instance"),
    [
        ({"rectifier": "fspll", "manifold_weight": 0.2, "n_neighbors": 1}, FsPLLRule(1, 0.2)),
        ({"n_neighbors": 2, "n_iterations": 3}, AdaptiveRule(2, 3)),
        ({"rectifier": "evidence", "n_neighbors": 2}, EvidenceRule(2)),
    ],
)
def test_an_instance_is_the_same_as_a_name_with_shortcuts(by_name, instance, tmp_path):
    named = FsPLLClassifier(**by_name).fit(X, SETS)
    given = clone(FsPLLClassifier(rectifier=instance)).fit(X, SETS)
    assert given.rectifier_ == named.rectifier_ == instance
    np.testing.assert_array_equal(given.confidence_, named.confidence_)
    np.testing.assert_array_equal(given.predict_proba(X), named.predict_proba(X))
    given.save(tmp_path / "given.fspll")
    again = FsPLLClassifier.load(tmp_path / "given.fspll")
    assert again.rectifier_ == again.rectifier == instance
    np.testing.assert_array_equal(again.predict_proba(X), named.predict_proba(X))


def test_a_setting_beside_an_instance_is_refused():
    clf = FsPLLClassifier(rectifier=FsPLLRule(), n_neighbors=3)
    with pytest.raises(InputError, match=r"set it there, as in rectifier=FsPLLRule\(n_neighbors="):
        clf.fit(X, SETS)
    with pytest.raises(InputTypeError, match="rectifier is the class FsPLLRule; pass an instance"):
        FsPLLClassifier(rectifier=FsPLLRule).fit(X, SETS)
    with pytest.raises(InputError, match="no rectifier 'evidance'; did you mean 'evidence'"):
        FsPLLClassifier(rectifier="evidance").fit(X, SETS)


# -------------------------------------------------------------------- an outside rectifier


def test_an_outside_rectifier_fits_predicts_and_is_saved(registered, tmp_path):
    votes = np.array([[3, 1], [1, 0], [2, 1], [1, 3], [0, 1], [1, 2]])
    for rectifier in ("squared-votes", Squared(power=2.0)):
        clf = FsPLLClassifier(rectifier=rectifier).fit(X, SETS, votes=votes)
        assert clf.labels_.tolist() == ["a"] * 3 + ["b"] * 3
        np.testing.assert_allclose(clf.confidence_[0], [0.9, 0.1])
        first = X[:3].T @ [9, 1, 4] + X[3:].T @ [1, 0, 1]
        np.testing.assert_allclose(clf.prototypes_[0], first / 16)
        clf.save(tmp_path / "model.fspll")
        again = FsPLLClassifier.load(tmp_path / "model.fspll")
        assert again.rectifier_ == Squared(power=2.0)
        np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    batch = torch.tensor(np.stack([X, X + 1]))
    mask = torch.from_numpy(Candidates.read(SETS).mask).expand(2, -1, -1)
    fitted = Squared().fit(batch, Observed(mask))
    assert fitted.confidence.shape == (2, 6, 2)
    assert fitted.predict_proba(batch).argmax(-1).tolist() == [[0, 0, 0, 1, 1, 1]] * 2


def test_a_file_of_an_unregistered_rectifier_imports_nothing(registered, tmp_path):
    path = tmp_path / "model.fspll"
    FsPLLClassifier(rectifier=Squared()).fit(X, SETS).save(path)
    tensors, metadata = FORMAT.read(path)
    for name in ("somebodys_package", "antigravity:fly", "somebodys_package.rules:Rule"):
        metadata["parameters"]["rectifier"] = {"name": name, "settings": {}}
        tensorfiles.FileFormat("fspll-classifier", 3, "a classifier").write(path, tensors, metadata)
        before = set(sys.modules)
        with pytest.raises(CheckpointError, match="which is not registered here"):
            FsPLLClassifier.load(path)
        assert set(sys.modules) == before
    metadata["parameters"]["rectifier"] = {"name": "squared-votes", "settings": {"speed": 1}}
    tensorfiles.FileFormat("fspll-classifier", 3, "a classifier").write(path, tensors, metadata)
    with pytest.raises(
        CheckpointError, match="its rectifier 'squared-votes' has no setting 'speed"
    ):
        FsPLLClassifier.load(path)


# -------------------------------------------------------------------- what each can use


def test_what_a_rectifier_cannot_use_is_refused(monkeypatch):
    with pytest.raises(InputError, match="X_unlabeled is of no use to the rectifier 'fspll'"):
        FsPLLClassifier(rectifier="fspll").fit(X, SETS, X_unlabeled=X)
    monkeypatch.setattr(base, "DENSE_ENTRIES", 10)
    with pytest.raises(InputError, match="the rectifier 'squared-votes' is for up to 10 entries"):
        FsPLLClassifier(rectifier=Squared()).fit(X, SETS)


@pytest.mark.parametrize(
    ("parameters", "fitted_with"),
    [
        ({"rectifier": "magic"}, {}),
        ({"rectifier": "fspll"}, {"X_unlabeled": X}),
        ({"reject": 2}, {}),
        ({"device": "abacus"}, {}),
        ({}, {"votes": np.ones((2, 2))}),
        ({"classes": ["a"]}, {}),
    ],
)
def test_what_can_be_refused_is_refused_before_samples_are_embedded(parameters, fitted_with):
    def embed(samples):
        raise AssertionError("samples were embedded first")

    with pytest.raises((InputError, InputTypeError)):
        FsPLLClassifier(embedding=embed, **parameters).fit(X, SETS, **fitted_with)
    with pytest.raises(InputError, match="X has 6 rows but y has 5 candidate sets"):
        FsPLLClassifier(embedding=embed).fit(X, SETS[:5])


def test_a_trace_is_kept_when_asked_for():
    clf = FsPLLClassifier().fit(X, SETS)
    assert clf.trace_ is None
    for rectifier, rounds in (("evidence", 11), ("fspll", 11), ("none", 1), (Squared(), 1)):
        traced = FsPLLClassifier(rectifier=rectifier).fit(X, SETS, trace=True)
        assert traced.trace_.confidence.shape == (rounds, 6, 2)
        assert traced.trace_.prototypes.shape == (rounds, 2, 2)
        assert (traced.trace_.groups is not None) == (rectifier == "evidence")
        np.testing.assert_array_equal(traced.prototypes_, traced.trace_.prototypes[-1])
