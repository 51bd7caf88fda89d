"""Earlier tasks that a head is fitted to: drawn from classes, or a table of candidate sets.

Shapes: n samples, l classes, m features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fspll._common.arguments import check_choice, check_count
from fspll._common.errors import InputError, TaskError
from fspll._common.words import counted
from fspll.candidates.observed import Observed
from fspll.candidates.sets import Candidates
from fspll.metalearning import REGIMES
from fspll.rectifiers.registry import DEFAULT, RECTIFIERS
from fspll.tasks import TaskSettings, TaskSource

HEAD_REGIMES = ("leave-one-out", "precise")
_GROUPS = 4  # of classes, as far as there are enough
_LEAST_MASS = 2  # samples of a class, below which leaving one out tells nothing


class Episode(NamedTuple):
    """One earlier task: what was observed, and what the default rectifier makes of it."""

    rows: Tensor  # (n,) int, of the features
    candidates: Tensor  # (n, l) bool
    confidence: Tensor  # (n, l)


@dataclass(frozen=True)
class HeadPlan:
    """How earlier tasks are drawn; everything that decides a head besides the features.

    Attributes
    ----------
    n_way, n_shot : int
        Classes per task, at most: those of a group where it has fewer. Samples per class; see
        :func:`suited_to` for classes that have fewer.
    r : tuple of int
        Extra labels of an ambiguous sample; task i takes the (i mod len)-th.
    p : float
        Share of ambiguous samples.
    n_tasks : int
        Tasks in all.
    regime : {"leave-one-out", "precise"}
        Whether candidate sets are read, or true labels.
    seed : int
        Of the tasks and of the groups of classes.
    """

    n_way: int = 20
    n_shot: int = 10
    r: tuple[int, ...] = (1,)
    p: float = 1.0
    n_tasks: int = 200
    regime: str = "leave-one-out"
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("regime of a head", self.regime, HEAD_REGIMES)
        if not isinstance(self.r, tuple) or not self.r:
            raise InputError(f"r must be a tuple of numbers of extra labels, not {self.r!r}")
        for r in self.r:
            TaskSettings(self.n_way, self.n_shot, 0, r, self.p)
        for name, least in (("n_way", 2), ("n_shot", 2), ("n_tasks", 1), ("seed", 0)):
            check_count(name, getattr(self, name), least)

    @property
    def precise(self) -> bool:
        """Whether true labels are read."""
        return REGIMES.get(self.regime).support == "precise"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary that JSON can hold."""
        return {**asdict(self), "r": list(self.r)}


def tasks_of_classes(
    features: Tensor,
    labels: np.ndarray,
    plan: HeadPlan,
    class_names: Sequence[str] | None = None,
    families: np.ndarray | None = None,
) -> list[list[Episode]]:
    """Draw tasks from samples of known classes, each within one group of classes.

    Parameters
    ----------
    features : Tensor of shape (n, m)
        For the rectifier.
    labels : int array of shape (n,)
    plan : HeadPlan
    class_names : sequence of str, optional
        For error messages.
    families : array, optional
        One per class; classes of one family are in the same group.
    """
    sources = _sources(labels, plan, class_names, families)
    drawn = []
    for number, (rows, of_r) in enumerate(sources):
        indices = range(number, max(plan.n_tasks, len(sources)), len(sources))
        episodes = []
        for place, source in enumerate(of_r):
            tasks = source.batch(indices[place :: len(of_r)] or indices[:1])
            chosen = torch.from_numpy(rows[tasks.support])
            candidates = torch.from_numpy(tasks.candidates)
            confidence = _rectified(features[chosen], Observed(candidates))
            episodes += [Episode(*one) for one in zip(chosen, candidates, confidence, strict=True)]
        drawn.append(episodes)
    return drawn


