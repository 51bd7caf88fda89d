"""Labeled images: what every image data set of the package loads into."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fspll._common.errors import DataError


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with one true class each; often a memory-mapped view of a cache file.

    Attributes
    ----------
    name : str
        What this is, for tables and file names, e.g. ``"omniglot/test"``.
    images : uint8 array of shape (n, H, W) or (n, H, W, 3)
        Gray images of characters have bright ink (255) on dark paper (0).
    labels : int64 array of shape (n,)
        Index into ``class_names``.
    class_names : tuple of str
        One name per class.
    families : tuple of str, optional
        One name per class, shared by classes that are variants of one thing, such as a character
        and its rotations: who holds out one of them holds out all. By default, every class is a
        family of its own.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    families: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.images.dtype != np.uint8 or self.images.ndim not in (3, 4):
            raise DataError(
                f"images of {self.name} must be uint8 of shape (n, H, W) or (n, H, W, 3), "
                f"not {self.images.dtype} of shape {self.images.shape}"
            )
        if len(self.images) != len(self.labels):
            raise DataError(
                f"{self.name} has {len(self.images)} images but {len(self.labels)} labels"
            )
        if self.families is not None and len(self.families) != self.n_classes:
            raise DataError(
                f"{self.name} has {self.n_classes} classes but {len(self.families)} families; "
                f"every class needs one"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.class_names)

    @cached_property
    def samples_per_class(self) -> np.ndarray:
        """Number of images of each class, of shape (n_classes,)."""
        return np.bincount(self.labels, minlength=self.n_classes)

    def class_families(self) -> np.ndarray:
        """Return the family of every class, of shape (n_classes,)."""
        return np.array(self.class_names if self.families is None else self.families)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.images.shape[1:]))
        return f"ImageSet({self.name!r}: {len(self)} images of {shape}, {self.n_classes} classes)"
