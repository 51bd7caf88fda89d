"""FsPLLClassifier: the scikit-learn estimator around the heart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fspll import modelfile
from fspll._common.arguments import is_number
from fspll._common.devices import choose_device
from fspll._common.errors import InputError, InputTypeError
from fspll.candidates import Candidates
from fspll.candidates.estimators import (
    check_lengths,
    checked_vectors,
    read_target,
    score_predictions,
)
from fspll.embeddings import Embedding, load_embedding
from fspll.rectifiers.evidence import ClassModel, EvidenceSettings, sharpness_for, weigh_evidence
from fspll.rectifiers.paper import Settings, class_probabilities, exact_distances, rectify
from fspll.rectifiers.sparse import DENSE_ENTRIES, MOST_NEIGHBORS, best_labels, fit_large, is_large
from fspll.rectifiers.sparse.prediction import Places, all_probabilities, most_probable

RECTIFIERS = ("evidence", "fspll", "none")


class FsPLLClassifier(ClassifierMixin, BaseEstimator):
    """Few-shot partial-label classifier: rectified prototypes in an embedding space.

    Samples are embedded; each class gets a prototype, the mean of the samples weighted by how
    credible it is that they are of this class; how credible a candidate is follows from the
    distances to the prototypes and from neighboring samples, and the two take turns. New samples
    get the class whose prototype explains them best.

    With n samples and l classes, n x n and n x l up to 2**26 are solved densely, as few-shot tasks
    are. Beyond that (more than 8,192 samples) time and memory grow with the number of candidates
    only, on the processor; pass y as a sparse mask. See :mod:`fspll.rectifiers.sparse` for what
    differs.

    ``rectifier="fspll"`` is the rule of Yunfeng Zhao, Guoxian Yu, Lei Liu, Zhongmin Yan, Lizhen Cui
    and Carlotta Domeniconi, "Few-Shot Partial-Label Learning", IJCAI 2021. The default goes
    further: it is more often right, and its probabilities can be taken at their word.

    Parameters
    ----------
    embedding : None, str, path, nn.Module or callable, default=None
        None when X already holds feature vectors; otherwise the name of a packaged model, the path
        of a checkpoint, a network, or a function from samples to an array (n, m).
    rectifier : {"evidence", "fspll", "none"}, default="evidence"
        How candidates are weighted. "evidence" infers them in a model of the task, see
        :mod:`fspll.rectifiers.evidence`. "fspll" is the paper's rule, Eq. (1) to (3). "none" weighs
        all candidates equally, the plain prototypes of prototypical networks.
    n_neighbors : int or "auto", default="auto"
        How many neighbors a sample listens to, k of Eq. (3). "auto" is one less than the average
        number of samples a class; with many samples, 10 at most.
    n_iterations : int, default=10
        Rounds of rectification.
    class_balance : bool, default=False
        Say that all classes are about equally frequent among the training samples. For
        "evidence" only.
    reject : float, optional
        ``predict`` abstains (None) where the best class is less probable than this.
    manifold_weight : float, default=0.5
        For "fspll" only: lambda of Eq. (3), how much the neighbors count; 0 leaves them out
        (FsPLL-nM).
    metric : {"euclidean", "sqeuclidean"}, default="euclidean"
        For "fspll" and "none" only: distance to the prototypes; the paper says Euclidean. The
        result of "evidence" does not depend on the scale of the features.
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
    confidence_ : ndarray of shape (n, l), or scipy.sparse.csr_array
        How credible each candidate is; rows sum to one, zero off the candidates. With many samples
        it is sparse and stores the candidates only.
    prototypes_ : ndarray of shape (l, m)
        One a class; zeros for a class that is nobody's candidate.
    has_prototype_ : bool ndarray of shape (l,)
        Classes without a prototype are never predicted.
    naming_ : ndarray of shape (l, l)
        For "evidence" only: probability that the samples around prototype g carry label c. The
        identity where the candidate sets decide everything, and, as a sparse array, with many
        samples.
    believed_ : bool ndarray of shape (l,)
        For "evidence" only: groups that at least half a sample is believed to belong to; others
        are never predicted.
    spread_ : float
        For "evidence" only: mean squared distance of a sample to its class.
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
        rectifier: str = "evidence",
        n_neighbors: int | str = "auto",
        n_iterations: int = 10,
        class_balance: bool = False,
        reject: float | None = None,
        manifold_weight: float = 0.5,
        metric: str = "euclidean",
        classes: Any = None,
        device: str = "auto",
    ) -> None:
        self.embedding = embedding
        self.rectifier = rectifier
        self.n_neighbors = n_neighbors
        self.n_iterations = n_iterations
        self.class_balance = class_balance
        self.reject = reject
        self.manifold_weight = manifold_weight
        self.metric = metric
        self.classes = classes
        self.device = device

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None, votes: Any = None) -> FsPLLClassifier:
        """Disambiguate the samples and compute the prototypes.

        Parameters
        ----------
        X : array of shape (n, m), or samples that ``embedding`` takes
            Images come as paths, PIL images, or an array (n, H, W), (n, H, W, C) or (n, C, H, W).
        y : mask (n, l), list of sets of labels, or labels of shape (n,)
            Candidate sets; see :meth:`fspll.candidates.Candidates.read`.
        X_unlabeled : samples like X, optional
            Further samples of the same classes without any label, such as those to be predicted:
            they sharpen the classes. For "evidence" only.
        votes : array or sparse array of shape (n, l), optional
            How many annotators gave each label to each sample: a candidate is as likely at first
            as its share of the votes. Columns follow the classes. For "evidence" only.
        """
        features = self._features(X, fitting=True)
        candidates = Candidates.read(y, self.classes)
        check_lengths(len(features), candidates)
        if is_large(len(features), candidates.n_classes):
            for name, given in (("X_unlabeled", X_unlabeled), ("votes", votes)):
                _refuse_with_many(name, given, candidates)
            return self._fit_large(features, candidates)
        mask = candidates.mask
        if X_unlabeled is not None:
            features, mask = self._with_unlabeled(features, mask, X_unlabeled)
        settings = self._settings(candidates, len(features))
        device = choose_device(self.device)
        embeddings = torch.from_numpy(features)
        if device.type == "mps":  # which has no float64
            embeddings = embeddings.float()
        embeddings, sets = embeddings.to(device), torch.from_numpy(mask).to(device)
        if isinstance(settings, EvidenceSettings):
            prior = self._prior(votes, candidates, len(features))
            confidence, model = weigh_evidence(embeddings, sets, settings, prior)
            prototypes, present = model.prototypes, model.present
            self.spread_ = float(model.spread)
            self.naming_ = model.naming.cpu().numpy()
            self.believed_ = model.believed.cpu().numpy()
        else:
            prototypes, present, confidence, _ = rectify(embeddings, sets, settings)
        share = confidence[: len(candidates)].cpu().numpy()
        self.candidates_ = candidates
        self.classes_ = candidates.classes
        self.n_neighbors_ = int(settings.n_neighbors)
        self.prototypes_ = prototypes.cpu().numpy()
        self.has_prototype_ = present.cpu().numpy()
        self.confidence_ = share / share.sum(axis=1, keepdims=True)
        self.labels_ = self.classes_[self.confidence_.argmax(axis=1)]
        return self

    def _fit_large(self, features: np.ndarray, candidates: Candidates) -> FsPLLClassifier:
        """Fit without any array of n x n or n x l."""
        settings = self._settings(candidates, len(features))
        fitted = fit_large(features, candidates, settings)
        self.candidates_ = candidates
        self.classes_ = candidates.classes
        self.n_neighbors_ = int(settings.n_neighbors)
        self.prototypes_, self.has_prototype_ = fitted.prototypes, fitted.present
        self.confidence_ = fitted.confidence
        self.labels_ = self.classes_[best_labels(fitted.confidence)]
        if fitted.spread is not None and fitted.believed is not None:  # the default rule
            self.spread_, self.believed_ = fitted.spread, fitted.believed
            self.naming_ = sparse.eye_array(candidates.n_classes, format="csr")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each sample, of shape (n,).

        With ``reject``, an object array that holds None where the classifier abstains.
        """
        check_is_fitted(self, "prototypes_")
        self._check_reject()
        if sparse.issparse(self.confidence_):
            best, probability = most_probable(self._features(X, fitting=False), self._places())
        else:
            probabilities = self.predict_proba(X)
            best, probability = probabilities.argmax(axis=1), probabilities.max(axis=1)
        labels = self.classes_[best]
        if self.reject is None:
            return labels
        labels = labels.astype(object)
        labels[probability < self.reject] = None
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class for each sample, of shape (n, l).

        Columns follow ``classes_``; classes without a prototype have probability zero. For the
        rectifiers "fspll" and "none" it is the softmax of minus the distances, Eq. (4). A result of
        more than 2**26 entries is refused when the classifier was fitted with many samples.
        """
        check_is_fitted(self, "prototypes_")
        if sparse.issparse(self.confidence_):
            return self._probabilities_of_many_classes(self._features(X, fitting=False))
        features = torch.from_numpy(self._features(X, fitting=False))

        def tensor(array: Any) -> Tensor:
            return torch.from_numpy(_writable(array)).to(features.dtype)

        prototypes = tensor(self.prototypes_)
        present = torch.from_numpy(_writable(self.has_prototype_))
        if self.rectifier == "evidence":
            model = ClassModel(
                prototypes,
                present,
                torch.tensor(self.spread_, dtype=features.dtype),
                tensor(self.naming_),
                torch.from_numpy(_writable(self.believed_)),
            )
            return model.probabilities(features).numpy()
        distance = exact_distances(features, prototypes, self.metric)
        return class_probabilities(distance, present).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of samples whose *true* label is predicted; abstaining is no hit.

        Where only candidate sets are known, as in ``cross_val_score`` on partial labels, it is the
        share of *candidate hits*: samples whose predicted label is among their candidates. For sets
        of one the two are equal.

        Parameters
        ----------
        X : samples, as in :meth:`predict`
        y : true labels of shape (n,), or candidate sets as in :meth:`fit`
        sample_weight : array of shape (n,), optional
        """
        check_is_fitted(self, "prototypes_")
        target = read_target(y, self.classes_)
        return score_predictions(target, self.predict(X), sample_weight)

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

    def _features(self, X: Any, *, fitting: bool, width: int | None = None) -> np.ndarray:
        """Return X as feature vectors, a float array of shape (n, m)."""
        if self.embedding is None:
            return _writable(self._checked_vectors(X, fitting=fitting))
        features = self._encoder().encode(X)
        if fitting:
            return features
        width = self.prototypes_.shape[1] if width is None else width
        if features.shape[1] != width:
            raise InputError(
                f"the embedding gives {features.shape[1]} features, but this classifier was "
                f"fitted with {width}"
            )
        return features

    def _checked_vectors(self, X: Any, *, fitting: bool) -> np.ndarray:
        """Check X in scikit-learn's way, with its messages, and that distances can be taken."""
        _refuse_paths(X)
        return checked_vectors(self, X, fitting=fitting)

    def _encoder(self) -> Embedding:
        """Load the embedding once; a changed ``embedding`` or ``device`` loads anew."""
        loaded = self.__dict__.get("_loaded_embedding")
        if loaded is None or loaded[0] is not self.embedding or loaded[1] != self.device:
            encoder = load_embedding(self.embedding, self.device)
            loaded = self._loaded_embedding = (self.embedding, self.device, encoder)
        return loaded[2]

    def _places(self) -> Places:
        """Where the classes of many samples are, and how far a class reaches."""
        if self.rectifier != "evidence":
            return Places(self.prototypes_, self.has_prototype_, 1.0, self.metric)
        scale = sharpness_for(self.prototypes_.shape[1]) / self.spread_
        return Places(self.prototypes_, self.believed_, scale, "sqeuclidean")

    def _probabilities_of_many_classes(self, features: np.ndarray) -> np.ndarray:
        if len(features) * len(self.classes_) > DENSE_ENTRIES:
            raise InputError(
                f"probabilities of {len(features)} samples x {len(self.classes_)} classes are more "
                f"than {DENSE_ENTRIES} numbers; ask for fewer samples at a time, or use predict"
            )
        return all_probabilities(features, self._places())

    def _with_unlabeled(
        self, features: np.ndarray, mask: np.ndarray, X_unlabeled: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Append samples whose candidates are all classes that occur."""
        if self.rectifier != "evidence":
            raise InputError(
                f"X_unlabeled is of use to rectifier='evidence' only, not to {self.rectifier!r}"
            )
        more = self._features(X_unlabeled, fitting=False, width=features.shape[1])
        open_sets = np.broadcast_to(mask.any(axis=0), (len(more), mask.shape[1]))
        return (
            np.concatenate([features, more.astype(features.dtype, copy=False)]),
            np.concatenate([mask, open_sets]),
        )

    def _prior(self, votes: Any, candidates: Candidates, n_rows: int) -> Tensor | None:
        """Return votes as a tensor, with even ones for unlabeled samples; None if all are even."""
        if votes is None:
            return None
        matrix = candidates.matrix
        votes = votes if hasattr(votes, "toarray") else np.asarray(votes)
        if votes.shape != matrix.shape:
            raise InputError(f"votes have shape {votes.shape}, but the candidates {matrix.shape}")
        votes = sparse.csr_array(votes, dtype=float)
        rows = np.repeat(np.arange(len(candidates)), candidates.sizes)
        inside = np.asarray(votes[rows, matrix.indices]).ravel()
        if not (np.isfinite(inside).all() and (inside > 0).all()):
            raise InputError("votes must be a positive number for every candidate of a sample")
        if np.array_equal(inside, inside[matrix.indptr[rows]]):
            return None  # they tell nothing: leave every digit as it is without them
        prior = np.ones((n_rows, matrix.shape[1]))
        prior[rows, matrix.indices] = inside
        return torch.from_numpy(prior)

    def _settings(self, candidates: Candidates, n_samples: int) -> Settings | EvidenceSettings:
        if self.rectifier not in RECTIFIERS:
            raise InputError(
                f"rectifier must be one of {', '.join(RECTIFIERS)}, not {self.rectifier!r}"
            )
        self._check_reject()
        k = self.n_neighbors
        if isinstance(k, str):
            if k != "auto":
                raise InputError(f"n_neighbors must be a whole number or 'auto', not {k!r}")
            present = len(np.unique(candidates.matrix.indices))
            k = max(0, round(n_samples / present) - 1)
            if is_large(n_samples, candidates.n_classes):
                k = min(k, MOST_NEIGHBORS)
        settings = Settings(
            n_neighbors=k,
            manifold_weight=self.manifold_weight,
            n_iterations=self.n_iterations,
            metric=self.metric,
        )
        if not isinstance(self.class_balance, bool | np.bool_):
            raise InputError(f"class_balance must be True or False, not {self.class_balance!r}")
        if self.rectifier == "evidence":
            return EvidenceSettings(k, self.n_iterations, bool(self.class_balance))
        return settings if self.rectifier == "fspll" else replace(settings, n_iterations=0)

    def _check_reject(self) -> None:
        if self.reject is not None and not (is_number(self.reject) and 0 <= self.reject <= 1):
            raise InputError(
                f"reject is a probability between 0 and 1, or None, not {self.reject!r}"
            )

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


def _refuse_with_many(name: str, given: Any, candidates: Candidates) -> None:
    if given is not None:
        raise InputError(
            f"{name} is for up to {DENSE_ENTRIES} entries of samples x samples and samples x "
            f"classes, not for {len(candidates)} samples x {candidates.n_classes} classes"
        )


def _refuse_paths(X: Any) -> None:
    if isinstance(X, np.ndarray) and X.ndim == 1:
        X = X[:1].tolist()
    if isinstance(X, list | tuple) and X and isinstance(X[0], str | Path):
        raise InputTypeError(
            "X holds text, but embedding=None expects feature vectors; name an embedding, e.g. "
            "FsPLLClassifier(embedding='model.safetensors')"
        )
