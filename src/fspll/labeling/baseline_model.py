"""A baseline as the model of a labeling: fitted to features, saved, and read again.

A file holds what the baseline was fitted to and with which parameters; reading it fits the baseline
again. That works for every registered baseline, those of other packages included, and nothing is
unpickled. Shapes: n samples, m features, l classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.special import softmax
from torch import Tensor

from fspll._common.errors import CheckpointError, FsPLLError, InputError, MissingPackageError
from fspll._common.stored_arrays import FLOATS, pattern_to_tensors, read_sparse, require
from fspll._common.tensorfiles import FileFormat
from fspll._common.version import __version__
from fspll.baselines import BASELINES
from fspll.baselines.people.base import anonymous
from fspll.candidates.judgments import Judgments
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.registry import load_embedding
from fspll.embeddings.stored import describe_encoder, restore_encoder
from fspll.modelfile import read_classes
from fspll.rectifiers.base import DENSE_ENTRIES, is_large

FORMAT = FileFormat("fspll-baseline", version=1, noun="a model of a baseline")
_NETWORK = "embedding."
_PARTS = ("rows", "annotators", "labels")


class BaselineModel:
    """A baseline of :data:`fspll.baselines.BASELINES` that labels samples and predicts new ones.

    Parameters
    ----------
    method : str
        Its name.
    settings : mapping, optional
        Its parameters; what is drawn at random is drawn with ``random_state=0`` unless they say
        otherwise, so that the same model can be made again.
    device : str
        Where an encoder computes.

    Attributes
    ----------
    name : str
        The registered name.
    calibrated : bool
        False: what a baseline gives are scores.
    classes_, candidates_, labels_
        As of :class:`fspll.FsPLLClassifier`.
    confidence_ : ndarray of shape (n, l)
        Shares of the candidates; where a baseline has none, the softmax of its scores.
    embedding : Encoder or None
        What turns new samples into features.

    Examples
    --------
    >>> from fspll.candidates import Candidates, Observed
    >>> sets = Candidates.read([{"a", "b"}, {"a"}, {"b"}])
    >>> model = BaselineModel("pl-knn").fit(np.array([[0.0], [0.1], [5.0]]), Observed(sets))
    >>> model.name, model.predict([[0.2], [4.0]]).tolist()
    ('PL-KNN', ['a', 'b'])
    """

    calibrated = False
    trace_ = None

    def __init__(
        self, method: str, settings: Mapping[str, Any] | None = None, *, device: str = "auto"
    ) -> None:
        kind = BASELINES.get(method)
        self.name = BASELINES.find(method) or method
        self.estimator = kind()
        known = self.estimator.get_params(deep=False)
        settings = dict(settings or {})
        unknown = sorted(set(settings) - set(known) | set(settings) & {"classes"})
        if unknown:
            raise InputError(f"the baseline {self.name!r} has no setting {unknown[0]!r}")
        if "random_state" in known:
            settings = {"random_state": 0} | settings
        self.estimator.set_params(**settings)
        self.device = device
        self.embedding: Any = None

    @property
    def uses_judgments(self) -> bool:
        """Whether the baseline takes who said what, and so the numbers of votes as well."""
        return bool(getattr(self.estimator, "uses_judgments", False))

    def check(self, observed: Observed) -> None:
        """Raise when this baseline cannot take what was observed."""
        n, n_classes = observed.shape
        large = n * n_classes > DENSE_ENTRIES if self.uses_judgments else is_large(n, n_classes)
        if large:
            raise InputError(
                f"the method {self.name!r} is for fewer samples and classes than {n} x {n_classes}"
            )
        needed = self.uses_judgments and getattr(self.estimator, "needs_annotators", True)
        if needed and observed.judgments is None:
            raise InputError(
                f"the method {self.name!r} needs to know who gave which label, for samples with "
                f"more than one annotator; name the column that says who: annotator=..."
            )

    def fit(self, features: np.ndarray, observed: Observed) -> BaselineModel:
        """Fit the baseline to features (n, m) and what is known about the labels."""
        self.check(observed)
        sets = observed.sets()
        judgments = observed.judgments
        if self.uses_judgments and judgments is None:
            judgments = anonymous(observed.votes if _is_sparse(observed.votes) else sets.matrix)
        return self._fit(np.asarray(features), sets, judgments if self.uses_judgments else None)

    def _fit(
        self, features: np.ndarray, sets: Candidates, judgments: Judgments | None
    ) -> BaselineModel:
        self._features, self._judgments = features, judgments
        more = () if judgments is None else (judgments,)
        self.estimator.fit(features, sets, *more)
        self.candidates_, self.classes_ = sets, sets.classes
        scores = self._scores(features)
        spread = float(np.std(scores[np.isfinite(scores)]))
        self._scale = spread if np.isfinite(spread) and spread > 0 else 1.0
        self.confidence_ = self._confidence(scores)
        self.labels_ = sets.classes[self.confidence_.argmax(axis=1)]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the highest score of each sample; see :meth:`predict_proba`."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return a share of every class for each of q samples, of shape (q, l).

        X holds features (q, m), or what ``embedding`` takes where it is not None. The result is the
        baseline's own probabilities, if it has any, and otherwise the softmax of its scores over
        their standard deviation among the training samples, which orders classes as the baseline
        does.
        """
        if self.embedding is not None:
            X = self.load_encoder().encode(X)
            if X.shape[1] != self.n_features:
                raise InputError(
                    f"the encoder gives {X.shape[1]} features, but this model was made from "
                    f"{self.n_features}"
                )
        own = getattr(self.estimator, "predict_proba", None)
        if own is not None:
            return np.asarray(own(X))
        return softmax(self._scores(X) / self._scale, axis=1)

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.asarray(self.estimator.decision_function(X))
        if scores.ndim == 1:  # two classes
            scores = np.stack([-scores / 2, scores / 2], axis=1)
        return scores.reshape(len(scores), -1)

    def _confidence(self, scores: np.ndarray) -> np.ndarray:
        given = getattr(self.estimator, "confidence_", None)
        if given is not None:
            return np.asarray(given, dtype=float)
        sets = self.candidates_
        mask = sets.mask
        found = softmax(np.where(mask, scores / self._scale, -np.inf), axis=1)
        # A sample's label may have been found without the sample itself; it gets the top share.
        column = {name: place for place, name in enumerate(sets.classes.tolist())}
        label = np.array([column[name] for name in self.estimator.labels_.tolist()])
        rows, top = np.arange(len(found)), found.argmax(axis=1)
        found[rows, top], found[rows, label] = found[rows, label], found[rows, top]
        return found

    @property
    def n_features(self) -> int:
        """How many features a sample has, m."""
        return int(self._features.shape[1])

    def load_encoder(self) -> Encoder:
        """Return what embeds samples; only where ``embedding`` is not None."""
        return load_embedding(self.embedding, self.device)

    # ---------------------------------------------------------------- files

    def save(self, path: Path | str) -> None:
        """Write what the baseline was fitted to, its parameters and the encoder to one file."""
        classes = self.classes_
        tensors = {
            "features": torch.from_numpy(np.ascontiguousarray(self._features)),
            **pattern_to_tensors("candidates", self.candidates_.matrix),
        }
        metadata: dict[str, Any] = {
            "package_version": __version__,
            "method": self.name,
            "settings": _without_classes(self.estimator.get_params(deep=False)),
            "classes": classes.tolist(),
            "classes_dtype": "U" if classes.dtype.kind == "U" else classes.dtype.str,
            "annotators": None,
            "device": self.device,
            "embedding": None,
        }
        if self._judgments is not None:
            metadata["annotators"] = list(self._judgments.names)
            for part in _PARTS:
                values = getattr(self._judgments, part)
                tensors[f"judgments.{part}"] = torch.from_numpy(values.copy())
        if self.embedding is not None:
            network, metadata["embedding"] = describe_encoder(self.load_encoder())
            tensors |= {_NETWORK + name: tensor for name, tensor in network.items()}
        FORMAT.write(path, tensors, metadata)

    @classmethod
    def load(cls, path: Path | str, *, embedding: Any = None) -> BaselineModel:
        """Read a model that :meth:`save` wrote, and fit its baseline again.

        Parameters
        ----------
        path : path
        embedding : optional
            Replaces the stored encoder; needed when it was a function of yours.
        """
        tensors, metadata = FORMAT.read(path)
        try:
            return cls._restore(tensors, metadata, embedding, str(path))
        except (CheckpointError, MissingPackageError):
            raise
        except KeyError as error:
            raise CheckpointError(f"{path} is damaged: it lacks {error}") from error
        except (FsPLLError, TypeError, ValueError, ArithmeticError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CheckpointError(f"{path} is damaged: {reason}") from error

    @classmethod
    def _restore(
        cls, tensors: dict[str, Tensor], metadata: dict[str, Any], embedding: Any, source: str
    ) -> BaselineModel:
        settings, device = metadata["settings"], metadata["device"]
        require(isinstance(settings, dict), "its settings are no JSON object")
        require(isinstance(device, str), "its device is no name")
        require(isinstance(metadata["method"], str), "its method is no name")
        model = cls(metadata["method"], settings, device=device)
        features = tensors["features"]
        require(
            features.dtype in FLOATS and features.ndim == 2,
            f"its features are {features.dtype} of shape {tuple(features.shape)}",
        )
        classes = read_classes(metadata["classes"], metadata["classes_dtype"])
        flags = torch.ones(tensors["candidates.indices"].numel(), dtype=torch.bool)
        complaint = "its candidate sets do not fit its classes and samples"
        shape = (len(features), len(classes))
        matrix = read_sparse(tensors, "candidates", flags, shape, complaint)
        require(bool(matrix.has_canonical_format), "its candidate sets are not in order")
        judgments = None
        if model.uses_judgments:
            names = metadata["annotators"]
            require(isinstance(names, list), "its annotators are no list")
            rows, who, labels = (tensors[f"judgments.{part}"].numpy() for part in _PARTS)
            judgments = Judgments(rows, who, labels, tuple(names))
        stored = metadata["embedding"]
        if embedding is None and stored is not None:
            require(isinstance(stored, dict), "its embedding is no JSON object")
            own = {
                n.removeprefix(_NETWORK): t for n, t in tensors.items() if n.startswith(_NETWORK)
            }
            embedding = restore_encoder(own, stored, device, source)
        model._fit(features.numpy(), Candidates(matrix, classes), judgments)
        model.embedding = embedding
        return model


def _without_classes(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name != "classes"}


def _is_sparse(votes: Any) -> bool:
    return bool(sparse.issparse(votes))
