"""FsPLLClassifier: the scikit-learn estimator around the heart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from fspll import modelfile
from fspll.candidates import Candidates
from fspll.devices import choose_device
from fspll.embeddings import Embedding, load_embedding
from fspll.errors import InputError, InputTypeError
from fspll.labels import SET_TYPES, label_column
from fspll.rectification import Settings, class_probabilities, exact_distances, rectify

RECTIFIERS = ("fspll", "none")


class FsPLLClassifier(ClassifierMixin, BaseEstimator):
    """Few-shot partial-label classifier: rectified prototypes in an embedding space.

    Yunfeng Zhao, Guoxian Yu, Lei Liu, Zhongmin Yan, Lizhen Cui and Carlotta Domeniconi, "Few-Shot
    Partial-Label Learning", IJCAI 2021. Samples are embedded; each class gets the mean of the
    samples that have it as a candidate; candidates are then weighed by their distance to those
    prototypes and by what neighbouring samples believe, and the prototypes are computed again.
    New samples take the class of the nearest prototype.

    Parameters
    ----------
    embedding : None, str, path, nn.Module or callable, default=None
        None when X already holds feature vectors; otherwise the name of a packaged model, the path
        of a checkpoint, a network, or a function from samples to an array (n, m).
    rectifier : {"fspll", "none"}, default="fspll"
        "fspll" is the paper's rule, Eq. (1) to (3). "none" weighs all candidates equally, the plain
        prototypes of prototypical networks.
    n_neighbors : int or "auto", default="auto"
        k of Eq. (3). "auto" is one less than the average number of samples a class.
    manifold_weight : float, default=0.5
        lambda of Eq. (3): how much the neighbours count; 0 leaves them out (FsPLL-nM).
    n_iterations : int, default=10
        Rounds of rectification.
    metric : {"euclidean", "sqeuclidean"}, default="euclidean"
        Distance to the prototypes; the paper says Euclidean.
    classes : sequence, optional
        All classes in the order wanted. By default, the sorted labels that occur, or 0 .. l-1 when
        y is a mask.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", "mps".

    Attributes
    ----------
    classes_ : ndarray of shape (l,)
        The classes.
    labels_ : ndarray of shape (n,)
        The training samples, disambiguated: the most credible candidate of each.
    confidence_ : ndarray of shape (n, l)
        How credible each candidate is; rows sum to one, zero off the candidates.
    prototypes_ : ndarray of shape (l, m)
        One a class; zeros for a class that is nobody's candidate.
    has_prototype_ : bool ndarray of shape (l,)
        Classes without a prototype are never predicted.
    candidates_ : Candidates
        What y was read as.
    n_neighbors_ : int
        The k that was used.
    n_features_in_ : int
        Number of features, when ``embedding`` is None.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]]
    >>> y = [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]
    >>> clf = FsPLLClassifier().fit(X, y)
    >>> clf.labels_.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> clf.predict([[0.3], [4.0]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        embedding: Any = None,
        rectifier: str = "fspll",
        n_neighbors: int | str = "auto",
        manifold_weight: float = 0.5,
        n_iterations: int = 10,
        metric: str = "euclidean",
        classes: Any = None,
        device: str = "auto",
    ) -> None:
        self.embedding = embedding
        self.rectifier = rectifier
        self.n_neighbors = n_neighbors
        self.manifold_weight = manifold_weight
        self.n_iterations = n_iterations
        self.metric = metric
        self.classes = classes
        self.device = device

    def fit(self, X: Any, y: Any) -> FsPLLClassifier:
        """Disambiguate the samples and compute the prototypes.

        Parameters
        ----------
        X : array of shape (n, m), or samples that ``embedding`` takes
            Images come as paths, PIL images, or an array (n, H, W), (n, H, W, C) or (n, C, H, W).
        y : mask (n, l), list of sets of labels, or labels of shape (n,)
            Candidate sets; see :meth:`fspll.candidates.Candidates.read`.
        """
        features = self._features(X, fitting=True)
        candidates = Candidates.read(y, self.classes)
        if len(candidates) != len(features):
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: X has "
                f"{len(features)} rows but y has {len(candidates)} candidate sets"
            )
        settings = self._settings(candidates)
        device = choose_device(self.device)
        embeddings = torch.from_numpy(features)
        if device.type == "mps":  # which has no float64
            embeddings = embeddings.float()
        rectified = rectify(
            embeddings.to(device), torch.from_numpy(candidates.mask).to(device), settings
        )
        confidence = rectified.confidence.cpu().numpy()
        self.candidates_ = candidates
        self.classes_ = candidates.classes
        self.n_neighbors_ = int(settings.n_neighbors)
        self.prototypes_ = rectified.prototypes.cpu().numpy()
        self.has_prototype_ = rectified.present.cpu().numpy()
        self.confidence_ = confidence / confidence.sum(axis=1, keepdims=True)
        self.labels_ = self.classes_[self.confidence_.argmax(axis=1)]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the nearest prototype for each sample, of shape (n,)."""
        check_is_fitted(self, "prototypes_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the softmax of minus the distances to the prototypes, Eq. (4), shape (n, l).

        Columns follow ``classes_``; classes without a prototype have probability zero.
        """
        check_is_fitted(self, "prototypes_")
        features = torch.from_numpy(self._features(X, fitting=False))
        prototypes = torch.from_numpy(_writable(self.prototypes_)).to(features.dtype)
        present = torch.from_numpy(_writable(self.has_prototype_))
        distance = exact_distances(features, prototypes, self.metric)
        return class_probabilities(distance, present).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of samples whose *true* label is predicted.

        Parameters
        ----------
        X : samples, as in :meth:`predict`
        y : true labels of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        if _holds_candidate_sets(y):
            raise InputTypeError(
                "score compares with true labels; candidate sets do not say which label is right"
            )
        truth = label_column(np.asarray(y) if hasattr(y, "__array__") else y)
        predicted = self.predict(X)
        with _own_errors():
            return accuracy_score(truth, predicted, sample_weight=sample_weight)

    def save(self, path: Path | str) -> None:
        """Write the fitted classifier, with its network, to one file without any pickle.

        A function given as ``embedding`` cannot be stored; pass it again to :meth:`load`.
        """
        check_is_fitted(self, "prototypes_")
        modelfile.save(self, path)

    @classmethod
    def load(cls, path: Path | str, *, embedding: Any = None) -> FsPLLClassifier:
        """Read a classifier that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        embedding : optional
            Replaces the stored embedding; needed when it was a function of yours.
        """
        return modelfile.load(cls, path, embedding)

    # ---------------------------------------------------------------- inner steps

    def _features(self, X: Any, *, fitting: bool) -> np.ndarray:
        """Return X as feature vectors, a float array of shape (n, m)."""
        if self.embedding is None:
            return _writable(self._checked_vectors(X, fitting=fitting))
        features = self._encoder().encode(X)
        if not fitting and features.shape[1] != self.prototypes_.shape[1]:
            raise InputError(
                f"the embedding gives {features.shape[1]} features, but this classifier was "
                f"fitted with {self.prototypes_.shape[1]}"
            )
        return features

    def _checked_vectors(self, X: Any, *, fitting: bool) -> np.ndarray:
        """Check X in scikit-learn's way, with its messages, and that distances can be taken."""
        _refuse_paths(X)
        with _own_errors():
            X = validate_data(
                self, X, reset=fitting, dtype=[np.float64, np.float32], ensure_all_finite=False
            )
        strange = np.argwhere(~np.isfinite(X))
        if len(strange):
            row, feature = strange[0]
            name = "NaN" if np.isnan(X[row, feature]) else "infinity"
            raise InputError(
                f"Input X contains {name} at row {row}, feature {feature}; every feature must be a "
                f"known number"
            )
        limit = np.sqrt(np.finfo(X.dtype).max / X.shape[1]) / 4
        if np.abs(X).max() > limit:
            raise InputError(
                f"X holds {np.abs(X).max():.3g}, too large to take distances in {X.dtype}; "
                f"scale the features, e.g. with StandardScaler"
            )
        return X

    def _encoder(self) -> Embedding:
        """Load the embedding once; a changed ``embedding`` or ``device`` loads anew."""
        loaded = self.__dict__.get("_loaded_embedding")
        if loaded is None or loaded[0] is not self.embedding or loaded[1] != self.device:
            encoder = load_embedding(self.embedding, self.device)
            loaded = self._loaded_embedding = (self.embedding, self.device, encoder)
        return loaded[2]

    def _settings(self, candidates: Candidates) -> Settings:
        if self.rectifier not in RECTIFIERS:
            raise InputError(
                f"rectifier must be one of {', '.join(RECTIFIERS)}, not {self.rectifier!r}"
            )
        k = self.n_neighbors
        if isinstance(k, str):
            if k != "auto":
                raise InputError(f"n_neighbors must be a whole number or 'auto', not {k!r}")
            present = len(np.unique(candidates.matrix.indices))
            k = max(0, round(len(candidates) / present) - 1)
        settings = Settings(
            n_neighbors=k,
            manifold_weight=self.manifold_weight,
            n_iterations=self.n_iterations,
            metric=self.metric,
        )
        return settings if self.rectifier == "fspll" else replace(settings, n_iterations=0)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # a copy: this object keeps its network
        state.pop("_loaded_embedding", None)  # made again when needed
        return state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.embedding is not None:
            tags.input_tags.two_d_array = False
            tags.input_tags.three_d_array = True
            tags.input_tags.string = True
        return tags


def _writable(array: np.ndarray) -> np.ndarray:
    """Return an array that torch can share: no memory map, no reversed view."""
    return np.require(array, requirements=["C", "W"])


def _holds_candidate_sets(y: Any) -> bool:
    if isinstance(y, Candidates) or sparse.issparse(y):
        return True
    if hasattr(y, "__array__"):
        y = np.asarray(y)
        if y.ndim == 2:
            return y.shape[1] > 1
    return isinstance(y, Iterable) and any(isinstance(label, SET_TYPES) for label in y)


@contextmanager
def _own_errors() -> Iterator[None]:
    """Pass scikit-learn's complaints on, in its own words, as errors of this package."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
    except TypeError as error:
        raise InputTypeError(str(error)) from error


def _refuse_paths(X: Any) -> None:
    if isinstance(X, np.ndarray) and X.ndim == 1:
        X = X[:1].tolist()
    if isinstance(X, list | tuple) and X and isinstance(X[0], str | Path):
        raise InputTypeError(
            "X holds text, but embedding=None expects feature vectors; name an embedding, e.g. "
            "FsPLLClassifier(embedding='model.safetensors')"
        )
