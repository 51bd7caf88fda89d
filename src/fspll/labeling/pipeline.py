"""From annotations to labels: encode, rectify, and say what is sure.

Shapes: n samples, l classes, m features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from fspll import rectifiers
from fspll._common.errors import InputTypeError
from fspll.annotations.samples import Annotations
from fspll.candidates import Candidates
from fspll.candidates.estimators import check_lengths
from fspll.classifier import FsPLLClassifier
from fspll.embeddings.pictures import is_pil_image
from fspll.labeling.answering import apply_answers
from fspll.labeling.ranking import likeliest_first, on_candidates, two_likeliest
from fspll.labeling.reasons import find_undecided
from fspll.labeling.result import Labeling, Rounds
from fspll.labeling.review import Groups, choose_questions, questions_of
from fspll.labeling.samples import Prepared, prepare
from fspll.rectifiers import Trace, is_large

MOST_ENTRIES = 1 << 24  # of (sample, sample) or (sample, class), up to which rounds are kept
_UNEVEN = 100.0  # factor between the scales of features from which a note is made


def label(
    data: Any,
    *,
    encoder: Any = None,
    images: Path | str | None = None,
    rectifier: str = "evidence",
    answers: Mapping[str, Any] | None = None,
    skip_bad: bool = False,
    standardize: bool = False,
    class_balance: bool = False,
    cache: bool = True,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Labeling:
    """Turn ambiguous labels into clean ones, a classifier and a review list.

    Parameters
    ----------
    data : Annotations, or a pair (X, candidates)
        What :func:`fspll.annotations.read_annotations` returned; or feature vectors (n, m) with
        candidate sets in any shape of :meth:`fspll.candidates.Candidates.read`. X may also hold
        pictures (arrays, PIL images, paths) or texts, for an ``encoder`` that takes them.
    encoder : str, path, nn.Module or callable, optional
        "omniglot-conv4", "photos", "text", "features" for vectors as they are, the path of a
        checkpoint, or a function from samples to an array (n, m). Needed for pictures.
    images : path, optional
        The folder that the pictures' names are relative to.
    rectifier : {"evidence", "fspll", "none"}, default="evidence"
        As of :class:`fspll.FsPLLClassifier`.
    answers : mapping of sample to label, optional
        What a person said; see :func:`fspll.annotations.read_answers`.
    skip_bad : bool, default=False
        Leave out samples that cannot be read, instead of raising an error that names them.
    standardize : bool, default=False
        For "features" only: bring every feature to mean 0 and deviation 1 first.
    class_balance : bool, default=False
        Say that all classes are about equally frequent.
    cache : bool, default=True
        Keep the features of encoded samples for the next run.
    device : str, default="auto"
        Where to compute.
    progress : callable, optional
        Called as ``progress(done, total)`` while samples are encoded.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    >>> found = label((X, [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]))
    >>> found.labels.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    annotations, classes = _read(data)
    made = prepare(
        annotations,
        encoder,
        images,
        standardize=standardize,
        skip_bad=skip_bad,
        cache=cache,
        device=device,
        progress=progress,
    )
    left_out = frozenset(annotations.names) - {annotations.names[row] for row in made.kept}
    kept = annotations if not left_out else annotations.take(made.kept)
    classes, votes, answered, notes = apply_answers(
        kept.names, classes, kept.votes, answers or {}, left_out=left_out
    )
    classes, votes = _without_unused(classes, votes)
    candidates = Candidates.from_mask(votes > 0, classes=classes)
    classifier = FsPLLClassifier(rectifier=rectifier, class_balance=class_balance, device=device)
    if not _vote_counts(classifier, candidates):
        if not _is_even(votes):
            notes.append("the numbers of votes are not used here, only who may have which label")
        votes = sparse.csr_array(candidates.matrix.astype(float))
    uneven = None if _is_even(votes) else votes
    classifier.fit(made.features, candidates, votes=uneven, trace=_keeps_trace(candidates))
    classifier.embedding = made.encoder  # fitted on features; new samples are encoded first
    given = {kept.names[row]: candidates.names(row)[0] for row in np.flatnonzero(answered).tolist()}
    return _result(
        kept, candidates, votes, answered, given, classifier, made, _all_notes(notes, made)
    )