def suited_to(labels: np.ndarray, plan: HeadPlan) -> tuple[np.ndarray, HeadPlan]:
    """Return which samples tasks can be drawn from, bool (n,), and the plan for them.

    Where classes have fewer samples than ``n_shot``, tasks take as many as half of the classes
    have, and as many classes as two groups need. Classes that have fewer yet are left out.

    >>> labels = np.repeat(np.arange(8), [2, 3, 5, 5, 5, 5, 6, 7])
    >>> rows, plan = suited_to(labels, HeadPlan(n_shot=10, r=(1,)))
    >>> plan.n_shot, np.unique(labels[rows]).tolist()
    (5, [2, 3, 4, 5, 6, 7])
    """
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    wanted = min(len(sizes), max((len(sizes) + 1) // 2, 2 * _least_classes(plan)))
    n_shot = min(plan.n_shot, max(2, int(np.sort(sizes)[-wanted])))
    return sizes[place] >= n_shot, replace(plan, n_shot=n_shot)


def check_classes(
    labels: np.ndarray,
    plan: HeadPlan,
    class_names: Sequence[str] | None = None,
    families: np.ndarray | None = None,
) -> None:
    """Raise if the tasks of a plan cannot be drawn, before anything is encoded for them."""
    _sources(labels, plan, class_names, families)


def _sources(
    labels: np.ndarray,
    plan: HeadPlan,
    class_names: Sequence[str] | None,
    families: np.ndarray | None,
) -> list[tuple[np.ndarray, list[TaskSource]]]:
    """Return the rows of every group of classes, and where its tasks come from for every r."""
    r = (0,) if plan.precise else plan.r
    found = []
    for classes in _groups_of_classes(labels, families, _least_classes(plan), plan.seed):
        rows = np.flatnonzero(np.isin(labels, classes))
        n_way = min(plan.n_way, len(classes))
        shapes = [TaskSettings(n_way, plan.n_shot, 0, extra, plan.p) for extra in r]
        found.append(
            (rows, [TaskSource(labels[rows], one, plan.seed, class_names) for one in shapes])
        )
    return found


def _least_classes(plan: HeadPlan) -> int:
    """Return how many classes a group needs: candidates, and a label that is none."""
    return (0 if plan.precise else max(plan.r)) + 2


def tasks_of_sets(features: Tensor, candidates: Candidates, plan: HeadPlan) -> list[list[Episode]]:
    """Draw tasks from samples with candidate sets, whose true classes nobody knows.

    All samples are rectified at once; each then counts as one of its most credible class where
    tasks are drawn, and by its set and its confidences where a head is fitted and judged. Tasks are
    few-shot ones as well: with hundreds of samples per class, another head would seem the best.

    Parameters
    ----------
    features : Tensor of shape (n, m)
    candidates : Candidates
        Of n samples.
    plan : HeadPlan
        ``r`` and ``p`` do not count. Classes with fewer than ``n_shot`` samples give all of them.
    """
    observed = Observed(candidates)
    confidence, mask = _rectified(features, observed), observed.mask()
    likeliest = confidence.argmax(dim=1).numpy()
    usable, sizes = np.unique(likeliest, return_counts=True)
    usable = usable[sizes >= _LEAST_MASS]
    groups = _groups_of_classes(usable, None, 2, plan.seed)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([plan.seed, 0x5E75])))
    drawn = []
    for classes in groups:
        members = {label: np.flatnonzero(likeliest == label) for label in classes}
        episodes = []
        for _ in range(max(1, plan.n_tasks // len(groups))):
            chosen = rng.permutation(classes)[: plan.n_way]
            picked = [rng.permutation(members[label])[: plan.n_shot] for label in chosen]
            rows = torch.from_numpy(np.concatenate(picked))
            # The rest of a set points to classes whose own samples are not in this task.
            columns = confidence[rows].sum(dim=0) >= _LEAST_MASS
            columns[torch.from_numpy(chosen)] = True
            episodes.append(Episode(rows, mask[rows][:, columns], confidence[rows][:, columns]))
        drawn.append(episodes)
    return drawn


def _rectified(features: Tensor, observed: Observed) -> Tensor:
    """Return the default rectifier's confidences, (..., n, l)."""
    mask = observed.mask()
    if not bool((mask.sum(dim=-1) > 1).any()):
        return mask.float()
    found = RECTIFIERS.get(DEFAULT)().fit(features, observed).confidence
    return (found if isinstance(found, Tensor) else torch.from_numpy(found.toarray())).float()


def _groups_of_classes(
    labels: np.ndarray, families: np.ndarray | None, least: int, seed: int
) -> list[np.ndarray]:
    """Deal the classes that occur to groups of ``least`` or more, families kept together."""
    present = np.unique(labels)
    family = present if families is None else np.asarray(families)[present]
    names = np.unique(family)
    n_groups = min(_GROUPS, len(names) // least)
    if n_groups < 2:
        raise TaskError(
            f"there are {counted(len(names), 'class', 'classes')} to adapt an encoder to, but at "
            f"least {2 * least} are needed: two groups that are held out in turn"
        )
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0x4E1D])))
    shuffled = names[np.argsort(rng.random(len(names)), kind="stable")]
    return [present[np.isin(family, shuffled[start::n_groups])] for start in range(n_groups)]
