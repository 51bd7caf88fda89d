"""Labels for new samples, by the classifier of a labeling.

Shapes: n samples, l classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fspll._common.errors import DataError, InputError
from fspll._common.pictures import has_picture_suffix
from fspll.annotations.features import (
    FEATURE_NAMES,
    SAMPLE_NAMES,
    check_features,
    first_of,
    load_arrays,
    texts_of,
)
from fspll.classifier import FsPLLClassifier
from fspll.embeddings.features import Unreadable, encode_cached
from fspll.labeling.baseline_model import BaselineModel


@dataclass(frozen=True, eq=False)
class Predictions:
    """The likeliest labels of new samples.

    Attributes
    ----------
    names : list of str, of length n
    labels : ndarray of shape (n,)
    probability : ndarray of shape (n,)
        Of the label.
    runner_up : ndarray of shape (n,), or None
        The second likeliest label; None where the classifier knows one class only.
    margin : ndarray of shape (n,)
        Probability of the label less that of the runner-up.
    unreadable : list of Unreadable
        Samples that were left out.
    """

    names: list[str]
    labels: np.ndarray
    probability: np.ndarray
    runner_up: np.ndarray | None
    margin: np.ndarray
    unreadable: list[Unreadable]


def read_pictures(files: Sequence[Path]) -> tuple[list[str], list[Path]]:
    """Return names and paths of pictures: the files, and what is below the folders among them."""
    found: list[Path] = []
    for path in files:
        found += _pictures_below(path) if path.is_dir() else [path]
    return [str(path) for path in found], found


def read_texts(path: Path) -> tuple[list[str], list[str]]:
    """Return names and texts of a file with one text per line; blank lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text") from error
    texts = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not texts:
        raise DataError(f"{path} holds no text")
    return [f"line {number}" for number, _ in texts], [line for _, line in texts]


def read_vectors(path: Path) -> tuple[list[str], np.ndarray]:
    """Return names and vectors of an .npy or .npz file."""
    arrays = load_arrays(path)
    key = first_of(arrays, FEATURE_NAMES) or (next(iter(arrays)) if len(arrays) == 1 else None)
    if key is None:
        raise DataError(f"{path} has no array 'X'; it has {', '.join(map(repr, arrays))}")
    X = check_features(arrays[key], f"{path.name}, {key!r}")
    names = texts_of(path, arrays, SAMPLE_NAMES)
    if names is not None and len(names) != len(X):
        raise DataError(f"{path} has {len(X)} vectors but {len(names)} names")
    return list(names) if names is not None else [f"row {row}" for row in range(len(X))], X


def predict_samples(
    classifier: FsPLLClassifier | BaselineModel,
    names: Sequence[str],
    samples: Any,
    *,
    skip_bad: bool = False,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Label new samples with a classifier that :func:`fspll.labeling.load_model` returned.

    Parameters
    ----------
    classifier : FsPLLClassifier or BaselineModel
    names : sequence of str
        What the samples are called.
    samples : list of paths or texts, or array of vectors
        Of the kind that the classifier was fitted with.
    skip_bad : bool, default=False
        Leave out samples that cannot be read, instead of raising an error that names them.
    cache : bool, default=True
        Keep the features of encoded samples for the next run.
    progress : callable, optional
        Called as ``progress(done, total)`` while samples are encoded.

    Examples
    --------
    >>> clf = FsPLLClassifier().fit([[0.0], [0.1], [5.0]], [{"a"}, {"a", "b"}, {"b"}])
    >>> predict_samples(clf, ["new"], np.array([[4.0]])).labels.tolist()
    ['b']
    """
    encoder = None if classifier.embedding is None else classifier.load_encoder()
    takes_vectors = encoder is None or encoder.modality == "vector"
    if isinstance(samples, np.ndarray) != takes_vectors:
        takes = "vectors" if takes_vectors else "pictures or texts"
        raise InputError(f"this model was made from {takes}; give it samples of that kind")
    unreadable: list[Unreadable] = []
    if encoder is not None and not takes_vectors:
        found = encode_cached(
            encoder, samples, names=names, skip_bad=skip_bad, cache=cache, progress=progress
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
        probability=best[:, 0],
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
            f"the encoder gives {width} features, but this model was made from {expected}"
        )
    classifier = copy(classifier)
    classifier.embedding = None
    return classifier


def _pictures_below(folder: Path) -> list[Path]:
    found = sorted(
        path for path in folder.rglob("*") if has_picture_suffix(path.name) and path.is_file()
    )
    if not found:
        raise DataError(f"{folder} holds no pictures")
    return found