def _read(data: Any) -> tuple[Annotations, np.ndarray]:
    """Return annotations, and their classes as the user has them: names, or numbers."""
    if isinstance(data, Annotations):
        return data, np.array(data.classes)
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InputTypeError(
            "label takes Annotations, as read_annotations returns them, or a pair (X, candidates)"
        )
    X, y = data
    candidates = Candidates.read(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    check_lengths(n, candidates)
    is_names = not hasattr(X, "dtype") and n and isinstance(X[0], str | Path)
    given = tuple(map(str, X)) if is_names else None
    names = tuple(f"row {row}" for row in range(n))
    return (
        Annotations(
            names=given if given is not None and _are_files(X, given) else names,
            classes=tuple(map(str, candidates.classes.tolist())),
            votes=sparse.csr_array(candidates.matrix.astype(float)),
            origins=names,
            files=given,
            texts=given if given is not None and isinstance(X[0], str) else None,
            features=None if is_names else _as_array(X),
        ),
        candidates.classes,
    )


def _as_array(X: Any) -> np.ndarray:
    """Return samples as one array: of numbers, or of PIL images."""
    if isinstance(X, list | tuple) and X and is_pil_image(X[0]):
        pictures = np.empty(len(X), dtype=object)
        pictures[:] = X
        return pictures
    return X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else np.asarray(X)


def _are_files(X: Any, names: tuple[str, ...]) -> bool:
    return all(isinstance(one, Path) for one in X) and len(set(names)) == len(names)


def _without_unused(
    classes: np.ndarray, votes: sparse.csr_array
) -> tuple[np.ndarray, sparse.csr_array]:
    """Drop labels that are nobody's candidate any more: samples were left out or answered."""
    used = np.unique(votes.indices)
    if len(used) == len(classes):
        return classes, votes
    return classes[used], sparse.csr_array(votes[:, used])


def _is_even(votes: sparse.csr_array) -> bool:
    """Tell whether every candidate of a sample has as many votes as the others."""
    first = np.repeat(votes.data[votes.indptr[:-1]], np.diff(votes.indptr))
    return np.array_equal(votes.data, first)


def _vote_counts(classifier: FsPLLClassifier, candidates: Candidates) -> bool:
    """Tell whether the rectifier can use numbers of votes."""
    return classifier.make_rectifier().uses_votes and not is_large(*candidates.matrix.shape)


def _all_notes(notes: list[str], made: Prepared) -> list[str]:
    notes = list(notes)
    if made.unreadable:
        count = len(made.unreadable)
        names = ", ".join(one.name for one in made.unreadable[:5])
        more = f" and {count - 5} more" if count > 5 else ""
        plural = "s that cannot be read were" if count > 1 else " that cannot be read was"
        notes.append(f"{count} sample{plural} left out: {names}{more}")
    if made.encoder is None:
        scale = made.features.astype(float).std(axis=0)
        scale = scale[scale > 0]
        if len(scale) and scale.max() > _UNEVEN * scale.min():
            notes.append(
                f"some features vary {scale.max() / scale.min():.0f} times as much as others and "
                f"decide nearly alone; standardize=True puts them on one scale"
            )
    return notes


def _keeps_trace(candidates: Candidates) -> bool:
    """Tell whether there are few enough samples to keep every round."""
    n, n_classes = candidates.matrix.shape
    return n * max(n, n_classes) <= MOST_ENTRIES


def _rounds(trace: Trace | None) -> Rounds | None:
    if trace is None:
        return None
    return Rounds(trace.prototypes.cpu().numpy(), trace.confidence.argmax(dim=-1).cpu().numpy())


def _result(
    kept: Annotations,
    candidates: Candidates,
    votes: sparse.csr_array,
    answered: np.ndarray,
    answers: dict[str, Any],
    classifier: FsPLLClassifier,
    made: Prepared,
    notes: list[str],
) -> Labeling:
    probabilities = on_candidates(classifier.confidence_, candidates)
    top, second, confidence, margin = two_likeliest(probabilities)
    by_place = naming = groups = None
    trace = classifier.trace_
    if trace is not None and trace.groups is not None:
        by_place = trace.groups.by_place.double().cpu().numpy()
        naming = trace.groups.naming.double().cpu().numpy()
        groups = _review_groups(trace.groups, candidates, votes)
    undecided = find_undecided(
        candidates,
        confidence,
        top,
        second,
        np.asarray(probabilities.sum(axis=0)).ravel(),
        by_place,
        naming,
        answered,
    )
    chosen = choose_questions(np.where(answered, 1.0, confidence), groups)
    # A set that lacks its label is outside the model, which takes sets at their word: last.
    asked = {row for row, _, _ in chosen}
    after = chosen[-1][2] if chosen else float(confidence.mean())
    chosen += [
        (one.index, 0.0, after)
        for one in undecided
        if one.kind == "contradiction" and one.index not in asked
    ]
    classes = candidates.classes
    ordered = [likeliest_first(probabilities, classes, row) for row, _, _ in chosen]
    return Labeling(
        names=kept.names,
        labels=classes[top],
        confidence=confidence,
        runner_up=tuple(None if c < 0 else classes[c].item() for c in second),
        margin=margin,
        candidates=candidates,
        probabilities=probabilities,
        features=made.features,
        classifier=classifier,
        encoder=made.name,
        review=questions_of(chosen, ordered, {one.index: one.reason for one in undecided}),
        undecided=undecided,
        answers=answers,
        answered=answered,
        rounds=_rounds(trace),
        notes=notes,
        unreadable=made.unreadable or [],
        pictures=made.pictures,
        texts=kept.texts if made.pictures is None else None,
    )


def _review_groups(
    groups: rectifiers.Groups, candidates: Candidates, votes: sparse.csr_array
) -> Groups:
    mask = candidates.mask
    prior = np.where(mask, votes.toarray(), 0.0)
    mean = prior.sum(axis=1, keepdims=True) / mask.sum(axis=1, keepdims=True)
    return Groups(
        groups.by_place.double().cpu().numpy(),
        groups.member.double().cpu().numpy(),
        prior / mean,
    )
