"""Partial-label learners from the literature, as scikit-learn estimators.

They learn from candidate sets as :class:`fspll.FsPLLClassifier` does and take the same ``y``, but
were made for many samples per class. :data:`BASELINES` has them by the name that papers use; other
packages add theirs through the entry-point group "fspll.baselines". Majority vote, Dawid-Skene and
CROWDLAB also take who said what (:class:`fspll.candidates.Judgments`).

>>> from fspll.baselines import BASELINES, PLKNN
>>> clf = PLKNN().fit([[0.0], [0.1], [1.0]], [{"a", "b"}, {"a"}, {"b"}])
>>> clf.predict([[0.2]]).tolist()
['a']
>>> BASELINES.get("pl-knn")
<class 'fspll.baselines.pl_knn.PLKNN'>
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fspll._common.registry import Registry

if TYPE_CHECKING:
    from fspll.baselines.base import PartialLabelClassifier
    from fspll.baselines.cc import CC
    from fspll.baselines.paloc import PALOC
    from fspll.baselines.people.crowdlab import CROWDLAB
    from fspll.baselines.people.dawid_skene import DawidSkene
    from fspll.baselines.people.majority_vote import MajorityVote
    from fspll.baselines.pl_aggd import PLAGGD
    from fspll.baselines.pl_ecoc import PLECOC
    from fspll.baselines.pl_knn import PLKNN
    from fspll.baselines.pl_leaf import PLLEAF
    from fspll.baselines.pop import POP
    from fspll.baselines.proden import PRODEN

# As "module:class", so that only the methods that are asked for are imported.
BASELINES: Registry[type[PartialLabelClassifier]] = Registry(
    "baseline",
    "fspll.baselines",
    {
        "PL-AGGD": "fspll.baselines.pl_aggd:PLAGGD",
        "PALOC": "fspll.baselines.paloc:PALOC",
        "PL-ECOC": "fspll.baselines.pl_ecoc:PLECOC",
        "PL-LEAF": "fspll.baselines.pl_leaf:PLLEAF",
        "PL-KNN": "fspll.baselines.pl_knn:PLKNN",
        "PRODEN": "fspll.baselines.proden:PRODEN",
        "CC": "fspll.baselines.cc:CC",
        "POP": "fspll.baselines.pop:POP",
        "Majority-Vote": "fspll.baselines.people.majority_vote:MajorityVote",
        "Dawid-Skene": "fspll.baselines.people.dawid_skene:DawidSkene",
        "CROWDLAB": "fspll.baselines.people.crowdlab:CROWDLAB",
    },
    expected="a class with fit and predict",
    accepts=lambda thing: (
        isinstance(thing, type) and hasattr(thing, "fit") and hasattr(thing, "predict")
    ),
)
"""Every known baseline; other packages add theirs through the group ``fspll.baselines``."""

__all__ = [
    "BASELINES",
    "CC",
    "CROWDLAB",
    "PALOC",
    "PLAGGD",
    "PLECOC",
    "PLKNN",
    "PLLEAF",
    "POP",
    "PRODEN",
    "DawidSkene",
    "MajorityVote",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return BASELINES.get(next(known for known in BASELINES if known.replace("-", "") == name))
    raise AttributeError(f"module 'fspll.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
