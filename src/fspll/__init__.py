"""fspll learns a classifier from a handful of samples whose labels are ambiguous.

Each sample carries a set of candidate labels, exactly one of which is right.

>>> from fspll import FsPLLClassifier
>>> clf = FsPLLClassifier().fit([[0.0], [0.1], [1.0]], [{"a", "b"}, {"a"}, {"b"}])
>>> clf.labels_.tolist()
['a', 'a', 'b']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fspll._common.lazy import lazy_names
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

# They are imported when first used, so that ``fspll --version`` does not wait for torch.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_common.errors": "FsPLLError",
        "annotations": "read_annotations",
        "candidates": "Candidates corrupt",
        "classifier": "FsPLLClassifier",
        "diagnosis": "diagnose",
        "labeling": "label",
        "rectifiers": "infer_labels rectify",
        "tasks": "TaskSettings TaskSource",
    },
    "__version__",
)

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
