"""Sparse matrices and shares among the tensors of a model file, checked when they are read.

Shapes: n rows, l columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll._common.compressed import compressed_problem
from fspll._common.errors import InputError

FLOATS = (torch.float32, torch.float64)
SLACK = 1e-3  # by which shares may miss one: rounding of float32


def require(holds: bool, complaint: str) -> None:
    """Raise with a complaint unless something holds that every written file has."""
    if not holds:
        raise InputError(complaint)


def matrix_to_tensors(name: str, matrix: np.ndarray | sparse.csr_array) -> dict[str, Tensor]:
    """Return a dense matrix as one tensor, a sparse one as its values and its pattern."""
    if isinstance(matrix, np.ndarray):
        return {name: torch.from_numpy(matrix.copy())}
    return {f"{name}.data": torch.from_numpy(matrix.data.copy())} | pattern_to_tensors(name, matrix)


def pattern_to_tensors(name: str, matrix: sparse.csr_array) -> dict[str, Tensor]:
    """Return where a sparse matrix has entries."""
    return {
        f"{name}.indptr": torch.from_numpy(matrix.indptr.astype(np.int64)),
        f"{name}.indices": torch.from_numpy(matrix.indices.astype(np.int64)),
    }


def read_sparse(
    tensors: Mapping[str, Tensor], name: str, data: Tensor, shape: tuple[int, int], complaint: str
) -> sparse.csr_array:
    """Put a sparse matrix together whose every index is inside its shape."""
    indptr, indices = tensors[f"{name}.indptr"], tensors[f"{name}.indices"]
    require(
        indptr.dtype == indices.dtype == torch.int64
        and data.shape == indices.shape
        and compressed_problem(indptr.numpy(), indices.numpy(), data.numel(), shape) is None,
        complaint,
    )
    return sparse.csr_array((data.numpy(), indices.numpy(), indptr.numpy()), shape=shape)


def is_share(matrix: sparse.csr_array) -> bool:
    """Tell whether no value is below zero, above one or NaN, and no row sums to more than one."""
    inside = (matrix.data >= 0) & (matrix.data < 1 + SLACK)
    total = matrix.sum(axis=1)
    return bool(inside.all() and ((total > 0) & (total < 1 + SLACK)).all())
