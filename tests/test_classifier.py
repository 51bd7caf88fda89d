"""FsPLLClassifier: scikit-learn's own checks, and the rectification behind them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from torch import nn

from fspll import FsPLLClassifier
from fspll._common.errors import CandidateError, CheckpointError, InputError, InputTypeError
from fspll.candidates import Candidates, corrupt
from fspll.datasets.partial_label import load_partial_label_mat
from fspll.embeddings import InputSpec, build_network, load_embedding, save_checkpoint
from fspll.rectifiers import EvidenceRule, FsPLLRule, infer_labels, rectify
from fspll.rectifiers.equations import exact_distances

NAMES = np.array(["ant", "bee", "cat", "dog"])
ESTIMATORS = [
    FsPLLClassifier(),
    FsPLLClassifier(rectifier="evidence"),
    FsPLLClassifier(rectifier="fspll"),
    FsPLLClassifier(rectifier="none"),
]

# What scikit-learn itself leaves out here: it needs an environment variable that must be set before
# scipy is imported (`test_array_api_dispatch` sets it in a process of its own).
LEFT_OUT = {"check_array_api_input"}


def blobs(n_shot=6, scale=1.0, seed=0, dtype=np.float64):
    """Return four classes of two features, far apart, with their names."""
    rng = np.random.default_rng(seed)
    centers = scale * np.array([[0, 0], [8, 0], [0, 8], [8, 8]])
    truth = np.tile(np.arange(4), n_shot)
    X = centers[truth] + scale * rng.normal(size=(len(truth), 2))
    return X.astype(dtype), NAMES[truth]


def ambiguous(labels, r=1, seed=0):
    """Return a list of Python sets."""
    sets = corrupt(labels, 1, r, np.random.default_rng(seed))
    return [set(sets.names(row)) for row in range(len(sets))]


# -------------------------------------------------------------------- scikit-learn's contract


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_no_other_check_is_left_out(estimator):
    with warnings.catch_warnings():
        # It fits estimators on deliberately odd data; the test above has warnings as errors.
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    done = {result["check_name"] for result in results if result["status"] == "passed"}
    other = {result["check_name"]: result for result in results if result["status"] != "passed"}
    assert set(other) <= LEFT_OUT, other
    assert {"check_classifiers_train", "check_readonly_memmap_input"} <= done


def test_array_api_dispatch():
    code = """
from sklearn.utils.estimator_checks import check_estimator
from fspll import FsPLLClassifier
for estimator in (
    FsPLLClassifier(),
    FsPLLClassifier(rectifier="evidence"),
    FsPLLClassifier(rectifier="fspll"),
):
    for result in check_estimator(estimator, on_fail=None, on_skip=None):
        if result["status"] != "passed":
            print(result["check_name"])
