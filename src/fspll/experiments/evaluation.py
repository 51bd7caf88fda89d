"""Networks x methods x settings on meta-test tasks, as rows with intervals and p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fspll._common.errors import InputError
from fspll._common.words import counted
from fspll.datasets.base import ImageSet
from fspll.embeddings.encoders.base import Encoder
from fspll.embeddings.registry import load_embedding
from fspll.experiments.methods import (
    DEFAULT_METHODS,
    Maml,
    Method,
    Samples,
    Scores,
    adapts,
    find_method,
)
from fspll.experiments.statistics import signed_rank_p, summarize
from fspll.tasks import TaskSettings, TaskSource


@dataclass(frozen=True)
class Row:
    """One method of one checkpoint in one setting.

    ``p_value`` is that of the signed-rank test of query accuracies against the reference method on
    the same tasks; None for the reference itself, or when there is none. The calibration errors
    are those of the probabilities of queries and of support samples; None for methods without
    probabilities.
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
    """Return the settings of a grid; queries are 15 per class, or what the shots leave over."""
    fewest = int(data.samples_per_class.min())
    shots = list(n_shot)
    for k in shots:
        if k >= fewest:
            samples = counted(fewest, "sample")
            raise InputError(f"n_shot = {k} leaves no query: a class of {data.name} has {samples}")
    ways, extras = list(n_way), list(r)
    for n in ways:
        if n > data.n_classes:
            classes = counted(data.n_classes, "class", "classes")
            raise InputError(f"n_way = {n} but {data.name} has {classes}")
    return [
        TaskSettings(n, k, min(15, fewest - k), e, p) for e in extras for n in ways for k in shots
    ]


def evaluate(
    encoders: Sequence[Any],
    data: ImageSet,
    settings: Sequence[TaskSettings],
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    n_tasks: int = 100,
    seed: int = 0,
    against: str | None = None,
    maml_steps: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Evaluate every method on every network, on the same meta-test tasks.

    Parameters
    ----------
    encoders : sequence of Encoder, or of what :func:`~fspll.embeddings.load_embedding` takes
        MAML networks are adapted to each task; other networks embed the data once.
    data : ImageSet
        The meta-test classes.
    settings : sequence of TaskSettings
        Shapes of tasks; :func:`settings_grid` makes a grid of them.
    methods : sequence of str
        What :func:`fspll.experiments.methods.find_method` knows: "PN", "FsPLL-nM", "FsPLL",
        "Evidence", "ceiling", or the name of any rectifier or baseline, those of other packages
        included.
    n_tasks, seed : int
        Tasks per setting, and which.
    against : str, optional
        The method, or "checkpoint:method", that p-values compare with.
    maml_steps : int
        Steps of adaptation of MAML networks.
    progress : callable, optional
        Called as ``progress(done, total)`` after every setting.

    Returns
    -------
    list of Row
        By setting, then network, then method.

    Examples
    --------
    >>> from fspll.datasets import load_glyphs
    >>> glyphs = load_glyphs(10, 10, split="test")
    >>> tasks = [TaskSettings(n_way=5, n_shot=4, n_query=6, r=2)]
    >>> rows = evaluate(["omniglot-conv4"], glyphs, tasks, ["PN", "Evidence"], n_tasks=20)
    >>> for row in rows:
    ...     print(f"{row.method}: {row.mean:.2f} ± {row.half_width:.2f}")
    PN: 0.70 ± 0.07
    Evidence: 0.94 ± 0.06
    """
    chosen = [find_method(name) for name in methods]
    encoders = [load_embedding(encoder) for encoder in encoders]
    pairs = _pairs(encoders, chosen, maml_steps)
    if against is not None:
        _find(against, pairs)  # before hours of work, not after
    samples = {encoder.name: Samples(data, encoder) for encoder in encoders}
    rows: list[Row] = []
    for done, setting in enumerate(settings, start=1):
        tasks = TaskSource(data.labels, setting, seed, data.class_names).batch(range(n_tasks))
        scores = {
            (checkpoint, name): method.score(samples[checkpoint], tasks)
            for (checkpoint, name), method in pairs.items()
        }
        rows += _rows(scores, setting, seed, against)
        if progress is not None:
            progress(done, len(settings))
    return rows


def _pairs(
    encoders: Sequence[Encoder], methods: Sequence[Method], maml_steps: int
) -> dict[tuple[str, str], Method]:
    """Return everything that will be evaluated, by checkpoint and method."""
    names = [encoder.name for encoder in encoders]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise InputError(f"two checkpoints are called {min(repeated)!r}; give one another name")
    pairs: dict[tuple[str, str], Method] = {}
    for encoder in encoders:
        if adapts(encoder):
            usable: list[Method] = [Maml(steps=maml_steps)]
        else:
            usable = [method for method in methods if not method.adapts_network]
        if not usable:
            raise InputError(
                f"{encoder.name} embeds samples, and {methods[0].name} needs a network that was "
                f"meta-trained to be adapted"
            )
        pairs |= {(encoder.name, method.name): method for method in usable}
    return pairs


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
