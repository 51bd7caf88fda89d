"""The compared partial-label methods on few-shot tasks, one task after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from fspll.baselines import PALOC, PLAGGD, PLECOC, PLKNN, PLLEAF
from fspll.baselines.base import PartialLabelClassifier
from fspll.experiments.evaluation import Scores
from fspll.tasks import Tasks

BASELINES: dict[str, Callable[[], PartialLabelClassifier]] = {
    "PL-AGGD": PLAGGD,
    "PALOC": PALOC,
    "PL-ECOC": lambda: PLECOC(random_state=0),
    "PL-LEAF": PLLEAF,
    "PL-KNN": PLKNN,
}


def score_baseline(features: Tensor, tasks: Tasks, name: str) -> Scores:
    """Fit a method to each task of a batch and score it; see ``evaluation.score_tasks``.

    Parameters
    ----------
    features : Tensor of shape (n_samples, m)
    tasks : Tasks
        With a leading batch dimension.
    name : str
        A name of :data:`BASELINES`.
    """
    rows = features.cpu().numpy()
    query, support = [], []
    for known, asked, mask in zip(tasks.support, tasks.query, tasks.candidates, strict=True):
        model = BASELINES[name]().fit(rows[known], mask)
        query.append(np.mean(model.predict(rows[asked]) == tasks.query_labels))
        found = model.labels_ if hasattr(model, "labels_") else model.predict(rows[known])
        support.append(np.mean(found == tasks.support_labels))
    return Scores(np.array(query), np.array(support))
