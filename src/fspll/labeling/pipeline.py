"""From annotations to labels: encode, rectify, and say what is sure.

Shapes: n samples, l classes, m features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from fspll._common.arguments import check_count
from fspll._common.devices import choose_device
from fspll._common.errors import InputError, InputTypeError
from fspll._common.progress import Progress, show_progress
from fspll._common.words import counted, listed
from fspll.annotations.answers import Answer, Answers, content_name
from fspll.annotations.samples import Annotations
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.classifier import FsPLLClassifier
from fspll.labeling.answering import apply_answers, follow_answers
from fspll.labeling.audit import Audit, Recalibration
from fspll.labeling.auditing import claimed, draw_audit, posterior_of
from fspll.labeling.baseline_model import BaselineModel
from fspll.labeling.inputs import read_data
from fspll.labeling.notes import notes_on
from fspll.labeling.ranking import (
    add_most_probable,
    likeliest_first,
    on_candidates,
    two_likeliest,
)
from fspll.labeling.reasons import find_undecided
from fspll.labeling.result import Annotator, Labeling, Rounds
from fspll.labeling.review import Groups, choose_questions, questions_of
from fspll.labeling.samples import Prepared, locate, prepare
from fspll.rectifiers.base import Rectifier
from fspll.rectifiers.registry import DEFAULT

MOST_ENTRIES = 1 << 24  # of (sample, sample) or (sample, class), up to which a trace is kept
_MAINLY = 0.5  # weight of the class means from which their groups explain the labels


def label(
    data: Any,
    *,
    encoder: Any = None,
    images: Path | str | None = None,
    rectifier: str | Rectifier = "adaptive",
    method: str | None = None,
    answers: Mapping[str, Any] | Sequence[Answers] | None = None,
    audit: int | None = None,
    audited: Audit | None = None,
    outside: bool = False,
    skip_bad: bool = False,
    standardize: bool = False,
    class_balance: bool = False,
    cache: bool = True,
    device: str = "auto",
    progress: Progress | bool | None = True,
    scheduler: str | None = None,
) -> Labeling:
    """Turn ambiguous labels into clean ones, a classifier and a review list.

    Parameters
    ----------
    data : Annotations, data frame, or a pair (X, candidates)
        What :func:`fspll.annotations.read_annotations` returned; a pandas data frame or series that
        it reads without further options; or feature vectors (n, m) with
        candidate sets in any shape of :meth:`fspll.candidates.Candidates.read`. X may also hold
        pictures (arrays, PIL images, paths) or texts, for an ``encoder`` that takes them.
    encoder : str, path, nn.Module, callable or object with ``encode``, optional
        "omniglot-conv4", "photos", "text", "features" for vectors as they are, the path of a
        checkpoint, a function from samples to an array (n, m), or an object with such a method
        ``encode``. Needed for pictures.
    images : path, optional
        The folder that the pictures' names are relative to.
    rectifier : str or Rectifier, default="adaptive"
        As of :class:`fspll.FsPLLClassifier`.
    method : str, optional
        A baseline of :data:`fspll.baselines.BASELINES` in the place of the rectifier, such as
        "PL-AGGD", "Majority-Vote", "Dawid-Skene" or "CROWDLAB". Its confidences are scores.
    answers : mapping of sample to label, or sequence of Answers, optional
        What a person said; see :func:`fspll.annotations.read_answers`. Answers that carry a hash
        of their sample's content find it under another name, too; those whose sample is not there
        are kept aside in ``Labeling.absent``.
    audit : int, optional
        Draw so many labels at random, for a person to check: ``Labeling.audit``, which
        :meth:`Labeling.save` writes to ``audit.csv``.
    audited : Audit, optional
        An earlier draw with a person's answers, as :func:`fspll.labeling.read_audit` reads it from
        ``audit.csv``. They recalibrate all confidences, and settle their samples; ``audit`` adds
        to it as many labels as it lacks.
    outside : bool, default=False
        Give a label outside the candidate set where it is the most probable class. That takes a
        rectifier that holds samples out, as "adaptive" does from 20 samples on.
    skip_bad : bool, default=False
        Leave out samples that cannot be read, instead of raising an error that names them.
    standardize : bool, default=False
        For "features" only: bring every feature to mean 0 and standard deviation 1 first.
    class_balance : bool, default=False
        Say that all classes are about equally frequent.
    cache : bool, default=True
        Keep the features of encoded samples for the next run.
    device : str, default="auto"
        Where to compute.
    progress : callable or bool, default=True
        Show a bar while samples are encoded, where there is a terminal or a notebook to show it in.
        A callable is called as ``progress(done, total)`` instead.
    scheduler : str, optional
        The address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers encode pictures or
        texts; see :func:`fspll.embeddings.encode_cached`. Features are the same as without.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
    >>> found = label((X, [{"a", "b"}, {"a", "c"}, {"a"}, {"b", "a"}, {"b", "c"}, {"b"}]))
    >>> found.labels.tolist()
    ['a', 'a', 'a', 'b', 'b', 'b']
    """
    annotations, classes = read_data(data)
    # What can be refused is refused before any sample is encoded.
    rule: Rectifier | BaselineModel
    if audit is not None:
        check_count("audit", audit, 1)
    if method is None:
        rule = FsPLLClassifier(rectifier=rectifier, class_balance=class_balance).make_rectifier()
        rule = rule.checked()
    else:
        if rectifier != DEFAULT or class_balance:
            name = "class_balance" if class_balance else "rectifier"
            raise InputError(f"{name} is of no use beside method={method!r}; give one of them")
        if outside:
            raise InputError(
                f"outside=True does not go with method={method!r}, which chooses candidates"
            )
        rule = BaselineModel(method, device=device)
    choose_device(device)
    located = locate(annotations, encoder, images, standardize=standardize, device=device)
    contents = tuple(map(content_name, located.keys))
    renamed = annotations.renamed
    given = [one.renamed(renamed) for one in _sources(answers)]
    followed = follow_answers(given, annotations.names, contents)
    records = followed.records(annotations.names, contents)
    if followed.discarded:
        rows = [row for row, name in enumerate(annotations.names) if name not in followed.discarded]
        if not rows:
            raise InputError("all samples are discarded; take some of the discards back")
        annotations, located = annotations.take(np.array(rows)), located.take(np.array(rows))
        contents = tuple(contents[row] for row in rows)
    drawn = Audit((), (), ()) if audited is None else audited.renamed(renamed)
    audited, gone = drawn.follow(annotations.names, contents)
    answers = followed.labels | audited.given
    observed, answered, notes = _observe(annotations, classes, answers, rule)
    with show_progress("encoding", progress) as report:
        made = prepare(
            annotations,
            located,
            skip_bad=skip_bad,
            cache=cache,
            progress=report,
            scheduler=scheduler,
        )
    if len(made.kept) < len(annotations):
        annotations = annotations.take(made.kept)
        contents = tuple(contents[row] for row in made.kept)
        followed.leave_out([*annotations.names, *followed.discarded])
        audited, gone = drawn.follow(annotations.names, contents)
        answers = followed.labels | audited.given
        observed, answered, notes = _observe(annotations, classes, answers, rule)
    recalibration = None
    if audited.n_answers:
        # What the model claims of audited labels is what it claims without the answers.
        unknown = {name: one for name, one in answers.items() if name not in audited.given}
        before = _fit(rule, made, _observe(annotations, classes, unknown, rule)[0], device)
        recalibration = Recalibration.of(audited, claimed(before, audited, annotations.names))
    classifier = _fit(rule, made, observed, device)
    classifier.embedding = made.encoder  # fitted on features; new samples are encoded first
    notes += notes_on(annotations, made, classifier.candidates_) + followed.notes()
    gone = gone.checked
    if gone:
        names = listed([*map(repr, gone.samples)], 5)
        notes.append(
            f"{counted(len(gone), 'audited label')} not used, as the sample is not here now; kept "
            f"for when it is: {names}"
        )
    posterior = posterior_of(classifier)
    if outside and posterior is None:
        notes.append(
            "outside=True had no effect: labels outside the candidates get a probability only with "
            "rectifier='adaptive', from 20 samples on, and not where there are very many"
        )
    found = _result(
        annotations, observed, answered, classifier, made, notes, posterior, outside, recalibration
    )
    found = replace(
        found,
        contents=contents,
        records=tuple(one for one in records if one.sample in followed.given),
        absent=tuple(followed.absent.values()),
        absent_audit=gone or None,
        annotators=_annotators(annotations, classes, found.labels),
    )
    return replace(found, audit=draw_audit(found, audit or 0, audited))


def _sources(answers: Mapping[str, Any] | Sequence[Answers] | None) -> Sequence[Answers]:
    if answers is None:
        return ()
    if isinstance(answers, Answers):
        return (answers,)
    if isinstance(answers, Mapping):
        return (Answers(tuple(Answer(name, label) for name, label in answers.items())),)
    if not isinstance(answers, Sequence) or not all(isinstance(one, Answers) for one in answers):
        raise InputTypeError(
            f"answers map samples to labels, as read_answers returns them, not {answers!r:.60}"
        )
    return answers


def _fit(
    rule: Rectifier | BaselineModel, made: Prepared, observed: Observed, device: str
) -> FsPLLClassifier | BaselineModel:
    """Fit a new classifier to features and what is known about the labels."""
    if isinstance(rule, BaselineModel):
        return BaselineModel(rule.name, device=device).fit(made.features, observed)
    n, n_classes = observed.shape
    return FsPLLClassifier(rectifier=rule, device=device).fit(
        made.features,
        observed.candidates,
        votes=observed.votes,
        judgments=observed.judgments,
        settled=observed.settled,
        trace=n * max(n, n_classes) <= MOST_ENTRIES,
    )


def _observe(
    annotations: Annotations,
    classes: np.ndarray,
    answers: Mapping[str, Any],
    rule: Rectifier | BaselineModel,
) -> tuple[Observed, np.ndarray, list[str]]:
    """Return what a rectifier is to know about the labels, which rows a person settled, and notes.

    Labels that are nobody's candidate any more, as samples were left out or answered, are dropped.
    What annotators said of an answered sample stays: it tells how far they can be trusted.
    """
    before = classes
    classes, votes, answered, notes = apply_answers(
        annotations.names, classes, annotations.votes, answers
    )
    used = np.unique(votes.indices)
    classes, votes = classes[used], sparse.csr_array(votes[:, used])
    judgments = annotations.judgments
    if judgments is not None:
        place = {name: column for column, name in enumerate(classes.tolist())}
        judgments = judgments.relabel([place.get(name, -1) for name in before.tolist()]).known()
    observed = Observed.read(
        Candidates.from_mask(votes > 0, classes=classes),
        votes,
        judgments=judgments,
        settled=answered,
    )
    if isinstance(rule, BaselineModel):
        uses_votes = rule.uses_judgments
    else:
        uses_votes = rule.uses_votes and _accepts(rule, observed)
    if observed.votes is not None and not uses_votes:
        notes.append("the numbers of votes are not used here, only who may have which label")
        observed = replace(observed, votes=None)
    rule.check(observed)
    return observed, answered, notes


def _accepts(rule: Rectifier, observed: Observed) -> bool:
    """Tell whether a rectifier takes what was observed, so many samples included."""
    try:
        rule.check(observed)
    except InputError:
        return False
    return True


# -------------------------------------------------------------------- what was found


def _result(
    kept: Annotations,
    observed: Observed,
    answered: np.ndarray,
    classifier: FsPLLClassifier | BaselineModel,
    made: Prepared,
    notes: list[str],
    posterior: np.ndarray | None,
    outside: bool,
    recalibration: Recalibration | None,
) -> Labeling:
    candidates = classifier.candidates_
    probabilities = on_candidates(classifier.confidence_, candidates)
    missing = np.zeros(len(candidates))
    if posterior is not None:
        inside = np.asarray(probabilities.sum(axis=1)).ravel()
        missing = np.where(answered, 0.0, (1 - inside).clip(0.0, 1.0))
        if outside:
            probabilities = add_most_probable(probabilities, posterior)
    top, second, confidence, margin = two_likeliest(probabilities)
    trace = classifier.trace_
    by_features = naming = groups = None
    if trace is not None and trace.groups is not None and _uses_class_means(classifier):
        by_features, naming = _array(trace.groups.by_features), _array(trace.groups.naming)
        groups = Groups(by_features, _array(trace.groups.member), _relative_prior(observed))
    undecided = find_undecided(
        candidates,
        confidence,
        top,
        second,
        np.asarray(probabilities.sum(axis=0)).ravel(),
        by_features,
        naming,
        answered,
        posterior,
    )
    if recalibration is not None:
        probabilities = recalibration.apply(probabilities, top, answered)
        inside = probabilities.multiply(candidates.matrix).sum(axis=1)
        missing = np.where(answered, 0.0, (1 - np.asarray(inside).ravel()).clip(0.0, 1.0))
        _, _, confidence, margin = two_likeliest(probabilities)
    chosen = choose_questions(np.where(answered, 1.0, confidence), groups)
    # Where nothing was held out, the model assumes that no set lacks its label: those come last.
    asked = {row for row, _, _ in chosen}
    after = chosen[-1][2] if chosen else float(confidence.mean())
    chosen += [
        (one.index, 0.0, after)
        for one in undecided
        if posterior is None and one.kind == "contradiction" and one.index not in asked
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
        answers={
            kept.names[row]: candidates.names(row)[0] for row in np.flatnonzero(answered).tolist()
        },
        answered=answered,
        rounds=None if trace is None else Rounds.of(trace),
        notes=notes,
        unreadable=made.unreadable or [],
        pictures=made.pictures,
        files=kept.files,
        texts=kept.texts if made.pictures is None else None,
        observed=observed,
        missing=missing,
        outside=~np.asarray(candidates.matrix[np.arange(len(top)), top]).ravel(),
        check=getattr(classifier, "check_", None),
        understood=kept.summary if kept.source else "",
        columns=kept.columns,
    )


def _uses_class_means(classifier: FsPLLClassifier | BaselineModel) -> bool:
    """Tell whether the labels are mainly those of the class means, whose groups a trace has."""
    weight = getattr(getattr(classifier, "model_", None), "means_weight", None)
    return weight is None or float(weight) >= _MAINLY


def _annotators(
    annotations: Annotations, classes: np.ndarray, labels: np.ndarray
) -> list[Annotator]:
    """Return how often each annotator agrees with the labels, those who labeled most first."""
    said = annotations.judgments
    if said is None:
        return []
    column = {name: place for place, name in enumerate(classes.tolist())}
    found = said.agreement([column.get(label, -1) for label in labels.tolist()])
    each = zip(said.names, found.judged.tolist(), found.agreed.tolist(), strict=True)
    everyone = [Annotator(*one) for one in each if one[1]]
    return sorted(everyone, key=lambda one: (-one.judgments, one.name))


def _relative_prior(observed: Observed) -> np.ndarray:
    """Return how likely each candidate was before, over the mean of its set, of shape (n, l)."""
    mask = observed.mask().double()
    votes = observed.prior()
    prior = mask if votes is None else votes * mask
    mean = prior.sum(dim=-1, keepdim=True) / mask.sum(dim=-1, keepdim=True)
    return (prior / mean).numpy()


def _array(values: torch.Tensor) -> np.ndarray:
    return values.double().cpu().numpy()
