"""Data sets: images with one true class each, and tables with candidate sets.

>>> from fspll.datasets import DATASETS, load_glyphs
>>> DATASETS.names()[:3]
['glyphs', 'omniglot', 'mini-imagenet']
>>> DATASETS.get("Mini_ImageNet").name
'mini-imagenet'
>>> load_glyphs(5, 4, split="test")
ImageSet('glyphs/test': 20 images of 28x28, 5 classes)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fspll.datasets.base import DataSet, Download, ImageSet, PartialLabelSet
    from fspll.datasets.fetch import get_dataset
    from fspll.datasets.folders import load_image_folder
    from fspll.datasets.glyphs import load_glyphs
    from fspll.datasets.mini_imagenet import load_mini_imagenet
    from fspll.datasets.omniglot import load_omniglot
    from fspll.datasets.partial_label import load_partial_label_mat, load_partial_label_split
    from fspll.datasets.registry import DATASETS, load_images, may_share_classes

# Where each public name lives. They are imported when first used, so that ``fspll data list`` does
# not wait for torch and scikit-learn.
_HOME = {
    "DATASETS": "fspll.datasets.registry",
    "DataSet": "fspll.datasets.base",
    "Download": "fspll.datasets.base",
    "ImageSet": "fspll.datasets.base",
    "PartialLabelSet": "fspll.datasets.base",
    "get_dataset": "fspll.datasets.fetch",
    "load_glyphs": "fspll.datasets.glyphs",
    "load_image_folder": "fspll.datasets.folders",
    "load_images": "fspll.datasets.registry",
    "load_mini_imagenet": "fspll.datasets.mini_imagenet",
    "load_omniglot": "fspll.datasets.omniglot",
    "load_partial_label_mat": "fspll.datasets.partial_label",
    "load_partial_label_split": "fspll.datasets.partial_label",
    "may_share_classes": "fspll.datasets.registry",
}

__all__ = [
    "DATASETS",
    "DataSet",
    "Download",
    "ImageSet",
    "PartialLabelSet",
    "get_dataset",
    "load_glyphs",
    "load_image_folder",
    "load_images",
    "load_mini_imagenet",
    "load_omniglot",
    "load_partial_label_mat",
    "load_partial_label_split",
    "may_share_classes",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
