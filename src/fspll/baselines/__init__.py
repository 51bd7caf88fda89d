"""Partial-label learners from the literature, as scikit-learn estimators.

They learn from candidate sets as :class:`fspll.FsPLLClassifier` does and take the same ``y``, but
were made for many samples a class.

>>> from fspll.baselines import PLKNN
>>> clf = PLKNN().fit([[0.0], [0.1], [1.0]], [{"a", "b"}, {"a"}, {"b"}])
>>> clf.predict([[0.2]]).tolist()
['a']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fspll.baselines.paloc import PALOC
    from fspll.baselines.pl_aggd import PLAGGD
    from fspll.baselines.pl_ecoc import PLECOC
    from fspll.baselines.pl_knn import PLKNN
    from fspll.baselines.pl_leaf import PLLEAF

# Where each method lives; one is imported when it is first used.
_HOME = {
    "PALOC": "fspll.baselines.paloc",
    "PLAGGD": "fspll.baselines.pl_aggd",
    "PLECOC": "fspll.baselines.pl_ecoc",
    "PLKNN": "fspll.baselines.pl_knn",
    "PLLEAF": "fspll.baselines.pl_leaf",
}

__all__ = ["PALOC", "PLAGGD", "PLECOC", "PLKNN", "PLLEAF"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
