"""An exported model is the model: every rectifier, every encoder, any number of samples."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn

from fspll import FsPLLClassifier
from fspll._common.errors import InputError, MissingPackageError
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.datasets.glyphs.drawing import load_glyphs
from fspll.embeddings.encoders.head import AdaptedEncoder
from fspll.embeddings.encoders.vectors import standardizer
from fspll.embeddings.networks.whitening import Whitening
from fspll.embeddings.registry import load_embedding
from fspll.export import export_onnx, writing
from fspll.labeling.baseline_model import BaselineModel
from fspll.rectifiers import base, prototypes

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnxscript", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytestmark = pytest.mark.usefixtures("one_thread")


def open_session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def metadata(session):
    return session.get_modelmeta().custom_metadata_map


def compare(clf, path, X, **feed):
    """Run a file as somebody does who knows its metadata alone; return its probabilities."""
    session = open_session(path)
    found, label = session.run(None, feed)
    expected = clf.predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    names = json.loads(metadata(session)["labels"])
    assert [names[one] for one in label] == clf.classes_[expected.argmax(axis=1)].tolist()
    return found


# -------------------------------------------------------------------- heads


@pytest.mark.parametrize("rectifier", ["adaptive", "evidence", "fspll"])
def test_vectors_of_every_rectifier(rectifier, task, tmp_path):
    X, y = task()
    clf = FsPLLClassifier(rectifier=rectifier, reject=0.7).fit(X[:50], y[:50])
    done = export_onnx(clf, tmp_path / "out.onnx")
    assert done.n_checked == 24
    assert done.difference < 1e-5
    assert done.n_bytes == done.path.stat().st_size
    for n in (1, 2, 10):
        compare(clf, done.path, X[-n:], features=X[-n:])
    about = metadata(open_session(done.path))
    assert json.loads(about["reject"]) == 0.7
    assert about["method"] == rectifier
    assert json.loads(about["inputs"])[0] | {"values": None} == {
        "name": "features",
        "type": "float32",
        "shape": ["n", 8],
        "values": None,
    }
    # Nothing of this machine is in the file.
    content = done.path.read_bytes()
    for private in (b".py", str(tmp_path).encode(), b"site-packages"):
        assert private not in content


def test_the_kernel_and_its_tempering_are_in_the_file(task, tmp_path):
    """Held-out samples set a distance beyond which probabilities shrink; class means have none."""
    X, y = task(n=400, dtype=np.float64)
    clf = FsPLLClassifier().fit(X, y)
    assert clf.check_ is not None
    assert torch.isfinite(clf.model_.usual).all()
    far = X[:20] + 4 * np.random.default_rng(1).normal(size=(20, 8))
    by_means = clf.model_.means.predict_proba(torch.from_numpy(far)).numpy()
    export_onnx(clf, tmp_path / "out.onnx", far)
    found = compare(clf, tmp_path / "out.onnx", far, features=far)
    assert np.abs(found - by_means).max() > 0.1


def test_features_of_unusual_size(task, tmp_path):
    X, y = task(dtype=np.float64)
    clf = FsPLLClassifier().fit(X * 1e-30, y)
    export_onnx(clf, tmp_path / "out.onnx")
    compare(clf, tmp_path / "out.onnx", X * 1e-30, features=X * 1e-30)


@pytest.mark.parametrize("rectifier", ["adaptive", "fspll"])
def test_models_of_many_samples(rectifier, task, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "DENSE_ENTRIES", 1000)
    X, y = task(n=200)
    clf = FsPLLClassifier(rectifier=rectifier).fit(X, y)
    assert not isinstance(clf.model_.confidence, torch.Tensor)
    expected = clf.predict_proba(X)
    # The library refuses more than its arrays may hold; whoever runs a file chooses the batch.
    monkeypatch.setattr(prototypes, "MOST_PROBABILITIES", 200)
    export_onnx(clf, tmp_path / "out.onnx", X[:30])
    found, _ = open_session(tmp_path / "out.onnx").run(None, {"features": X})
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("method", ["PRODEN", "Majority-Vote"])
def test_baselines_that_end_in_layers(method, task, tmp_path):
    X, y = task()
    names = [*sorted(set().union(*y)), "nobody's"]
    model = BaselineModel(method, {"n_epochs": 5} if method == "PRODEN" else {})
    model.fit(X, Observed(Candidates.read(y, names)))
    export_onnx(model, tmp_path / "out.onnx")
    found = compare(model, tmp_path / "out.onnx", X, features=X.astype(float))
    assert (found[:, -1] == 0).all()


def test_other_baselines_are_refused(task, tmp_path):
    X, y = task()
    model = BaselineModel("PL-KNN").fit(X, Observed(Candidates.read(y)))
    with pytest.raises(InputError, match="the method 'PL-KNN' cannot be exported; what can are"):
        export_onnx(model, tmp_path / "out.onnx")


# -------------------------------------------------------------------- encoders


@pytest.fixture(scope="module")
def drawings():
    return load_glyphs(6, 6, split="test", size=60)


def test_drawings_of_any_size_and_either_ink(drawings, tmp_path):
    names = list("abcdef")
    y = [{names[c], names[(c + 1 + i % 4) % 6]} for i, c in enumerate(drawings.labels)]
    clf = FsPLLClassifier(embedding="omniglot-conv4").fit(drawings.images, y)
    done = export_onnx(clf, tmp_path / "out.onnx", list(drawings.images))
    assert done.n_checked == 36
    assert done.difference < 5e-5
    for size in (28, 90):
        gray = load_glyphs(6, 2, split="test", size=size).images
        dark = 255 - gray
        found = [
            compare(clf, done.path, one, pixels=np.repeat(one[..., None], 3, axis=3))
            for one in (gray, dark)
        ]
        np.testing.assert_allclose(*found, atol=1e-4)
    about = metadata(open_session(done.path))
    assert {name: json.loads(about[name]) for name in ("resized_to", "channels", "labels")} == {
        "resized_to": 28,
        "channels": 1,
        "labels": names,
    }
    assert about["polarity"] == "bright-ink"
    assert about["before"].startswith("Decode each picture to 8-bit RGB")
    assert open_session(done.path).get_inputs()[0].shape == ["n", "height", "width", 3]


def test_an_adapted_encoder(drawings, tmp_path):
    base_encoder = load_embedding("omniglot-conv4", "cpu")
    head = Whitening(64, 10, power=0.5)
    with torch.no_grad():
        head.matrix.copy_(torch.randn(64, 10, generator=torch.Generator().manual_seed(0)))
    clf = FsPLLClassifier(embedding=AdaptedEncoder(base_encoder, head, device="cpu"))
    clf.fit(drawings.images, [{int(c), int(c + 1) % 6} for c in drawings.labels])
    assert clf.prototypes_.shape == (6, 10)
    assert export_onnx(clf, tmp_path / "out.onnx").difference < 5e-5


def test_vectors_that_are_standardized(task, tmp_path):
    X, y = task()
    X = X * np.logspace(-3, 3, 8, dtype=np.float32) + 100
    clf = FsPLLClassifier(embedding=standardizer(X)).fit(X, y)
    export_onnx(clf, tmp_path / "out.onnx")
    compare(clf, tmp_path / "out.onnx", X, features=X)


def test_encoders_that_are_not_known_are_refused(task, tmp_path):
    X, y = task()
    clf = FsPLLClassifier(embedding=lambda rows: np.asarray(rows)[:, :3]).fit(X, y)
    with pytest.raises(InputError, match=r"the encoder '<lambda>' cannot be exported: it is not"):
        export_onnx(clf, tmp_path / "out.onnx")


# -------------------------------------------------------------------- refusals


class Slanted(nn.Module):
    """Computes something else when it is traced."""

    modality, n_features = "vector", 8

    def forward(self, X):
        return X + 1 if torch.compiler.is_exporting() else X


def test_a_file_that_disagrees_is_not_left(task, tmp_path):
    X, y = task()
    (tmp_path / "out.onnx").write_text("earlier")
    clf = FsPLLClassifier(embedding=Slanted()).fit(X, y)
    complaint = r"the exported model differs by .* from this one on 24 samples, more than 0.0001"
    with pytest.raises(InputError, match=complaint):
        export_onnx(clf, tmp_path / "out.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["out.onnx"]
    assert (tmp_path / "out.onnx").read_text() == "earlier"


def test_what_torch_cannot_trace_is_refused(task, tmp_path):
    class Undecided(nn.Module):
        modality, n_features = "vector", 8

        def forward(self, X):
            return X + 1 if X.sum().item() > 0 else X

    X, y = task()
    clf = FsPLLClassifier(embedding=Undecided()).fit(X, y)
    with pytest.raises(InputError, match="torch cannot trace this model into a graph: "):
        export_onnx(clf, tmp_path / "out.onnx")


def test_no_samples_to_compare_on(task, tmp_path):
    X, y = task()
    with pytest.raises(InputError, match="there are no samples to compare"):
        export_onnx(FsPLLClassifier().fit(X, y), tmp_path / "out.onnx", X[:0])


def test_the_extra_is_named_where_it_is_missing(task, tmp_path, monkeypatch):
    X, y = task()
    monkeypatch.setattr(writing, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"exporting needs .*pip install 'fspll\[onnx\]'"):
        export_onnx(FsPLLClassifier().fit(X, y), tmp_path / "out.onnx")
