"""N-way K-shot tasks: task i of seed s is the same task on any machine, in any order.

Shapes: B tasks, n = n_way * n_shot support samples, q = n_way * n_query queries, l = n_way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fspll._common.arguments import check_count
from fspll._common.errors import TaskError
from fspll._common.words import counted
from fspll.candidates.corruption import check_ambiguity, corrupt_mask


@dataclass(frozen=True)
class TaskSettings:
    """The shape of a task: N-way, K-shot, queries per class, and how ambiguous its labels are.

    Attributes
    ----------
    n_way, n_shot, n_query : int
        Classes per task, support samples per class, queries per class.
    r : int
        Extra labels of an ambiguous sample.
    p : float
        Share of the support samples that is ambiguous.

    Examples
    --------
    >>> from fspll import TaskSettings
    >>> TaskSettings(n_way=5, n_shot=1, n_query=15, r=2)
    TaskSettings(n_way=5, n_shot=1, n_query=15, r=2, p=1.0)
    """

    n_way: int
    n_shot: int
    n_query: int
    r: int = 0
    p: float = 1.0

    def __post_init__(self) -> None:
        for name, least in (("n_way", 1), ("n_shot", 1), ("n_query", 0)):
            check_count(name, getattr(self, name), least, error=TaskError)
        check_ambiguity(self.p, self.r, self.n_way)


@dataclass(frozen=True, eq=False)
class Tasks:
    """One task or a batch of equally shaped tasks, as row numbers into the data set.

    Attributes
    ----------
    classes : int64 array of shape (..., l)
        Class of the data set behind each label of the task.
    support : int64 array of shape (..., n)
        Rows of the support samples, one class after the other.
    query : int64 array of shape (..., q)
        Rows of the queries, one class after the other.
    support_labels : int64 array of shape (n,)
        True labels 0 .. l-1, the same for every task.
    query_labels : int64 array of shape (q,)
        True labels of the queries.
    candidates : bool array of shape (..., n, l)
        Candidate sets of the support samples.
    query_candidates : bool array of shape (..., q, l)
        Candidate sets that the queries would carry, for objectives that read them.
    """

    classes: np.ndarray
    support: np.ndarray
    query: np.ndarray
    support_labels: np.ndarray
    query_labels: np.ndarray
    candidates: np.ndarray
    query_candidates: np.ndarray


@dataclass(frozen=True, eq=False)
class TaskSource:
    """Draw tasks from labeled samples by (seed, index).

    Parameters
    ----------
    labels : int array of shape (n_samples,)
        Class of every sample of the data set.
    settings : TaskSettings
        The shape of the tasks.
    seed : int
        Tasks of different seeds are independent.
    class_names : sequence of str, optional
        For error messages.

    Examples
    --------
    >>> from fspll import TaskSettings, TaskSource
    >>> source = TaskSource(np.repeat(np.arange(10), 20), TaskSettings(5, 2, 3, r=1), seed=0)
    >>> task = source.task(7)
    >>> task.candidates.shape, task.candidates.sum(axis=1).tolist()
    ((10, 5), [2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    >>> (source.batch([3, 7]).support[1] == task.support).all()
    np.True_
    """

    labels: np.ndarray
    settings: TaskSettings
    seed: int = 0
    class_names: Sequence[str] | None = None
    _rows: list[np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_count("seed", self.seed, error=TaskError)
        labels = np.asarray(self.labels)
        order = np.argsort(labels, kind="stable")
        present, starts = np.unique(labels[order], return_index=True)
        rows = np.split(order, starts[1:]) if len(present) else []
        needed = self.settings.n_shot + self.settings.n_query
        names = "n_shot + n_query" if self.settings.n_query else "n_shot"
        for label, members in zip(present, rows, strict=True):
            if len(members) < needed:
                raise TaskError(
                    f"{names} = {needed} but class {self._name(label)!r} has "
                    f"{counted(len(members), 'sample')}"
                )
        if len(present) < self.settings.n_way:
            raise TaskError(
                f"n_way = {self.settings.n_way} but the data set has "
                f"{counted(len(present), 'class', 'classes')}"
            )
        object.__setattr__(self, "_rows", rows)

    def _name(self, label: int) -> str | int:
        return self.class_names[label] if self.class_names is not None else int(label)

    def task(self, index: int) -> Tasks:
        """Return task ``index``; costs the same for any index."""
        check_count("a task index", index, error=TaskError)
        shape = self.settings
        # Streams of their own for pictures and for ambiguity: the same pictures come back for
        # every r, and the candidate sets of r are contained in those of r + 1.
        pictures, ambiguity, query_ambiguity = (
            np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, index, stream])))
            for stream in range(3)
        )
        classes = _draw(len(self._rows), shape.n_way, pictures)
        drawn = [
            self._rows[c][_draw(len(self._rows[c]), shape.n_shot + shape.n_query, pictures)]
            for c in classes
        ]
        rows = np.stack(drawn)
        support_labels = np.repeat(np.arange(shape.n_way), shape.n_shot)
        query_labels = np.repeat(np.arange(shape.n_way), shape.n_query)
        return Tasks(
            classes=np.array([self.labels[r[0]] for r in drawn], dtype=np.int64),
            support=rows[:, : shape.n_shot].ravel(),
            query=rows[:, shape.n_shot :].ravel(),
            support_labels=support_labels,
            query_labels=query_labels,
            candidates=corrupt_mask(support_labels, shape.n_way, shape.p, shape.r, ambiguity),
            query_candidates=corrupt_mask(
                query_labels, shape.n_way, shape.p, shape.r, query_ambiguity
            ),
        )

    def batch(self, indices: Iterable[int]) -> Tasks:
        """Return several tasks as one :class:`Tasks` with a leading batch dimension."""
        tasks = [self.task(index) for index in indices]
        if not tasks:
            raise TaskError("a batch needs at least one task index")
        stacked = {
            name: np.stack([getattr(task, name) for task in tasks])
            for name in ("classes", "support", "query", "candidates", "query_candidates")
        }
        return Tasks(
            support_labels=tasks[0].support_labels, query_labels=tasks[0].query_labels, **stacked
        )


def _draw(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Draw k of n without replacement, in random order, using ``rng.random`` alone."""
    return np.argsort(rng.random(n), kind="stable")[:k]
