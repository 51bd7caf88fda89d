"""Data sets: images with one true class each, and tables with candidate sets.

>>> from fspll.datasets import DATASETS, load_glyphs
>>> DATASETS.names()[:3]
['glyphs', 'omniglot', 'mini-imagenet']
>>> DATASETS.get("Mini_ImageNet").name
'mini-imagenet'
>>> load_glyphs(5, 4, split="test")
ImageSet('glyphs/test': 20 images of 28x28, 5 classes)
"""

from fspll.datasets.base import DataSet, Download, ImageSet, PartialLabelSet
from fspll.datasets.fetch import get_dataset
from fspll.datasets.folders import load_image_folder
from fspll.datasets.glyphs import load_glyphs
from fspll.datasets.mini_imagenet import load_mini_imagenet
from fspll.datasets.omniglot import load_omniglot
from fspll.datasets.partial_label import load_partial_label_mat, load_partial_label_split
from fspll.datasets.registry import DATASETS, load_images, may_share_classes

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
