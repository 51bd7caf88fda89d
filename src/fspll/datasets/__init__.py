"""Data sets: images with one true class each, and tables with candidate sets."""

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
