"""Checkpoints x methods x settings on meta-test tasks, as rows with intervals and p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fspll._common.errors import InputError
from fspll.datasets import ImageSet
from fspll.embeddings import Conv4Classifier, Encoder, embed_images, load_embedding
from fspll.experiments.baselines import BASELINES, score_baseline
from fspll.experiments.evaluation import METHODS, Scores, score_maml, score_tasks
from fspll.experiments.statistics import signed_rank_p, summarize
from fspll.tasks import TaskSettings, TaskSource


@dataclass(frozen=True)
class Row:
    """One method of one checkpoint in one setting.

    ``p_value`` is that of the signed-rank test of query accuracies against the reference method on
    the same tasks; None for the reference itself, or when there is none. The calibration errors
    are those of the probabilities of queries and of support samples; None for MAML.
    """

    checkpoint: str
    method: str
    n_way: int
    n_shot: int
    n_query: int
    r: int
    p: float
    n_tasks: int
    seed: int
    mean: float
    std: float
    half_width: float
    support_mean: float
    p_value: float | None = None
    query_calibration: float | None = None
    support_calibration: float | None = None


def settings_grid(
    data: ImageSet, n_way: Iterable[int], n_shot: Iterable[int], r: Iterable[int], p: float = 1.0
) -> list[TaskSettings]:
    """Return the settings of a grid; queries are 15 a class, or what the shots leave over."""
    fewest = int(data.samples_per_class.min())
    shots = list(n_shot)
    for k in shots:
        if k >= fewest:
            raise InputError(f"n_shot = {k} leaves no query: a class of {data.name} has {fewest}")
    ways, extras = list(n_way), list(r)
    for n in ways:
        if n > data.n_classes:
            raise InputError(f"n_way = {n} but {data.name} has {data.n_classes} classes")
    return [
        TaskSettings(n, k, min(15, fewest - k), e, p) for e in extras for n in ways for k in shots
    ]


def compare(
    encoders: Sequence[Any],
    data: ImageSet,
    settings: Sequence[TaskSettings],
    methods: Sequence[str],
    *,
    n_tasks: int = 100,
    seed: int = 0,
    against: str | None = None,
    maml_steps: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run every method of every checkpoint on the same meta-test tasks.

    Parameters
    ----------
    encoders : sequence of Encoder, or of what :func:`~fspll.embeddings.load_embedding` takes
        MAML networks are adapted to each task; other networks embed the data once.
    data : ImageSet
        The meta-test classes.
    settings, methods
        What to run; methods are names of :data:`fspll.experiments.evaluation.METHODS`, or of
        :data:`fspll.experiments.baselines.BASELINES`, which take the tasks one by one.
    n_tasks, seed : int
        Tasks a setting, and which.
    against : str, optional
        The method, or "checkpoint:method", that p-values compare with.
    maml_steps : int
        Steps of adaptation of MAML networks.
    progress : callable, optional
        Called as ``progress(done, total)`` after every setting.
    """
    known = (*METHODS, *BASELINES)
    unknown = [name for name in methods if name not in known]
    if unknown:
        raise InputError(f"method must be one of {', '.join(known)}, not {unknown[0]!r}")
    encoders = [load_embedding(encoder) for encoder in encoders]
    keys = _keys(encoders, methods)
    if against is not None:
        _find(against, keys)  # before hours of work, not after
    features = {
        id(encoder): embed_images(encoder, data) for encoder in encoders if not _is_maml(encoder)
    }
    rows: list[Row] = []
    for done, setting in enumerate(settings, start=1):
        tasks = TaskSource(data.labels, setting, seed, data.class_names).batch(range(n_tasks))
        scores: dict[tuple[str, str], Scores] = {}
        for encoder in encoders:
            if id(encoder) in features:
                for method in methods:
                    embedded = features[id(encoder)]
                    scores[encoder.name, method] = (
                        score_tasks(embedded, tasks, METHODS[method])
                        if method in METHODS
                        else score_baseline(embedded, tasks, method)
                    )
            else:
                plan = encoder.metadata.get("training", {}).get("plan", {})
                scores[encoder.name, "MAML"] = score_maml(
                    encoder.network,
                    data,
                    tasks,
                    steps=maml_steps,
                    rate=float(plan.get("inner_rate", 0.5)),
                )
        rows += _rows(scores, setting, seed, against)
        if progress is not None:
            progress(done, len(settings))
    return rows


def _is_maml(encoder: Encoder) -> bool:
    return isinstance(getattr(encoder, "network", None), Conv4Classifier)


def _keys(encoders: Sequence[Any], methods: Sequence[str]) -> list[tuple[str, str]]:
    """Return (checkpoint, method) of everything that will be evaluated."""
    names = [encoder.name for encoder in encoders]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"two checkpoints are called {min(twice)!r}; give one another name")
    return [
        (encoder.name, method)
        for encoder in encoders
        for method in (["MAML"] if _is_maml(encoder) else methods)
    ]


def _find(against: str, keys: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the first (checkpoint, method) that METHOD or CHECKPOINT:METHOD names."""
    keys = list(keys)
    for key in keys:
        if against in (key[1], ":".join(key)):
            return key
    known = ", ".join(":".join(key) for key in keys)
    raise InputError(f"nothing evaluated is called {against!r}; there are {known}")


def _rows(
    scores: dict[tuple[str, str], Scores], setting: TaskSettings, seed: int, against: str | None
) -> list[Row]:
    reference = None if against is None else _find(against, scores)
    rows = []
    for (checkpoint, method), score in scores.items():
        figures = summarize(score.query_accuracy)
        compared = reference is not None and (checkpoint, method) != reference
        rows.append(
            Row(
                checkpoint=checkpoint,
                method=method,
                **asdict(setting),
                n_tasks=figures.n_tasks,
                seed=seed,
                mean=figures.mean,
                std=figures.std,
                half_width=figures.half_width,
                support_mean=float(score.support_accuracy.mean()),
                p_value=signed_rank_p(score.query_accuracy, scores[reference].query_accuracy)
                if compared and reference is not None
                else None,
                query_calibration=score.query_calibration,
                support_calibration=score.support_calibration,
            )
        )
    return rows
