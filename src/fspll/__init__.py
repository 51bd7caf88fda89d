"""fspll learns a classifier from a handful of samples whose labels are ambiguous.

Each sample carries a set of candidate labels, exactly one of which is right.

>>> from fspll import FsPLLClassifier
>>> clf = FsPLLClassifier().fit([[0.0], [0.1], [1.0]], [{"a", "b"}, {"a"}, {"b"}])
>>> clf.labels_.tolist()
['a', 'a', 'b']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fspll._common.version import __version__

if TYPE_CHECKING:
    from fspll._common.errors import FsPLLError
    from fspll.annotations import read_annotations
    from fspll.candidates import Candidates, corrupt
    from fspll.classifier import FsPLLClassifier
    from fspll.diagnosis import diagnose
    from fspll.labeling import label
    from fspll.rectifiers import infer_labels, rectify
    from fspll.tasks import TaskSettings, TaskSource

# Where each public name lives. They are imported when first used, so that ``fspll --version`` does
# not wait for torch.
_HOME = {
    "Candidates": "fspll.candidates",
    "FsPLLClassifier": "fspll.classifier",
    "FsPLLError": "fspll._common.errors",
    "TaskSettings": "fspll.tasks",
    "TaskSource": "fspll.tasks",
    "corrupt": "fspll.candidates",
    "diagnose": "fspll.diagnosis",
    "infer_labels": "fspll.rectifiers",
    "label": "fspll.labeling",
    "read_annotations": "fspll.annotations",
    "rectify": "fspll.rectifiers",
}

__all__ = [
    "Candidates",
    "FsPLLClassifier",
    "FsPLLError",
    "TaskSettings",
    "TaskSource",
    "__version__",
    "corrupt",
    "diagnose",
    "infer_labels",
    "label",
    "read_annotations",
    "rectify",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