"""
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert shown.returncode == 0, shown.stderr
    assert set(shown.stdout.split()) <= LEFT_OUT - {"check_array_api_input"}


def test_parameters_and_clone():
    clf = FsPLLClassifier(
        n_neighbors=3, manifold_weight=0.25, classes=["b", "a"], metric="sqeuclidean"
    )
    assert clf.get_params() == {
        "class_balance": False,
        "classes": ["b", "a"],
        "device": "auto",
        "embedding": None,
        "manifold_weight": 0.25,
        "metric": "sqeuclidean",
        "n_iterations": 10,
        "n_neighbors": 3,
        "rectifier": "adaptive",
        "reject": None,
    }
    copy = clone(clf.fit([[0.0], [1.0]], ["a", "b"]))
    assert copy.get_params() == clf.get_params()
    assert not hasattr(copy, "prototypes_")


def test_in_a_pipeline_with_sets():
    X, truth = blobs(scale=1000.0)
    X[:, 1] /= 1e4
    pipeline = make_pipeline(StandardScaler(), FsPLLClassifier())
    pipeline.fit(X, ambiguous(truth))
    new, new_truth = blobs(scale=1000.0, seed=1)
    new[:, 1] /= 1e4
    assert pipeline.score(new, new_truth) == 1.0
    assert pipeline[-1].labels_.tolist() == truth.tolist()


def test_cross_validation_of_sets():
    X, truth = blobs(n_shot=12)
    sets = ambiguous(truth)

    def inside(estimator, X, y):
        return float(
            np.mean([label in s for label, s in zip(estimator.predict(X), y, strict=True)])
        )

    scores = cross_val_score(FsPLLClassifier(), X, sets, cv=KFold(4), scoring=inside)
    assert scores.tolist() == [1.0] * 4
    predicted = cross_val_predict(FsPLLClassifier(classes=NAMES), X, sets, cv=KFold(4))
    assert predicted.tolist() == truth.tolist()


def test_grid_search():
    X, truth = blobs(n_shot=9)
    grid = {"manifold_weight": [0.0, 0.5], "n_neighbors": np.arange(2, 4), "n_iterations": [3]}
    search = GridSearchCV(FsPLLClassifier(), grid, cv=3).fit(X, truth)
    assert search.best_score_ == 1.0
    assert search.best_estimator_.n_neighbors_ in (2, 3)
    assert search.predict(X[:4]).tolist() == truth[:4].tolist()


def test_pickle_keeps_everything_that_was_fitted(checkpoint, drawings):
    X, sets = drawings
    clf = FsPLLClassifier(embedding=str(checkpoint)).fit(X, sets)
    encoder = clf.load_encoder()
    copy = pickle.loads(pickle.dumps(clf))
    assert clf.load_encoder() is encoder  # pickling takes nothing away
    assert np.array_equal(copy.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(copy.confidence_, clf.confidence_)
    assert copy.candidates_.names(0) == clf.candidates_.names(0)


# -------------------------------------------------------------------- what is computed


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fitted_values_are_those_of_rectify(metric, dtype):
    X, truth = blobs(dtype=dtype)
    sets = Candidates.read(ambiguous(truth, r=2))
    clf = FsPLLClassifier(
        rectifier="fspll", n_neighbors=2, manifold_weight=0.3, n_iterations=4, metric=metric
    )
    clf.fit(X, sets)
    direct = rectify(torch.from_numpy(X), torch.from_numpy(sets.mask), FsPLLRule(2, 0.3, 4, metric))
    confidence = direct.confidence.numpy()
    assert np.array_equal(clf.prototypes_, direct.prototypes.numpy())
    assert np.array_equal(clf.confidence_, confidence / confidence.sum(axis=1, keepdims=True))
    assert np.array_equal(clf.labels_, sets.classes[confidence.argmax(axis=1)])
    assert clf.prototypes_.dtype == clf.confidence_.dtype == dtype
    assert clf.predict_proba(X).dtype == dtype
    assert clf.candidates_ is sets
    assert (clf.confidence_[~sets.mask] == 0).all()


def test_probabilities_are_the_softmax_of_minus_the_distances():
    clf = FsPLLClassifier(rectifier="fspll").fit([[0.0], [4.0]], ["a", "b"])
    assert clf.prototypes_.tolist() == [[0.0], [4.0]]
    a = np.exp(-1) / (np.exp(-1) + np.exp(-3))
    assert clf.predict_proba([[1.0]])[0] == pytest.approx([a, 1 - a])
    squared = FsPLLClassifier(rectifier="fspll", metric="sqeuclidean").fit(
        [[0.0], [4.0]], ["a", "b"]
    )
    a = np.exp(-1) / (np.exp(-1) + np.exp(-9))
    assert squared.predict_proba([[1.0]])[0] == pytest.approx([a, 1 - a])


@pytest.mark.parametrize("balance", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fitted_values_are_those_of_infer_labels(balance, dtype):
    X, truth = blobs(dtype=dtype)
    new, _ = blobs(dtype=dtype, seed=1)
    sets = Candidates.read(ambiguous(truth, r=2))
    clf = FsPLLClassifier(
        rectifier="evidence", n_neighbors=2, n_iterations=4, class_balance=balance
    ).fit(X, sets)
    direct = infer_labels(
        torch.from_numpy(X), torch.from_numpy(sets.mask), EvidenceRule(2, 4, balance)
    )
    assert clf.confidence_ == pytest.approx(direct.confidence.numpy())
    assert np.array_equal(clf.prototypes_, direct.prototypes.numpy())
    expected = direct.predict_proba(torch.from_numpy(new)).numpy()
    assert clf.predict_proba(new) == pytest.approx(expected)
    assert clf.prototypes_.dtype == clf.confidence_.dtype == clf.predict_proba(new).dtype == dtype
    assert np.array_equal(clf.predict(new), sets.classes[expected.argmax(axis=1)])


def test_unlabeled_samples_sharpen_the_classes():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    hits = []
    for _ in range(20):
        truth = np.repeat([0, 1, 2], 2)
        X = centers[truth] + rng.normal(size=(6, 2))
        new_truth = np.repeat([0, 1, 2], 30)
        new = centers[new_truth] + rng.normal(size=(90, 2))
        clf = FsPLLClassifier()
        alone = clf.fit(X, truth).score(new, new_truth)
        together = clf.fit(X, truth, X_unlabeled=new)
        assert together.labels_.shape == (6,)
        assert together.confidence_.shape == (6, 3)
        hits.append((alone, together.score(new, new_truth)))
    alone, together = np.mean(hits, axis=0)
    assert together > alone + 0.01


def test_hundreds_of_samples_in_very_unequal_classes(real_data):
    """Lost: 14 names of 18 to 204 faces, and 2 of none; small classes must not swallow others."""
    lost = load_partial_label_mat(real_data("pll/lost.mat"))
    order = np.random.default_rng(0).permutation(len(lost.X))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    pipeline = make_pipeline(StandardScaler(), FsPLLClassifier())
    pipeline.fit(lost.X[train], lost.candidates.mask[train])
    assert pipeline.score(lost.X[test], lost.true_labels[test]) > 0.55
    assert (pipeline[-1].labels_ == lost.true_labels[train]).mean() > 0.75


def test_a_doubtful_sample_is_rejected():
    X, truth = blobs()
    halfway = (X[truth == "ant"].mean(axis=0) + X[truth == "bee"].mean(axis=0)) / 2
    clf = FsPLLClassifier(reject=0.9).fit(X, truth)
    assert clf.predict([X[0].tolist(), halfway.tolist()]).tolist() == [truth[0], None]
    assert clf.score([X[0].tolist(), halfway.tolist()], [truth[0], "ant"]) == 0.5
    assert clf.score([X[0].tolist(), halfway.tolist()], [truth[0], "ant"], [3.0, 1.0]) == 0.75
    assert None not in clf.set_params(reject=None).predict([halfway])


def test_open_labels_are_shared_between_two_groups():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    clf = FsPLLClassifier().fit(X, [{"a", "b"}] * 4)
    assert clf.confidence_ == pytest.approx(0.5, abs=0.01)
    assert clf.predict_proba([[0.0], [5.0]]) == pytest.approx(0.5, abs=0.01)


def test_prediction_is_the_nearest_prototype():
    X, truth = blobs()
    clf = FsPLLClassifier().fit(X, ambiguous(truth))
    new = blobs(seed=5)[0]
    away = exact_distances(torch.from_numpy(new), torch.from_numpy(clf.prototypes_))
    assert clf.predict(new).tolist() == clf.classes_[away.argmin(dim=1).numpy()].tolist()


def test_without_a_rectifier_all_candidates_have_the_same_weight():
    X = [[0.0], [2.0], [6.0]]
    clf = FsPLLClassifier(rectifier="none").fit(X, [{"a"}, {"a", "b"}, {"b"}])
    assert clf.prototypes_.tolist() == [[1.0], [4.0]]
    assert clf.confidence_.tolist() == [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    assert clf.labels_.tolist() == ["a", "a", "b"]  # of equally credible ones, the first


@pytest.mark.parametrize(
    ("sizes", "k"),
    [([1, 1, 1], 0), ([5, 5], 4), ([2, 3], 1), ([3, 4], 3), ([1, 1, 9], 3), ([7], 6)],
)
def test_auto_neighbors_are_one_less_than_the_average_class(sizes, k):
    y = np.repeat(np.arange(len(sizes)), sizes)
    clf = FsPLLClassifier(classes=[*range(len(sizes)), 99]).fit(y[:, None] * 1.0, y)
    # The class 99, nobody's candidate, is not counted.
    assert clf.n_neighbors_ == k
    assert type(clf.n_neighbors_) is int


def test_neighbors_decide_what_distances_cannot():
    X, truth = blobs(n_shot=8)
    sets = ambiguous(truth, r=3)[:-4] + [{name} for name in truth[-4:]]
    assert FsPLLClassifier().fit(X, sets).labels_.tolist() == truth.tolist()


def test_classes_give_the_order_of_columns():
    X, truth = blobs()
    plain = FsPLLClassifier().fit(X, truth)
    turned = FsPLLClassifier(classes=NAMES[::-1].tolist()).fit(X, truth)
    assert turned.classes_.tolist() == NAMES[::-1].tolist()
    assert turned.prototypes_.tolist() == plain.prototypes_[::-1].tolist()
    assert turned.predict_proba(X) == pytest.approx(plain.predict_proba(X)[:, ::-1])
    assert turned.predict(X).tolist() == plain.predict(X).tolist()


def test_a_class_that_is_nobodys_candidate_is_never_predicted():
    X, truth = blobs()
    clf = FsPLLClassifier(classes=["ant", "aaa", "bee", "cat", "dog"]).fit(X, truth)
    assert clf.has_prototype_.tolist() == [True, False, True, True, True]
    # Its row of zeros stands right where the ants are.
    assert clf.prototypes_[1].tolist() == [0, 0]
    probability = clf.predict_proba(np.vstack([X, [[0.0, 0.0]]]))
    assert (probability[:, 1] == 0).all()
    assert probability.sum(axis=1) == pytest.approx(1)
    assert clf.predict([[0.0, 0.0]]).tolist() == ["ant"]


@pytest.mark.parametrize(
    "y",
    [
        [{"b", "a"}, {"b"}, {"a"}],
        np.array([[1, 1], [0, 1], [1, 0]]),
        sparse.csr_array([[1, 1], [0, 1], [1, 0]]),
        ["b", "b", "a"],
        np.array([1, 1, 0]),
        [True, True, False],
    ],
    ids=["sets", "mask", "sparse", "text", "numbers", "flags"],
)
def test_every_shape_of_y(y):
    clf = FsPLLClassifier().fit([[5.0], [5.1], [0.0]], y)
    names = Candidates.read(y).classes
    assert clf.labels_.tolist() == names[[1, 1, 0]].tolist()
    assert clf.predict([[4.0], [1.0]]).tolist() == names[[1, 0]].tolist()
    assert clf.score([[4.0], [1.0]], names[[1, 0]].tolist()) == 1.0
    assert clf.score([[4.0], [1.0]], names[[1, 1]]) == 0.5


def test_views_of_any_memory_layout():
    X, truth = blobs()
    clf = FsPLLClassifier().fit(X, truth)
    assert FsPLLClassifier().fit(X[::-1], truth[::-1]).prototypes_ == pytest.approx(clf.prototypes_)
    X.setflags(write=False)
    assert np.array_equal(FsPLLClassifier().fit(X, truth).prototypes_, clf.prototypes_)
    clf.prototypes_.setflags(write=False)  # as joblib's workers get them
    clf.has_prototype_.setflags(write=False)
    assert clf.predict(np.asfortranarray(X)).tolist() == truth.tolist()
    assert clf.predict(X.astype(np.float16)).tolist() == truth.tolist()
    assert clf.predict(X.astype(">f8")).tolist() == truth.tolist()


def test_single_samples_do_not_depend_on_their_company():
    X, truth = blobs()
    clf = FsPLLClassifier().fit(X, truth)
    one_by_one = np.vstack([clf.predict_proba(X[i : i + 1]) for i in range(len(X))])
    assert one_by_one == pytest.approx(clf.predict_proba(X), abs=1e-12)
    clf = FsPLLClassifier(rectifier="evidence").fit(X, truth)
    one_by_one = np.vstack([clf.predict_proba(X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(one_by_one, clf.predict_proba(X))


# -------------------------------------------------------------------- embeddings

SPEC = InputSpec(size=16, channels=1, polarity="bright-ink")


@pytest.fixture
def checkpoint(tmp_path):
    network = build_network("conv4", width=8, size=16, seed=0)
    network(torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0)))
    save_checkpoint(tmp_path / "tiny.safetensors", network, input_spec=SPEC)
    return tmp_path / "tiny.safetensors"


@pytest.fixture
def drawings():
    """Return crosses, bars and blocks with faults, and their candidate sets."""
    rng = np.random.default_rng(0)
    shapes = np.zeros((3, 16, 16), dtype=np.uint8)
    shapes[0, 7:9, 2:14] = shapes[0, 2:14, 7:9] = 255
    shapes[1, 2:14, 3:6] = 255
    shapes[2, 9:14, 9:14] = 255
    truth = np.tile(np.arange(3), 5)
    faults = rng.random((15, 16, 16)) < 0.02
    X = np.where(faults, 255 - shapes[truth], shapes[truth]).astype(np.uint8)
    return X, ambiguous(np.array(["cross", "bar", "block"])[truth])


def mean_rows(X):
    """Average the columns: an embedding of my own."""
    return np.asarray(X, dtype=np.float64).mean(axis=2) / 255


class MeanRows(nn.Module):
    def forward(self, images):
        return images.mean(dim=-1).flatten(1)


TRUTH = ["cross", "bar", "block"] * 5


def test_a_checkpoint_by_its_path(checkpoint, drawings):
    X, sets = drawings
    by_text = FsPLLClassifier(embedding=str(checkpoint)).fit(X, sets)
    assert by_text.labels_.tolist() == TRUTH
    assert by_text.prototypes_.shape == (3, 8)
    assert not hasattr(by_text, "n_features_in_")
    by_path = FsPLLClassifier(embedding=checkpoint).fit(X, sets)
    assert np.array_equal(by_path.predict_proba(X), by_text.predict_proba(X))
    features = load_embedding(checkpoint).encode(X)
    vectors = FsPLLClassifier().fit(features, sets)
    assert np.array_equal(vectors.predict_proba(features), by_path.predict_proba(X))


def test_pictures_as_files_images_and_arrays(checkpoint, drawings, tmp_path):
    X, sets = drawings
    paths = []
    for index, picture in enumerate(X):
        paths.append(tmp_path / f"{index}.png")
        Image.fromarray(picture).save(paths[-1])
    clf = FsPLLClassifier(embedding=checkpoint).fit(paths, sets)
    expected = clf.predict_proba(X)
    assert clf.labels_.tolist() == TRUTH
    for same in (
        [str(path) for path in paths],
        np.array([str(path) for path in paths]),
        [Image.open(path) for path in paths],
        X[..., None],
        X[:, None],
        X / 255,
        255 - X,  # dark ink on light paper is recognized
        torch.from_numpy(X),
    ):
        assert clf.predict_proba(same) == pytest.approx(expected, abs=1e-5)


def test_a_function(drawings):
    X, sets = drawings
    clf = FsPLLClassifier(embedding=mean_rows).fit(X, sets)
    assert clf.labels_.tolist() == TRUTH
    features = mean_rows(X).astype(np.float32)
    assert np.array_equal(clf.prototypes_, FsPLLClassifier().fit(features, sets).prototypes_)


def test_a_network_of_the_users_own(drawings):
    X, sets = drawings
    clf = FsPLLClassifier(embedding=MeanRows()).fit(X, sets)
    assert clf.labels_.tolist() == TRUTH
    assert clf.predict(X).tolist() == TRUTH


def test_a_changed_embedding_is_loaded_anew(checkpoint, drawings):
    X, sets = drawings
    clf = FsPLLClassifier(embedding=checkpoint).fit(X, sets)
    clf.set_params(embedding=mean_rows).fit(X, sets)
    assert clf.prototypes_.shape == (3, 16)
    clf.set_params(embedding=checkpoint).fit(X, sets)
    checkpoint.unlink()
    assert clf.predict(X).tolist() == TRUTH  # it was loaded once
    clf.set_params(device="cpu")
    with pytest.raises(CheckpointError, match=r"there is no model file .*tiny\.safetensors"):
        clf.predict(X)


def test_another_embedding_than_the_fitted_one(checkpoint, drawings):
    X, sets = drawings
    clf = FsPLLClassifier(embedding=checkpoint).fit(X, sets).set_params(embedding=mean_rows)
    message = "the embedding gives 16 features, but this classifier was fitted with 8"
    with pytest.raises(InputError, match=message):
        clf.predict(X)


# -------------------------------------------------------------------- refusals

GOOD_X, GOOD_Y = [[0.0, 1.0], [1.0, 0.0]], [{"a"}, {"a", "b"}]

REFUSED = {
    "lengths": (
        {},
        GOOD_X,
        ["a"],
        InputError,
        "Found input variables with inconsistent numbers of samples: X has 2 rows but y has 1",
    ),
    "NaN": (
        {},
        [[0.0, 1.0], [1.0, np.nan]],
        GOOD_Y,
        InputError,
        "Input X contains NaN at row 1, feature 1; every feature must be a known number",
    ),
    "infinity": (
        {},
        [[np.inf], [1.0]],
        GOOD_Y,
        InputError,
        "contains infinity at row 0, feature 0",
    ),
    "too large": (
        {},
        [[1e200], [1.0]],
        GOOD_Y,
        InputError,
        r"feature is 1e\+200, too large to take distances in float64; multiply the features",
    ),
    "too large for float32": (
        {},
        np.array([[-1e19], [1]], dtype=np.float32),
        GOOD_Y,
        InputError,
        r"the largest feature is 1e\+19, too large to take distances in float32",
    ),
    "one axis": ({}, [1.0, 2.0], GOOD_Y, InputError, "Expected 2D array, got 1D array instead"),
    "pictures": ({}, np.ones((2, 4, 4)), GOOD_Y, InputError, "Found array with dim 3"),
    "text": ({}, [["x"], ["y"]], GOOD_Y, InputError, "could not convert string to float: 'x'"),
    "sparse": ({}, sparse.csr_array(GOOD_X), GOOD_Y, InputTypeError, "Sparse data was passed"),
    "paths": (
        {},
        ["a.png", "b.png"],
        GOOD_Y,
        InputTypeError,
        "X holds text, but embedding=None expects feature vectors; name an embedding, e.g. "
        r"FsPLLClassifier\(embedding=",
    ),
    "array of paths": ({}, np.array(["a.png"]), ["a"], InputTypeError, "X holds text, but embedd"),
    "rectifier": (
        {"rectifier": "magic"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "there is no rectifier 'magic'; known are adaptive, evidence, fspll, none",
    ),
    "reject": (
        {"reject": 1.5},
        GOOD_X,
        GOOD_Y,
        InputError,
        "reject is a probability between 0 and 1, or None, not 1.5",
    ),
    "reject as text": (
        {"reject": "half"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "reject is a probability between 0 and 1, or None, not 'half'",
    ),
    "class_balance": (
        {"class_balance": "yes"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "class_balance must be True or False, not 'yes'",
    ),
    "no iterations": (
        {"n_iterations": 0},
        GOOD_X,
        GOOD_Y,
        InputError,
        "n_iterations must be a whole number of 1 or more, not 0",
    ),
    "n_neighbors as text": (
        {"n_neighbors": "many"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "n_neighbors must be a whole number or 'auto', not 'many'",
    ),
    "n_neighbors": (
        {"n_neighbors": -1},
        GOOD_X,
        GOOD_Y,
        InputError,
        "n_neighbors must be a whole number of 0 or more, not -1",
    ),
    "n_iterations": (
        {"n_iterations": 2.5},
        GOOD_X,
        GOOD_Y,
        InputError,
        "n_iterations must be a whole number of 0 or more, not 2.5",
    ),
    "n_iterations unused": (
        {"n_iterations": None, "rectifier": "none"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "n_iterations must be a whole number of 0 or more, not None",
    ),
    "manifold_weight": (
        {"manifold_weight": float("nan")},
        GOOD_X,
        GOOD_Y,
        InputError,
        "manifold_weight must be a number of 0 or more, not nan",
    ),
    "manifold_weight as text": (
        {"manifold_weight": "half"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "manifold_weight must be a number of 0 or more, not 'half'",
    ),
    "metric": (
        {"metric": "cosine"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "metric must be one of euclidean, sqeuclidean, not 'cosine'",
    ),
    "device": ({"device": "abacus"}, GOOD_X, GOOD_Y, InputError, "device must be 'auto', 'cpu',"),
    "classes": (
        {"classes": ["a"]},
        GOOD_X,
        GOOD_Y,
        CandidateError,
        "row 1 has the label 'b', which is not one of the classes 'a'",
    ),
    "embedding": (
        {"embedding": 7},
        GOOD_X,
        GOOD_Y,
        InputTypeError,
        "embedding must be a name, a path, .* with a method .encode., not a int",
    ),
    "unknown embedding": (
        {"embedding": "resnet-9000"},
        GOOD_X,
        GOOD_Y,
        InputError,
        "there is no encoder 'resnet-9000'; known are",
    ),
}


@pytest.mark.parametrize(("parameters", "X", "y", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_fit_refuses(parameters, X, y, kind, message):
    clf = FsPLLClassifier(**parameters)
    with pytest.raises(kind, match=message):
        clf.fit(X, y)
    assert not hasattr(clf, "prototypes_")


def test_a_failed_fit_leaves_the_old_one():
    X, truth = blobs()
    clf = FsPLLClassifier().fit(X, truth)
    before = clf.predict(X).tolist()
    with pytest.raises(CandidateError, match="row 1 of candidates is empty"):
        clf.fit(X, [{"ant"}, set()] + [{"bee"}] * 22)
    assert clf.predict(X).tolist() == before


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_unfitted(method):
    with pytest.raises(NotFittedError, match="This FsPLLClassifier instance is not fitted yet"):
        getattr(FsPLLClassifier(), method)([[1.0]])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        FsPLLClassifier().save("nowhere.fspll")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0, 3.0]], "X has 3 features, but FsPLLClassifier is expecting 2 features"),
        ([[1.0, np.nan]], "Input X contains NaN at row 0, feature 1"),
        (np.empty((0, 2)), r"Found array with 0 sample\(s\)"),
    ],
)
def test_predict_refuses(X, message):
    clf = FsPLLClassifier().fit(GOOD_X, GOOD_Y)
    with pytest.raises(InputError, match=message):
        clf.predict(X)


@pytest.mark.parametrize(
    "y",
    [
        [{"b"}, {"a", "b"}],
        [["b"], ["a", "b"]],
        [("b",), "b"],
        np.array([[0, 1], [1, 1]]),
        sparse.csr_array([[0, 1], [1, 1]]),
        Candidates.read([{"b"}, {"a", "b"}]),
    ],
    ids=["sets", "lists", "tuple", "mask", "sparse", "Candidates"],
)
def test_score_against_candidate_sets_counts_hits(y):
    """The samples are predicted to be a and b; a is no candidate of the first."""
    clf = FsPLLClassifier().fit(GOOD_X, ["a", "b"])
    assert clf.score(GOOD_X, y) == 0.5
    assert clf.score(GOOD_X, y, sample_weight=[1, 3]) == 0.75


def test_score():
    clf = FsPLLClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    X = [[0.1], [1.1], [2.1], [2.2]]
    assert clf.score(X, ["a", "b", "c", "a"]) == 0.75
    assert clf.score(X, ["a", "b", "c", "new"], sample_weight=[1, 1, 1, 7]) == 0.3
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        clf.score(X, ["a", "b"])
    with pytest.raises(InputError, match="Mix of label input types"):
        clf.score(X, [1, 2, 3, 4])
    with pytest.raises(InputTypeError, match="row 1 holds None of type NoneType"):
        clf.score(X, ["a", None, "b", "c"])
    with pytest.raises(InputTypeError, match="cannot be read from NoneType"):
        clf.score(X, None)
    with pytest.raises(InputError, match=r"inconsistent numbers of samples: \[4, 4, 1\]"):
        clf.score(X, ["a", "b", "c", "a"], sample_weight=[[1, 2]])
    # As many classes as samples, given as floats: no warning that this may be a regression.
    numbers = FsPLLClassifier().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    assert numbers.score(X[:3], [0.0, 1.0, 2.0]) == 1.0
