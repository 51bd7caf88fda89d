"""Labels for new samples, by the classifier of a labeling.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from fspll._common.errors import InputError
from fspll._common.words import counted
from fspll.classifier import FsPLLClassifier
from fspll.embeddings.features import Unreadable, encode_cached
from fspll.labeling.baseline_model import BaselineModel

_KINDS = {"image": "pictures", "text": "texts", "vector": "vectors", None: "pictures or texts"}


@dataclass(frozen=True, eq=False)
class Predictions:
    """The likeliest labels of new samples.

    Attributes
    ----------
    names : list of str, of length n
    labels : ndarray of shape (n,)
    confidence : ndarray of shape (n,)
        The probability of the label.
    runner_up : ndarray of shape (n,), or None
        The second likeliest label; None where the classifier knows one class only.
    margin : ndarray of shape (n,)
        Probability of the label less that of the runner-up.
    unreadable : list of Unreadable
        Samples that were left out.
    """

    names: list[str]
    labels: np.ndarray
    confidence: np.ndarray
    runner_up: np.ndarray | None
    margin: np.ndarray
    unreadable: list[Unreadable]

    def __repr__(self) -> str:
        sure = int((self.confidence >= 0.9).sum())
        return (
            f"Predictions({counted(len(self.names), 'sample')}, {sure} of them at least 90% sure, "
            f"{len(self.unreadable)} left out)"
        )


def predict_samples(
    classifier: FsPLLClassifier | BaselineModel,
    names: Sequence[str],
    samples: Any,
    *,
    modality: str | None = None,
    skip_bad: bool = False,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
    scheduler: str | None = None,
) -> Predictions:
    """Label new samples with a classifier that :func:`fspll.labeling.load_model` returned.

    Parameters
    ----------
    classifier : FsPLLClassifier or BaselineModel
    names : sequence of str
        What the samples are called.
    samples : list of paths or texts, or array of vectors
        Of the kind that the classifier was fitted with.
    modality : {"image", "text", "vector"}, optional
        What the samples are, where it is known: others than the model was made from are refused.
    skip_bad : bool, default=False
        Leave out samples that cannot be read, instead of raising an error that names them.
    cache : bool, default=True
        Keep the features of encoded samples for the next run.
    progress : callable, optional
        Called as ``progress(done, total)`` while samples are encoded.
    scheduler : str, optional
        The address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers encode the samples.

    Examples
    --------
    >>> clf = FsPLLClassifier().fit([[0.0], [0.1], [5.0]], [{"a"}, {"a", "b"}, {"b"}])
    >>> predict_samples(clf, ["new"], np.array([[4.0]])).labels.tolist()
    ['b']
    """
    encoder = None if classifier.embedding is None else classifier.load_encoder()
    takes_vectors = encoder is None or encoder.modality == "vector"
    takes = "vector" if encoder is None else encoder.modality
    wrong = takes is not None and modality is not None and modality != takes
    if wrong or isinstance(samples, np.ndarray) != takes_vectors:
        given = f", not {_KINDS[modality]}" if modality else ""
        raise InputError(
            f"this model was made from {_KINDS[takes]}; give it samples of that kind{given}"
        )
    unreadable: list[Unreadable] = []
    if encoder is not None and not takes_vectors:
        found = encode_cached(
            encoder,
            samples,
            names=names,
            skip_bad=skip_bad,
            cache=cache,
            progress=progress,
            scheduler=scheduler,
        )
        names, samples = [names[row] for row in found.kept], found.features
        unreadable = found.unreadable
        classifier = _on_features(classifier, samples.shape[1])
    chances = classifier.predict_proba(samples)
    likely = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    best = np.take_along_axis(chances, likely, axis=1)
    several = likely.shape[1] > 1
    return Predictions(
        names=list(names),
        labels=classifier.classes_[likely[:, 0]],
        confidence=best[:, 0],
        runner_up=classifier.classes_[likely[:, 1]] if several else None,
        margin=best[:, 0] - best[:, 1] if several else best[:, 0],
        unreadable=unreadable,
    )


def _on_features(
    classifier: FsPLLClassifier | BaselineModel, width: int
) -> FsPLLClassifier | BaselineModel:
    """Return the same classifier for samples that are encoded already."""
    if isinstance(classifier, BaselineModel):
        expected = classifier.n_features
    else:
        expected = classifier.prototypes_.shape[1]
    if width != expected:
        raise InputError(
            f"the encoder gives {counted(width, 'feature')}, but this model was made from "
            f"{expected}"
        )
    classifier = copy(classifier)
    classifier.embedding = None
    return classifier
