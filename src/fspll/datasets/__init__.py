"""Data sets: images with one true class each, and tables with candidate sets."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fspll.datasets.folders import load_image_folder
    from fspll.datasets.glyphs import load_glyphs
    from fspll.datasets.images import ImageSet
    from fspll.datasets.mini_imagenet import load_mini_imagenet
    from fspll.datasets.omniglot import load_omniglot
    from fspll.datasets.partial_label import (
        PartialLabelSet,
        load_partial_label_mat,
        load_partial_label_split,
    )

# Where each public name lives. They are imported when first used, so that ``fspll data list`` does
# not wait for torch and scikit-learn.
_HOME = {
    "ImageSet": "fspll.datasets.images",
    "PartialLabelSet": "fspll.datasets.partial_label",
    "load_glyphs": "fspll.datasets.glyphs",
    "load_image_folder": "fspll.datasets.folders",
    "load_mini_imagenet": "fspll.datasets.mini_imagenet",
    "load_omniglot": "fspll.datasets.omniglot",
    "load_partial_label_mat": "fspll.datasets.partial_label",
    "load_partial_label_split": "fspll.datasets.partial_label",
}

__all__ = [
    "ImageSet",
    "PartialLabelSet",
    "load_glyphs",
    "load_image_folder",
    "load_mini_imagenet",
    "load_omniglot",
    "load_partial_label_mat",
    "load_partial_label_split",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fspll.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
