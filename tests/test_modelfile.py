"""A saved classifier comes back to the last bit, and a broken one with one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from scipy import sparse
from torch import nn

from fspll import FsPLLClassifier
from fspll._common import tensorfiles
from fspll._common.errors import CheckpointError
from fspll.candidates import corrupt
from fspll.embeddings import InputSpec, build_network, save_checkpoint
from fspll.rectifiers import base

SPEC = InputSpec(size=16, channels=1, polarity="bright-ink")
FITTED = ("classes_", "labels_", "confidence_", "prototypes_", "has_prototype_")


def data(classes=("a", "b", "c"), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(12) % 3
    X = (rng.normal(size=(12, 5)) + 4 * np.eye(5)[truth]).astype(dtype)
    return X, corrupt(truth, 1, 1, rng), np.array(classes)


def pictures():
    truth = np.arange(12) % 3
    X = np.random.default_rng(0).random((12, 16, 16)) * 0.2
    for row, label in zip(X, truth, strict=True):
        row[4 * label : 4 * label + 5] += 0.7
    return X, [{f"class {c}", f"class {(c + 1) % 3}"} for c in truth[:9]] + [
        {f"class {c}"} for c in truth[9:]
    ]


def save_and_load(clf, path, **given):
    clf.save(path)
    return FsPLLClassifier.load(path, **given)


def assert_same(found, clf, X):
    """Compare what a fitted classifier has and says, bit by bit."""
    for name in FITTED:
        one, other = getattr(found, name), getattr(clf, name)
        assert one.dtype.kind == other.dtype.kind, name
        assert np.array_equal(one, other), name
    assert np.array_equal(found.predict_proba(X), clf.predict_proba(X))
    assert found.predict(X).tolist() == clf.predict(X).tolist()
    assert np.array_equal(found.candidates_.mask, clf.candidates_.mask)
    assert found.n_neighbors_ == clf.n_neighbors_
    for name, value in clf.get_params().items():
        if name not in ("embedding", "classes", "device"):
            assert getattr(found, name) == value, name


# -------------------------------------------------------------------- round trips


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"class_balance": True, "reject": 0.75},
        {"rectifier": "none", "metric": "sqeuclidean"},
        {
            "rectifier": "fspll",
            "n_neighbors": np.int64(2),
            "manifold_weight": np.float32(0.25),
            "n_iterations": 3,
        },
    ],
    ids=["default", "all of evidence", "plain prototypes", "numpy numbers"],
)
def test_vectors(tmp_path, dtype, parameters):
    X, sets, _ = data(dtype=dtype)
    clf = FsPLLClassifier(**parameters).fit(X, sets)
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert_same(found, clf, X)
    assert found.prototypes_.dtype == dtype
    assert found.n_features_in_ == 5
    assert found.classes is None
    with pytest.raises(ValueError, match="X has 2 features, but FsPLLClassifier is expecting 5"):
        found.predict([[1.0, 2.0]])
    # A loaded classifier is a whole one: it can be saved and fitted again.
    found.save(tmp_path / "again.fspll")
    one, other = read(tmp_path / "m.fspll"), read(tmp_path / "again.fspll")
    assert one[1:] == other[1:]
    assert all(torch.equal(one[0][name], other[0][name]) for name in one[0] | other[0])
    assert_same(found.fit(X, sets), clf, X)


@pytest.mark.parametrize(
    "classes",
    [
        ["a", "b", "c"],
        [0, 1, 2],
        [-(2**62), 7, 2**63 - 1],
        [1, 2**63, 2**64 - 1],
        [1, 2, 2**70],
        [0.1, 1.5, 1e300],
        np.array([0.1, 0.2, 0.3], dtype=np.float32),
        np.array([3, 4, 5], dtype=np.int8),
        ["", " ", "\n\t\0x"],
        ["猫" * 10_000, "🦁🐯", "Ünïcödé / \\ \" ' {}"],
    ],
    ids=[
        "text",
        "numbers",
        "long",
        "unsigned",
        "endless",
        "floats",
        "float32",
        "int8",
        "blank",
        "unicode",
    ],
)
def test_classes_of_any_kind(tmp_path, classes):
    X, sets, _ = data()
    names = np.array(classes) if not isinstance(classes, np.ndarray) else classes
    clf = FsPLLClassifier(classes=classes).fit(X, [set(names[row].tolist()) for row in sets.mask])
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert_same(found, clf, X)
    assert found.classes_.tolist() == list(names.tolist())
    assert [type(name) for name in found.classes_.tolist()] == [type(n) for n in names.tolist()]
    assert found.classes == names.tolist()


def test_flags_as_classes(tmp_path):
    clf = FsPLLClassifier().fit([[0.0], [1.0], [1.1]], [{True, False}, True, {True}])
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert_same(found, clf, [[0.2], [2.0]])
    assert found.classes_.dtype == bool
    assert found.classes is None


def test_given_classes_are_kept_for_the_next_fit(tmp_path):
    X, sets, _ = data()
    clf = FsPLLClassifier(classes=["z", "never", "y", "x"])
    clf.fit(X, [{"zyx"[c] for c in np.flatnonzero(row)} for row in sets.mask])
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert_same(found, clf, X)
    assert found.has_prototype_.tolist() == [True, False, True, True]
    assert found.fit(X[:2], ["x", "y"]).classes_.tolist() == ["z", "never", "y", "x"]


def test_names_of_features_are_kept(tmp_path):
    X, sets, _ = data()
    clf = FsPLLClassifier().fit(X, sets)
    clf.feature_names_in_ = np.array(["f0", "f1", "f2", "f3", "größe"], dtype=object)
    clf.save(tmp_path / "m.fspll")
    found = FsPLLClassifier.load(tmp_path / "m.fspll")
    assert found.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3", "größe"]
    assert found.feature_names_in_.dtype == object


@pytest.fixture
def checkpoint(tmp_path):
    network = build_network("conv4", width=4, size=16, seed=0)
    network(torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0)))
    path = tmp_path / "tiny.safetensors"
    save_checkpoint(path, network, input_spec=SPEC, training={"regime": "FsPLL", "tasks": 3})
    return path


def test_the_network_travels_in_the_file(tmp_path, checkpoint):
    X, sets = pictures()
    clf = FsPLLClassifier(embedding=str(checkpoint), device=torch.device("cpu")).fit(X, sets)
    expected = clf.predict_proba(X)
    clf.save(tmp_path / "m.fspll")
    checkpoint.unlink()
    found = FsPLLClassifier.load(tmp_path / "m.fspll")
    assert_same(found, clf, X)
    assert np.array_equal(found.predict_proba(X), expected)
    assert not hasattr(found, "n_features_in_")
    assert found.device == "cpu"
    assert found.embedding.name == "tiny"
    assert found.embedding.input_spec == SPEC
    assert found.embedding.metadata["training"] == {"regime": "FsPLL", "tasks": 3}
    found.save(tmp_path / "again.fspll")
    assert_same(FsPLLClassifier.load(tmp_path / "again.fspll"), clf, X)


def test_a_device_that_is_not_here_does_not_hinder_loading(tmp_path, checkpoint):
    X, sets = pictures()
    clf = FsPLLClassifier(embedding=checkpoint).fit(X, sets)
    expected = clf.predict_proba(X)
    clf.save(tmp_path / "m.fspll")
    old = read(tmp_path / "m.fspll")[1]["parameters"]
    rewrite(tmp_path / "m.fspll", parameters=old | {"device": "cuda:99"})
    found = FsPLLClassifier.load(tmp_path / "m.fspll")
    assert found.device == "cuda:99"
    assert np.array_equal(found.predict_proba(X), expected)


def column_means(X):
    return np.asarray(X, dtype=float).mean(axis=1)


class ColumnMeans(nn.Module):
    def forward(self, images):
        return images.mean(dim=-2).flatten(1)


@pytest.mark.parametrize("own", [column_means, ColumnMeans()], ids=["function", "network"])
def test_an_embedding_of_ones_own_is_passed_again(tmp_path, own):
    X, sets = pictures()
    clf = FsPLLClassifier(embedding=own).fit(X, sets)
    path = tmp_path / "m.fspll"
    clf.save(path)
    name = "column_means" if own is column_means else "ColumnMeans"
    with pytest.raises(CheckpointError) as caught:
        FsPLLClassifier.load(path)
    assert str(caught.value) == (
        f"{path} was saved with an embedding of your own ({name}), which a file cannot hold; give "
        "it again (embedding=...)"
    )
    found = FsPLLClassifier.load(path, embedding=own)
    assert_same(found, clf, X)
    assert found.embedding is own


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(base, "DENSE_ENTRIES", 10)


def assert_same_sparse(found, clf, X):
    """Compare as :func:`assert_same` does what many samples taught, bit by bit."""
    names = ["confidence_", "naming_"] if clf.rectifier == "evidence" else ["confidence_"]
    for name in names:
        one, other = getattr(found, name), getattr(clf, name)
        assert isinstance(one, sparse.csr_array), name
        assert one.shape == other.shape, name
        assert one.dtype == other.dtype, name
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(one, part), getattr(other, part)), (name, part)
    for name in ("classes_", "labels_", "prototypes_", "has_prototype_"):
        assert np.array_equal(getattr(found, name), getattr(clf, name)), name
    assert (found.candidates_.matrix != clf.candidates_.matrix).nnz == 0
    assert np.array_equal(found.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(found.predict(X), clf.predict(X))
    assert found.n_neighbors_ == clf.n_neighbors_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rectifier", ["evidence", "fspll", "none"])
def test_many_samples(tmp_path, everything_is_large, rectifier, dtype):
    X, sets, _ = data(dtype=dtype)
    clf = FsPLLClassifier(rectifier=rectifier, classes=["a", "b", "c", "nobody"])
    clf.fit(X, [{"abc"[c] for c in np.flatnonzero(row)} for row in sets.mask])
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert_same_sparse(found, clf, X)
    assert found.has_prototype_.tolist() == [True, True, True, False]
    found.save(tmp_path / "again.fspll")
    one, other = read(tmp_path / "m.fspll"), read(tmp_path / "again.fspll")
    assert one[1:] == other[1:]
    assert all(torch.equal(one[0][name], other[0][name]) for name in one[0] | other[0])


def test_many_samples_and_classes_take_little_room(tmp_path):
    """A dense confidence would be 560 MB, a dense naming 39 GB."""
    n, n_classes = 1000, 70_000
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 10
    labels = np.stack([truth, rng.integers(10, n_classes, n)], axis=1)
    flags = np.ones(labels.size, dtype=bool)
    rows = np.repeat(np.arange(n), 2)
    sets = sparse.csr_array((flags, (rows, labels.ravel())), shape=(n, n_classes))
    X = np.eye(10)[truth] + 0.1 * rng.normal(size=(n, 10))
    clf = FsPLLClassifier(n_neighbors=3, n_iterations=2).fit(X, sets)
    found = save_and_load(clf, tmp_path / "m.fspll")
    assert (tmp_path / "m.fspll").stat().st_size < 12_000_000
    assert_same_sparse(found, clf, X[:100])
    assert (found.labels_ == truth).mean() > 0.99


def test_files_of_few_samples_stay_readable_to_older_versions(tmp_path, path, monkeypatch):
    assert read(path)[2]["format_version"] == "5"
    X, sets, _ = data()
    FsPLLClassifier(rectifier="evidence").fit(X, sets).save(tmp_path / "few.fspll")
    assert read(tmp_path / "few.fspll")[2]["format_version"] == "1"
    monkeypatch.setattr(base, "DENSE_ENTRIES", 10)
    X, sets, _ = data()
    FsPLLClassifier(rectifier="evidence").fit(X, sets).save(tmp_path / "many.fspll")
    assert read(tmp_path / "many.fspll")[2]["format_version"] == "2"
    # What was saved densely is loaded densely, however large.
    assert isinstance(FsPLLClassifier.load(path).confidence_, np.ndarray)


def test_a_subclass_loads_as_itself(tmp_path):
    class Mine(FsPLLClassifier):
        pass

    X, sets, _ = data()
    FsPLLClassifier().fit(X, sets).save(tmp_path / "m.fspll")
    assert type(Mine.load(tmp_path / "m.fspll")) is Mine


# -------------------------------------------------------------------- broken files


def read(path):
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["metadata"]), file.metadata()


def rewrite(path, tensors=None, header=None, **metadata):
    """Write a file again with some of its tensors or metadata replaced, or removed by ``...``."""
    old_tensors, old_metadata, old_header = read(path)

    def merged(old, new):
        return {name: value for name, value in (old | new).items() if value is not ...}

    text = json.dumps(merged(old_metadata, metadata))
    save_file(
        merged(old_tensors, tensors or {}),
        path,
        metadata=old_header | {"metadata": text} | (header or {}),
    )


@pytest.fixture
def path(tmp_path):
    X, sets, _ = data()
    FsPLLClassifier(classes=["a", "b", "c"]).fit(
        X, [{"abc"[c] for c in np.flatnonzero(row)} for row in sets.mask]
    ).save(tmp_path / "m.fspll")
    return tmp_path / "m.fspll"


def refuse(path, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        FsPLLClassifier.load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def changed(name, change):
    """Return a function that changes one tensor of the file."""

    def apply(tensors):
        return {name: change(tensors[name].clone())}

    return apply


def put(index, value):
    def change(tensor):
        tensor[index] = value
        return tensor

    return change


SETS = "is damaged: its candidate sets do not fit its classes and samples"
SHARE = "is damaged: its confidence is no share of each sample among its candidates"

TENSORS = {
    "no prototypes": (lambda _: {"prototypes": ...}, "is damaged: it lacks 'prototypes'"),
    "no confidence": (lambda _: {"confidence": ...}, "is damaged: it lacks 'confidence'"),
    "no candidates": (lambda _: {"candidates.indptr": ...}, "it lacks 'candidates.indptr'"),
    "no naming": (lambda _: {"naming": ...}, "is damaged: it lacks 'naming'"),
    "naming of another shape": (changed("naming", lambda t: t[:, :2]), "its naming is no share"),
    "naming over one": (changed("naming", lambda t: t * 2), "its naming is no share"),
    "naming negative": (
        changed("naming", lambda t: torch.tensor([[2.0, -1.0, 0.0]] * 3)),
        "its naming is no share",
    ),
    "nothing believed": (
        changed("believed", lambda t: t & False),
        "its classes with support are no choice of its classes",
    ),
    "belief as numbers": (
        changed("believed", lambda t: t.double()),
        "its classes with support are no",
    ),
    "spread of zero": (changed("spread", lambda t: t * 0), "its spread is no positive number"),
    "spread as a row": (changed("spread", lambda t: t[None]), "its spread is no positive number"),
    "index too large": (changed("candidates.indices", put(3, 3)), SETS),
    "index negative": (changed("candidates.indices", put(0, -1)), SETS),
    "index enormous": (changed("candidates.indices", put(0, 2**62)), SETS),
    "indices as floats": (changed("candidates.indices", lambda t: t.double()), SETS),
    "indices in two axes": (changed("candidates.indices", lambda t: t.view(-1, 2)), SETS),
    "an index twice": (
        changed("candidates.indices", put(1, 0)),
        "its candidate sets are not in order|do not fit|no share",
    ),
    "indices out of order": (
        changed("candidates.indices", lambda t: t.view(-1, 2).flip(1).flatten()),
        "is damaged: its candidate sets are not in order",
    ),
    "indptr starts late": (changed("candidates.indptr", put(0, 1)), SETS),
    "indptr ends late": (changed("candidates.indptr", put(-1, 2**40)), SETS),
    "indptr goes back": (changed("candidates.indptr", put(1, 9)), SETS),
    "indptr too short": (changed("candidates.indptr", lambda t: t[:-1]), SETS),
    "indptr of nothing": (changed("candidates.indptr", lambda t: t[:0]), SETS),
    "an empty set": (
        lambda tensors: {
            "candidates.indptr": (tensors["candidates.indptr"] - 2).clamp_min(0),
            "candidates.indices": tensors["candidates.indices"][2:].clone(),
        },
        "is damaged: row 0 of candidates is empty; every sample needs at least one",
    ),
    "confidence of another shape": (
        changed("confidence", lambda t: t[:, :2]),
        r"is damaged: its confidence is torch.float64 of shape \(12, 2\), but there are \(12, 3\)",
    ),
    "confidence of fewer samples": (changed("confidence", lambda t: t[1:]), SETS),
    "confidence in one axis": (changed("confidence", lambda t: t[:, 0]), r"of shape \(12,\)"),
    "confidence of no axes": (
        changed("confidence", lambda t: t[0, 0]),
        r"is damaged: len\(\) of a 0-d tensor|is damaged: its confidence",
    ),
    "confidence of an endless axis": (
        changed("confidence", lambda t: torch.zeros(2**40, 0)),
        SETS,
    ),
    "confidence as bfloat16": (changed("confidence", lambda t: t.bfloat16()), "torch.bfloat16"),
    "confidence with NaN": (changed("confidence", put((2, 1), torch.nan)), SHARE),
    "confidence with infinity": (changed("confidence", put((2, 1), torch.inf)), SHARE),
    "confidence enormous": (changed("confidence", lambda t: t * 1e308), SHARE),
    "confidence negative": (changed("confidence", lambda t: -t), SHARE),
    "confidence off the candidates": (changed("confidence", lambda t: t.flip(1)), SHARE),
    "prototypes of fewer classes": (
        changed("prototypes", lambda t: t[:2]),
        r"is damaged: its prototypes are torch.float64 of shape \(2, 5\), but there are 3 classes",
    ),
    "prototypes without features": (changed("prototypes", lambda t: t[:, :0]), r"\(3, 0\)"),
    "prototypes in three axes": (changed("prototypes", lambda t: t[..., None]), r"\(3, 5, 1\)"),
    "prototypes as numbers": (changed("prototypes", lambda t: t.long()), "are torch.int64 of"),
    "prototypes with NaN": (
        changed("prototypes", put((1, 1), torch.nan)),
        "is damaged: its prototypes hold NaN or infinity",
    ),
    "a class without its prototype": (
        changed("has_prototype", put(1, False)),
        "is damaged: its candidate sets and prototypes are of different classes",
    ),
    "prototype flags as numbers": (changed("has_prototype", lambda t: t.int()), "different class"),
    "prototype flags of fewer": (changed("has_prototype", lambda t: t[:2]), "different classes"),
}


@pytest.mark.parametrize(("change", "message"), TENSORS.values(), ids=TENSORS)
def test_tensors_that_do_not_fit(path, change, message):
    rewrite(path, {n: t if t is ... else t.contiguous() for n, t in change(read(path)[0]).items()})
    refuse(path, message)


@pytest.fixture
def sparse_path(tmp_path, everything_is_large):
    X, sets, _ = data()
    FsPLLClassifier().fit(X, sets).save(tmp_path / "m.fspll")
    return tmp_path / "m.fspll"


PLACES = "is damaged: its confidence does not fit its candidate sets"
NAMING = "is damaged: its naming is no share of each group among the classes"


def shorter(tensors):
    """Return tensors without the last sample, for all but the candidates."""
    return {
        "confidence.indptr": tensors["confidence.indptr"][:-1],
        "confidence.indices": tensors["confidence.indices"][:-2],
        "confidence.data": tensors["confidence.data"][:-2],
    }


SPARSE_TENSORS = {
    "no data": (lambda _: {"confidence.data": ...}, "is damaged: it lacks 'confidence.data'"),
    "no indices": (lambda _: {"confidence.indices": ...}, "it lacks 'confidence.indices'"),
    "no indptr": (lambda _: {"confidence.indptr": ...}, "it lacks 'confidence.indptr'"),
    "no candidates": (lambda _: {"candidates.indptr": ...}, "it lacks 'candidates.indptr'"),
    "no confidence": (
        lambda _: {f"confidence.{part}": ... for part in ("data", "indices", "indptr")},
        "is damaged: it lacks 'confidence'",
    ),
    "no naming": (lambda _: {"naming.data": ...}, "is damaged: it lacks 'naming.data'"),
    "dense naming": (
        lambda _: {"naming": torch.eye(3), "naming.indptr": ...},
        "is damaged: it lacks 'naming.indptr'",
    ),
    "dense confidence too": (
        lambda tensors: {"confidence": torch.zeros(5, 3)},
        SETS,
    ),
    "candidates without samples": (
        lambda _: {"candidates.indptr": torch.zeros(0, dtype=torch.int64)},
        SETS,
    ),
    "candidates of no axes": (
        lambda _: {"candidates.indptr": torch.tensor(13)},
        SETS,
    ),
    "index too large": (changed("confidence.indices", put(3, 3)), PLACES),
    "index negative": (changed("confidence.indices", put(0, -1)), PLACES),
    "index enormous": (changed("confidence.indices", put(0, 2**62)), PLACES),
    "indices as floats": (changed("confidence.indices", lambda t: t.double()), PLACES),
    "indices out of order": (
        changed("confidence.indices", lambda t: t.view(-1, 2).flip(1).flatten()),
        PLACES,
    ),
    "indices of other labels": (
        changed("confidence.indices", lambda t: torch.tensor([0, 1]).repeat(len(t) // 2)),
        PLACES,
    ),
    "indptr goes back": (changed("confidence.indptr", put(1, 9)), PLACES),
    "indptr starts late": (changed("confidence.indptr", put(0, 1)), PLACES),
    "indptr ends late": (changed("confidence.indptr", put(-1, 2**40)), PLACES),
    "other parts": (changed("confidence.indptr", put(1, 1)), PLACES),
    "fewer samples": (shorter, PLACES),
    "fewer data": (changed("confidence.data", lambda t: t[1:]), PLACES),
    "data in two axes": (changed("confidence.data", lambda t: t.view(-1, 2)), PLACES),
    "data as bfloat16": (changed("confidence.data", lambda t: t.bfloat16()), "torch.bfloat16"),
    "data with NaN": (changed("confidence.data", put(2, torch.nan)), SHARE),
    "data with infinity": (changed("confidence.data", put(2, torch.inf)), SHARE),
    "data negative": (changed("confidence.data", lambda t: -t), SHARE),
    "data enormous": (changed("confidence.data", lambda t: t * 1e308), SHARE),
    "data of nothing": (changed("confidence.data", lambda t: t * 0), SHARE),
    "naming index too large": (changed("naming.indices", put(0, 3)), NAMING),
    "naming of fewer groups": (changed("naming.indptr", lambda t: t[:-1]), NAMING),
    "naming over one": (changed("naming.data", lambda t: t * 2), NAMING),
    "naming with NaN": (changed("naming.data", put(0, torch.nan)), NAMING),
    "naming as numbers": (changed("naming.data", lambda t: t.long()), NAMING),
    "naming of two halves in one place": (
        lambda _: {
            "naming.data": torch.tensor([0.5, 0.5, 1.0, 1.0]),
            "naming.indices": torch.tensor([0, 0, 1, 2]),
            "naming.indptr": torch.tensor([0, 2, 3, 4]),
        },
        NAMING,
    ),
    "a group without a name": (
        lambda _: {"naming.indptr": torch.tensor([0, 0, 2, 3])},
        NAMING,
    ),
}


@pytest.mark.parametrize(("change", "message"), SPARSE_TENSORS.values(), ids=SPARSE_TENSORS)
def test_sparse_tensors_that_do_not_fit(sparse_path, change, message):
    tensors = change(read(sparse_path)[0])
    rewrite(sparse_path, {n: t if t is ... else t.contiguous() for n, t in tensors.items()})
    refuse(sparse_path, message)


PARAMETERS = {
    "rectifier": "fspll",
    "n_neighbors": "auto",
    "manifold_weight": 0.5,
    "n_iterations": 10,
    "metric": "euclidean",
    "device": "auto",
}

METADATA = {
    "no classes": ({"classes": ...}, "is damaged: it lacks 'classes'"),
    "no type of classes": ({"classes_dtype": ...}, "is damaged: it lacks 'classes_dtype'"),
    "no parameters": ({"parameters": ...}, "is damaged: it lacks 'parameters'"),
    "no embedding": ({"embedding": ...}, "is damaged: it lacks 'embedding'"),
    "no device": ({"parameters": {}}, "is damaged: it lacks 'device'"),
    "fewer classes": ({"classes": ["a", "b"]}, SETS + "|its confidence"),
    "more classes": ({"classes": list("abcd")}, "its confidence is .* but there are"),
    "a class twice": ({"classes": ["a", "b", "a"]}, "is damaged: classes name 'a' more than once"),
    "classes of nothing": ({"classes": []}, "is damaged: classes is empty"),
    "classes of one text": ({"classes": "abc"}, "is damaged: its classes are no list"),
    "a class of nothing": ({"classes": ["a", "b", None]}, "classes holds None of type NoneType"),
    "a class of lists": ({"classes": [["a"], ["b"], ["c"]]}, "labels are text or numbers"),
    "classes of two kinds": ({"classes": ["a", "b", 1]}, "classes mix text and numbers"),
    "NaN as a class": (
        {"classes": [0.5, 1.5, float("nan")], "classes_dtype": "<f8"},
        "is damaged: classes holds NaN; labels must be known",
    ),
    "a type that fills the memory": (
        {"classes_dtype": "<U400000000"},
        "is damaged: its classes have type '<U400000000'",
    ),
    "another type that fills the memory": ({"classes_dtype": "V400000000"}, "classes have type"),
    "a type of many fields": ({"classes_dtype": "f8,f8"}, "is damaged: its classes have type"),
    "an unknown type": ({"classes_dtype": "color"}, "is damaged: data type 'color' not underst"),
    "a type that is no text": ({"classes_dtype": 8}, "the type of its classes is no name"),
    "text as numbers": ({"classes_dtype": "<i8"}, "is damaged: invalid literal for int"),
    "numbers as text": ({"classes": [1, 2, 3]}, "is damaged: its classes are not of type 'U'"),
    "fractions as numbers": (
        {"classes": [0.5, 1.5, 2.5], "classes_dtype": "<i8"},
        "is damaged: its classes are not of type '<i8'",
    ),
    "numbers too large": ({"classes": [1, 2, 300], "classes_dtype": "|i1"}, "is damaged: .*300"),
    "neighbors": ({"n_neighbors": -2}, "is damaged: its number of neighbors is no count"),
    "neighbors as text": ({"n_neighbors": "4"}, "its number of neighbors is no count"),
    "parameters as a list": ({"parameters": [1]}, "is damaged: its parameters is no JSON object"),
    "an unknown parameter": (
        {"parameters": PARAMETERS | {"color": "red"}},
        r"is damaged: it has an unknown parameter \['color'\]",
    ),
    "embedding among parameters": (
        {"parameters": PARAMETERS | {"embedding": "x"}},
        r"it has an unknown parameter \['embedding'\]",
    ),
    "rectifier": (
        {"parameters": PARAMETERS | {"rectifier": "magic"}},
        "needs the rectifier 'magic', which is not registered here; install the package",
    ),
    "weight": (
        {"parameters": PARAMETERS | {"manifold_weight": float("nan")}},
        "is damaged: manifold_weight must be a number of 0 or more, not nan",
    ),
    "rounds": (
        {"parameters": PARAMETERS | {"n_iterations": [10]}},
        r"is damaged: n_iterations must be a whole number of 0 or more, not \[10\]",
    ),
    "metric": ({"parameters": PARAMETERS | {"metric": 1}}, "is damaged: metric must be one of"),
    "device": ({"parameters": PARAMETERS | {"device": 3}}, "is damaged: its device is no name"),
    "embedding": ({"embedding": 5}, "is damaged: its embedding is no JSON object"),
    "embedding of nothing": ({"embedding": {}}, "is damaged: it lacks 'name'"),
    "embedding without a network": (
        {"embedding": {"name": "x", "network": {}}},
        "does not say which network it holds",
    ),
    "name of the embedding": (
        {"embedding": {"name": 7, "network": None}},
        "is damaged: the name of its embedding is no text",
    ),
    "names of features": ({"feature_names": ["a"]}, "is damaged: the names of its features do not"),
    "names that are no text": ({"feature_names": [1, 2, 3, 4, 5]}, "the names of its features do"),
}


@pytest.mark.parametrize(("change", "message"), METADATA.values(), ids=METADATA)
def test_metadata_that_does_not_fit(path, change, message):
    rewrite(path, **change)
    refuse(path, message)


def test_another_kind_of_file_and_a_newer_one(path, checkpoint):
    refuse(checkpoint, "is a safetensors file, but not a classifier that fspll saved")
    rewrite(path, header={"format_version": "7"})
    refuse(path, r"has format version 7, but this fspll \S+ reads up to 6; install a newer fspll")
    with pytest.raises(CheckpointError, match="but not an embedding that fspll saved"):
        FsPLLClassifier(embedding=path).fit(np.zeros((1, 16, 16)), ["a"])


def test_missing_and_foreign_files(tmp_path):
    refuse(tmp_path / "none.fspll", "there is no model file")
    refuse(tmp_path, "is a folder, not a model file")
    (tmp_path / "text").write_text("hello, I am no classifier at all")
    refuse(tmp_path / "text", "is not a safetensors file")


def test_a_network_that_is_not_whole(tmp_path, checkpoint):
    X, sets = pictures()
    path = tmp_path / "m.fspll"
    FsPLLClassifier(embedding=checkpoint).fit(X, sets).save(path)
    whole = path.read_bytes()
    tensors, metadata, _ = read(path)
    name = next(name for name in tensors if name.startswith("embedding."))
    rewrite(path, {name: ...})
    refuse(path, "is not a whole conv4: 1 tensor is missing")
    path.write_bytes(whole)
    rewrite(path, {name: tensors[name] + 1})
    refuse(path, "is damaged: its weights do not match their checksum")
    path.write_bytes(whole)
    network = metadata["embedding"]["network"] | {"settings": {"width": 10**12}}
    rewrite(path, embedding={"name": "tiny", "network": network})
    refuse(path, "is not a whole conv4|cannot be built")
    path.write_bytes(whole)
    rewrite(path, {"prototypes": tensors["prototypes"].repeat(1, 2)})
    refuse(path, r"is damaged: its basis is no array of numbers of shape \(12, 8\)")
    FsPLLClassifier(embedding=checkpoint, rectifier="evidence").fit(X, sets).save(path)
    rewrite(path, {"prototypes": tensors["prototypes"].repeat(1, 2)})
    refuse(path, "is damaged: its network gives 4 features, but its prototypes have 8")


def test_a_file_cut_anywhere(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 101):
        path.write_bytes(whole[:length])
        refuse(path, "is empty|is damaged or cut short|is not a safetensors file")


def test_an_interrupted_save_leaves_the_old_file(path, monkeypatch):
    X, sets, _ = data(seed=1)
    before = path.read_bytes()
    real = tensorfiles.save_file

    def stop_halfway(contents, beside, metadata):
        real(contents, beside, metadata=metadata)
        beside.write_bytes(beside.read_bytes()[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(tensorfiles, "save_file", stop_halfway)
    with pytest.raises(KeyboardInterrupt):
        FsPLLClassifier().fit(X, sets).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["m.fspll"]
    assert FsPLLClassifier.load(path).classes == ["a", "b", "c"]


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    """Return a file of few samples and one of many."""
    X, sets, _ = data()
    path = tmp_path_factory.mktemp("whole") / "m.fspll"
    FsPLLClassifier().fit(X, sets).save(path)
    few = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "DENSE_ENTRIES", 10)
        FsPLLClassifier().fit(X, sets).save(path)
    return few, path.read_bytes()


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.data())
def test_any_damage_is_an_error_of_ours_or_none(whole_files, tmp_path_factory, data):
    whole_file = data.draw(st.sampled_from(whole_files))
    position = data.draw(st.integers(0, len(whole_file) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=8))
    path = tmp_path_factory.getbasetemp() / "noise.fspll"
    path.write_bytes(whole_file[:position] + noise + whole_file[position + len(noise) :])
    sentence = f"{path} was read"
    try:
        found = FsPLLClassifier.load(path)
    except CheckpointError as error:
        sentence = str(error)
    else:  # noise in the values of the prototypes cannot be told from values
        assert np.isfinite(found.predict_proba(np.zeros((1, found.n_features_in_)))).all()
    assert str(path) in sentence
    assert len(sentence.splitlines()) == 1
