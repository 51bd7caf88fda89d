"""The data sets that commands take by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from fspll._common.errors import InputError
from fspll.datasets.images import ImageSet

NAMES = ("glyphs", "omniglot", "mini-imagenet")


def load_split(name: str, split: Literal["train", "test"], root: Path | None = None) -> ImageSet:
    """Load the meta-training or the meta-test classes of a data set.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`, or a folder with a folder of images a class.
    split : {"train", "test"}
    root : path, optional
        Where the files are, instead of the data folder.
    """
    from fspll import datasets

    if name == "glyphs":
        return datasets.load_glyphs(1000 if split == "train" else 500, split=split)
    if name == "omniglot":
        return datasets.load_omniglot(split, root=root)
    if name in ("mini-imagenet", "mini_imagenet"):
        return datasets.load_mini_imagenet("meta-train" if split == "train" else "test", root=root)
    if Path(name).is_dir():
        return datasets.load_image_folder(Path(name))
    raise InputError(f"data set must be one of {', '.join(NAMES)} or a folder, not {name!r}")


def numbers(text: str, option: str) -> list[int]:
    """Read a comma-separated list of whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} takes whole numbers such as 5,10,20, not {text!r}") from None
