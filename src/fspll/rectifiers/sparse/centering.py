"""Features that may lie in a file: never copied as a whole, and centered block by block.

Shapes: n samples, m features.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_SAMPLES_AT_ONCE = 1 << 16


def blocks(length: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of consecutive blocks of at most ``at_once``."""
    for a in range(0, length, at_once):
        yield a, min(a + at_once, length)


def shared_tensor(array: np.ndarray) -> Tensor:
    """Return a tensor of the same memory, which nobody must write to.

    Torch warns of arrays that are read-only, as those of a file that is memory-mapped are.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(np.require(array, requirements=["C"]))


@dataclass(frozen=True, eq=False)
class Centered:
    """Features (n, m) less their mean, in some unit; the same to the last bit for any block.

    Attributes
    ----------
    features : array of shape (n, m)
        As they came, in memory or memory-mapped.
    center : array of shape (m,)
    unit : float, of the features' type
    """

    features: np.ndarray
    center: np.ndarray
    unit: np.floating

    @classmethod
    def of(cls, features: np.ndarray, *, scaled: bool = False) -> Centered:
        """Center features; if ``scaled``, in units of a power of two, which rounds nothing.

        Squares then neither overflow nor vanish.
        """
        center = features.mean(axis=0, dtype=np.float64).astype(features.dtype)
        one = features.dtype.type(1)
        found = cls(features, np.asarray(center), one)
        if not scaled:
            return found
        largest = max(np.abs(found.rows(i, j)).max() for i, j in found.blocks())
        return cls(features, found.center, np.ldexp(one, int(np.frexp(largest)[1]) - 1))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.features.shape[0], self.features.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Of the features."""
        return self.features.dtype

    def __len__(self) -> int:
        return len(self.features)

    def rows(self, first: int, end: int) -> np.ndarray:
        """Return some samples in memory, of shape (end - first, m)."""
        part = np.subtract(self.features[first:end], self.center)
        part /= self.unit
        return part

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the ends of blocks that memory holds easily."""
        return blocks(len(self), _SAMPLES_AT_ONCE)

    def squared_norms(self) -> np.ndarray:
        """Squared length of every sample, (n,)."""
        parts = (self.rows(i, j) for i, j in self.blocks())
        return np.concatenate([np.einsum("ij,ij->i", part, part) for part in parts])
