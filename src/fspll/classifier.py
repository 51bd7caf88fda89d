"""FsPLLClassifier: the scikit-learn estimator around a rectifier and an embedding."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from fspll import modelfile
from fspll._common.arguments import check_probability
from fspll._common.devices import choose_device
from fspll._common.errors import InputError, InputTypeError
from fspll.candidates.estimators import (
    check_lengths,
    checked_vectors,
    read_target,
    score_predictions,
)
from fspll.candidates.judgments import Judgments
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.registry import load_embedding
from fspll.modelfile import SHORTCUTS, StoredClassifier
from fspll.rectifiers.base import Fitted, Rectifier, is_large, to_tensor
from fspll.rectifiers.registry import make_rectifier
from fspll.rectifiers.scaling import fit_scaled
from fspll.rectifiers.sparse.centering import shared_tensor
from fspll.rectifiers.sparse.entries import best_labels


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
    further and is more often right. Its probabilities were measured calibrated on few-shot tasks of
    Omniglot and of photos whose sets hold the truth and evenly drawn distractors
    (docs/beyond.md); on the labels of a real crowd they were too sure.

    Parameters
    ----------
    embedding : None, str, path, nn.Module, callable or encoder, default=None
        None when X already holds feature vectors; otherwise the name of a registered encoder, the
        path of a checkpoint, a network, a function from samples to an array (n, m), or any object
        with a method ``encode`` that does that.
    rectifier : str or Rectifier, default="adaptive"
        How candidates are weighted: a name of :data:`fspll.rectifiers.RECTIFIERS` or an instance
        with settings of its own. "adaptive" mixes class means and a kernel as held-out samples ask
        for, see :mod:`fspll.rectifiers.adaptive`. "evidence" is its class means alone, see
        :mod:`fspll.rectifiers.evidence`. "fspll" is the paper's rule, Eq. (1) to (3). "none"
        weights all candidates equally, the plain prototypes of prototypical networks.
    n_neighbors : int or "auto", default="auto"
        How many neighbors of a sample are used, k of Eq. (3). "auto" is one less than the average
        number of samples per class; with many samples, 10 at most.
    n_iterations : int, default=10
        Rounds of rectification.
    class_balance : bool, default=False
        Say that all classes are about equally frequent among the training samples. For
        "adaptive" and "evidence" only.
    reject : float, optional
        ``predict`` abstains (None) where the best class is less probable than this.
    manifold_weight : float, default=0.5
        For "fspll" only: lambda of Eq. (3), how much the neighbors count; 0 leaves them out
        (FsPLL-nM).
    metric : {"euclidean", "sqeuclidean"}, default="euclidean"
        For "fspll" and "none" only: distance to the prototypes; the paper says Euclidean. The
        result of "adaptive" and "evidence" does not depend on the scale of the features.
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
        How credible each candidate is, zero off the candidates. Rows sum to one, or to less where
        "adaptive" finds that sets lack their true label: the rest is none of them. With many
        samples it is sparse and stores the candidates only.
    prototypes_ : ndarray of shape (l, m)
        One per class; zeros for a class that is nobody's candidate.
    has_prototype_ : bool ndarray of shape (l,)
        Classes without a prototype are never predicted.
    naming_ : ndarray of shape (l, l)
        For "adaptive" and "evidence": probability that the samples around prototype g carry label
        c. The identity where the candidate sets decide everything, and, as a sparse array, with
        many samples.
    has_support_ : bool ndarray of shape (l,)
        For "adaptive" and "evidence": groups to which at least half a sample belongs; the class
        means never predict others.
    spread_ : float
        For "adaptive" and "evidence": mean squared distance of a sample to its class.
    check_ : Check or None
        For "adaptive" only: what held-out samples say about the fit, where they were asked.
    rectifier_ : Rectifier
        The rectifier that was used.
    model_ : Fitted
        What the rectifier found.
    trace_ : Trace or None
        Every round, when ``fit`` was asked to keep it and there are few enough samples.
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
        rectifier: str | Rectifier = "adaptive",
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

    def fit(
        self,
        X: Any,
        y: Any,
        X_unlabeled: Any = None,
        votes: Any = None,
        *,
        judgments: Judgments | None = None,
        settled: Any = None,
        trace: bool = False,
    ) -> FsPLLClassifier:
        """Disambiguate the samples and compute the prototypes.

        Parameters
        ----------
        X : array of shape (n, m), or samples that ``embedding`` takes
            Images come as paths, PIL images, or an array (n, H, W), (n, H, W, C) or (n, C, H, W).
        y : mask (n, l), list of sets of labels, or labels of shape (n,)
            Candidate sets; see :meth:`fspll.candidates.Candidates.read`.
        X_unlabeled : samples like X, optional
            Further samples of the same classes without any label, such as those to be predicted:
            they sharpen the classes. For rectifiers that use them, such as "adaptive".
        votes : array or sparse array of shape (n, l), optional
            How many annotators gave each label to each sample: a candidate is as likely at first
            as its share of the votes. Columns follow the classes. For rectifiers that use them,
            such as "adaptive".
        judgments : Judgments, optional
            Who gave which label to which sample: how often each annotator confuses which classes is
            estimated with the labels. For rectifiers that use them, such as "adaptive".
        settled : bool array of shape (n,), optional
            Samples whose one candidate a person settled: they stay certain.
        trace : bool, default=False
            Keep every round in ``trace_``.
        """
        # What can be refused is refused before any sample is embedded.
        rectifier = self.make_rectifier()
        device = choose_device(self.device)
        if self.embedding is None:
            features = self._features(X, fitting=True)
        candidates = Candidates.read(y, self.classes)
        if self.embedding is not None:
            check_lengths(_length(X), candidates)
        n_unlabeled = 0 if X_unlabeled is None else _length(X_unlabeled)
        observed = Observed.read(
            candidates,
            votes if rectifier.uses_votes else None,
            n_unlabeled,
            judgments=judgments if rectifier.uses_judgments else None,
            settled=settled,
        )
        rectifier.check(observed)
        if self.embedding is not None:
            features = self._features(X, fitting=True)
        check_lengths(len(features), candidates)
        if X_unlabeled is not None:
            more = self._features(X_unlabeled, fitting=False, width=features.shape[1])
            features = np.concatenate([features, more.astype(features.dtype, copy=False)])
        large = is_large(observed.n_samples, observed.n_classes)
        embeddings = shared_tensor(features) if large else to_tensor(features)
        if not large:
            if device.type == "mps":  # which has no float64
                embeddings = embeddings.float()
            embeddings = embeddings.to(device)
        self.rectifier_ = rectifier
        self._keep(candidates, fit_scaled(rectifier, embeddings, observed, trace=trace))
        return self

    def _keep(self, candidates: Candidates, model: Fitted) -> None:
        """Set the fitted attributes."""
        confidence = model.confidence
        if isinstance(confidence, Tensor):
            model = replace(model, confidence=confidence[: len(candidates)].cpu())
            confidence = model.confidence.numpy()
            best = confidence.argmax(axis=1)
        else:
            best = best_labels(confidence)
        self.model_, self.trace_ = model, model.trace
        self.candidates_, self.classes_ = candidates, candidates.classes
        self.confidence_, self.labels_ = confidence, candidates.classes[best]
        self.n_neighbors_ = model.n_neighbors
        for name, value in model.attributes().items():
            setattr(self, name, value)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each sample, of shape (n,).

        With ``reject``, an object array that holds None where the classifier abstains.
        """
        check_is_fitted(self, "prototypes_")
        check_probability("reject", self.reject)
        best, probability = self.model_.most_probable(self._queries(X))
        labels = self.classes_[best.cpu().numpy()]
        if self.reject is None:
            return labels
        labels = labels.astype(object)
        labels[probability.cpu().numpy() < self.reject] = None
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class for each sample, of shape (n, l).

        Columns follow ``classes_``; classes without a prototype have probability zero. For the
        rectifiers "fspll" and "none" it is the softmax of minus the distances, Eq. (4). A result of
        more than 2**26 entries is refused when the classifier was fitted with many samples.
        """
        check_is_fitted(self, "prototypes_")
        return self.model_.predict_proba(self._queries(X)).cpu().numpy()

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
        names = getattr(self, "feature_names_in_", None)
        parameters = ("rectifier", "reject", "device", *SHORTCUTS)
        modelfile.save(
            StoredClassifier(
                parameters={name: getattr(self, name) for name in parameters},
                candidates=self.candidates_,
                classes_were_given=self.classes is not None,
                model=self.model_,
                embedding=None if self.embedding is None else self.load_encoder(),
                feature_names=None if names is None else names.tolist(),
            ),
            path,
        )

    @classmethod
    def load(cls, path: Path | str, *, embedding: Any = None) -> FsPLLClassifier:
        """Read a classifier that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        embedding : optional
            Replaces the stored embedding; needed when it was a function of yours.
        """
        stored = modelfile.load(path, embedding)
        classifier = cls(embedding=stored.embedding, **stored.parameters)
        if stored.classes_were_given:
            classifier.classes = stored.candidates.classes.tolist()
        classifier.rectifier_ = classifier.make_rectifier()
        classifier._keep(stored.candidates, stored.model)
        if stored.embedding is None:
            classifier.n_features_in_ = classifier.prototypes_.shape[1]
            if stored.feature_names is not None:
                classifier.feature_names_in_ = np.array(stored.feature_names, dtype=object)
        return classifier

    def make_rectifier(self) -> Rectifier:
        """Return the rectifier that the parameters ask for; raise where they cannot be used."""
        check_probability("reject", self.reject)
        given = {name: getattr(self, name) for name in SHORTCUTS}
        if isinstance(self.rectifier, Rectifier):
            usual = signature(FsPLLClassifier).parameters
            for name, value in given.items():
                if value != usual[name].default:
                    raise InputError(
                        f"{name} is set beside a rectifier with settings of its own; set it there, "
                        f"as in rectifier={type(self.rectifier).__name__}({name}=...)"
                    )
        return make_rectifier(self.rectifier, given)

    def load_encoder(self) -> Encoder:
        """Return what embeds samples; it is loaded once per ``embedding`` and ``device``.

        Only where ``embedding`` is not None.
        """
        loaded = self.__dict__.get("_loaded_embedding")
        if loaded is None or loaded[0] is not self.embedding or loaded[1] != self.device:
            encoder = load_embedding(self.embedding, self.device)
            loaded = self._loaded_embedding = (self.embedding, self.device, encoder)
        return loaded[2]

    # ---------------------------------------------------------------- inner steps

    def _queries(self, X: Any) -> Tensor:
        return to_tensor(self._features(X, fitting=False))

    def _features(self, X: Any, *, fitting: bool, width: int | None = None) -> np.ndarray:
        """Return X as feature vectors, a float array of shape (n, m)."""
        if self.embedding is None:
            _refuse_paths(X)
            return checked_vectors(self, X, fitting=fitting)
        features = self.load_encoder().encode(X)
        if fitting:
            return features
        width = self.prototypes_.shape[1] if width is None else width
        if features.shape[1] != width:
            raise InputError(
                f"the embedding gives {features.shape[1]} features, but this classifier was "
                f"fitted with {width}"
            )
        return features

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


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") and X.shape else len(X)


def _refuse_paths(X: Any) -> None:
    if isinstance(X, np.ndarray) and X.ndim == 1:
        X = X[:1].tolist()
    if isinstance(X, list | tuple) and X and isinstance(X[0], str | Path):
        raise InputTypeError(
            "X holds text, but embedding=None expects feature vectors; name an embedding, e.g. "
            "FsPLLClassifier(embedding='model.safetensors')"
        )
