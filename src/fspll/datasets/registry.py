"""The data sets by name, for the library, every command and the experiments."""

from __future__ import annotations

from pathlib import Path

from fspll._common.errors import InputError
from fspll._common.registry import Registry
from fspll.datasets.base import DataSet, ImageSet
from fspll.datasets.folders import load_image_folder


class DataSets(Registry[DataSet]):
    """Data sets by name; another package may register an instance, or a class that is made one."""

    def get(self, name: str) -> DataSet:
        """Return a data set; a wrong name suggests the right one."""
        found: object = super().get(name)
        dataset = found() if isinstance(found, type) else found
        if not isinstance(dataset, DataSet):
            raise InputError(
                f"what is registered as the data set {name!r} is of type "
                f"{type(dataset).__name__}, not a DataSet"
            )
        return dataset


DATASETS = DataSets(
    "data set",
    "fspll.datasets",
    {
        "glyphs": "fspll.datasets.glyphs:GLYPHS",
        "omniglot": "fspll.datasets.omniglot:OMNIGLOT",
        "mini-imagenet": "fspll.datasets.mini_imagenet:MINI_IMAGENET",
        "lost": "fspll.datasets.partial_label:LOST",
        "MSRCv2": "fspll.datasets.partial_label:MSRCV2",
    },
)
"""Every known data set; other packages add theirs through the group ``fspll.datasets``."""


def load_images(
    name: str, split: str, *, root: Path | str | None = None, size: int | None = None
) -> ImageSet:
    """Load the meta-training or the meta-test classes of a data set by name, or of a folder.

    Parameters
    ----------
    name : str
        A name of :data:`DATASETS`, or a folder that has one sub-folder of images per class; see
        :func:`~fspll.datasets.folders.load_image_folder` for how its classes are split.
    split : {"train", "test"}
        Classes to train on, or other classes to test on. Folders also have ``"all"``.
    root : path, optional
        Where the files of a named data set are, instead of the data folder.
    size : int, optional
        Height and width of the images, when not the data set's usual ones.

    Examples
    --------
    >>> load_images("glyphs", "test", size=8)
    ImageSet('glyphs/test': 10000 images of 8x8, 500 classes)
    """
    if name not in DATASETS:
        if not Path(name).expanduser().is_dir():
            raise InputError(f"{DATASETS.unknown(name)}; nor is it a folder of images")
        return load_image_folder(name, split=split, size=84 if size is None else size)
    dataset = DATASETS.get(name)
    if split == "all":
        raise InputError(
            f"{dataset.name} has classes to train on and others to test on; all of them at once "
            "are for folders of images"
        )
    if dataset.kind == "vectors":
        raise InputError(
            f"{dataset.name} holds feature vectors, one candidate set each, where images of "
            "classes to train or to test on were expected"
        )
    data = dataset.load(split, root=root, size=size)
    if not isinstance(data, ImageSet):
        raise InputError(f"the data set {dataset.name!r} loads {type(data).__name__}, not images")
    return data


def may_share_classes(trained_on: str, tested_on: str) -> bool:
    """Whether two image sets, by their names, may have classes in common.

    >>> may_share_classes("pets/train", "pets/test"), may_share_classes("pets/train", "pets")
    (False, True)
    """
    (one, _, part), (other, _, other_part) = trained_on.partition("/"), tested_on.partition("/")
    return one == other and (part == other_part or not part or not other_part)
