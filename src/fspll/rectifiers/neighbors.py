"""Who is near whom inside a task: squared distances between samples, and the k nearest.

Shapes: B tasks, n samples, m features; ``...`` stands for any leading dimensions. Squared distances
come from products of norms, which are fast, and are computed again from differences where rounding
would decide something.
"""

from __future__ import annotations

import torch
from torch import Tensor

_MINIMUM_PASSES = 12  # up to this k, repeated minima beat a top-k search
_FEATURES_AT_ONCE = 1 << 22  # of pairs whose distance is computed from differences
CANCELED = 1e-2  # squared distances below this share of the norms have lost too many digits


def squared_norms(embeddings: Tensor) -> Tensor:
    """Squared distances of the samples from their task's mean, of shape (..., n)."""
    return (embeddings - embeddings.mean(dim=-2, keepdim=True)).square().sum(dim=-1)


def squared_distances(embeddings: Tensor) -> Tensor:
    """Squared distances to the *other* samples of a task; infinite on the diagonal.

    Parameters
    ----------
    embeddings : Tensor of shape (..., n, m)

    Returns
    -------
    Tensor of shape (..., n, n)
    """
    e = embeddings - embeddings.mean(dim=-2, keepdim=True)
    norms = e.square().sum(dim=-1)
    square = (e @ e.transpose(-1, -2)).mul_(-2)
    square.add_(norms.unsqueeze(-1)).add_(norms.unsqueeze(-2)).clamp_min_(0)
    square.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    return square


def nearest(square: Tensor, k: int) -> Tensor:
    """Tell who is among the k nearest others: all that are no farther than the k-th.

    Parameters
    ----------
    square : Tensor of shape (..., n, n)
        As :func:`squared_distances` returns it, taken at its word.
    k : int
        Between 1 and n - 1.

    Returns
    -------
    bool Tensor of shape (..., n, n)
    """
    kth = square.topk(k, dim=-1, largest=False, sorted=False).values.amax(-1, keepdim=True)
    return square <= kth


def neighbors(square: Tensor, embeddings: Tensor, norms: Tensor, k: int) -> Tensor:
    """Tell who is among the k nearest others, ties included, whatever the order of the samples.

    Products of norms leave it to rounding who is nearer among near duplicates of large norm, or at
    equal distances (whole-number features). Where that decides, the exact values are put into
    ``square`` first.

    Parameters
    ----------
    square : Tensor of shape (B, n, n)
        As :func:`squared_distances` returns it.
    embeddings : Tensor of shape (B, n, m)
    norms : Tensor of shape (B, n)
        As :func:`squared_norms` returns it.
    k : int
        Between 1 and n - 1.

    Returns
    -------
    bool Tensor of shape (B, n, n)
    """
    kth, after = _kth_and_next(square, k)
    near = square <= kth
    rounding = torch.finfo(square.dtype).eps * (8 + 4 * embeddings.shape[-1] ** 0.5)
    margin = rounding * (norms.unsqueeze(-1) + kth)
    # A row is settled when the next distance stands clear of the k-th; where several samples share
    # a distance, the count gives it away.
    settled = after > kth + margin
    settled &= torch.count_nonzero(near, dim=-1).unsqueeze(-1) == k
    task, row = (~settled.squeeze(-1)).nonzero(as_tuple=True)
    if len(task):
        mine = square[task, row]
        kth = mine.topk(k, dim=-1, largest=False, sorted=False).values.amax(-1, keepdim=True)
        margin = rounding * (norms[task, row].unsqueeze(-1) + kth)
        close = (mine >= kth - margin) & (mine <= kth + margin)
        which, column = close.nonzero(as_tuple=True)
        _put_exact(square, embeddings, task[which], row[which], column)
        near[task, row] = nearest(square[task, row], k)
    return near


def _kth_and_next(square: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k-th smallest value of each row and the next one, (..., n, 1) each.

    Up to a moderate k equal values count once, so that with ties the k-th lies too far: the caller
    counts. Non-negative floats are ordered as their bit patterns are as integers. Subtracting the
    last minimum (plus one, shifted by the smallest integer) lets everything up to it wrap around to
    the top, so that one subtraction and one minimum, both vectorized, find the next: ten times
    faster than a top-k search.
    """
    if k > _MINIMUM_PASSES:
        values = square.topk(min(k + 1, square.shape[-1]), dim=-1, largest=False).values
        return values[..., k - 1, None], values[..., -1:]
    integer = torch.int64 if square.dtype == torch.float64 else torch.int32
    lowest = torch.iinfo(integer).min
    bits = square.view(integer)
    beyond = torch.empty_like(bits)
    kth, after = bits[..., :1], bits.amin(dim=-1, keepdim=True)
    for _ in range(k):
        kth, shift = after, after + (1 + lowest)
        torch.sub(bits, shift, out=beyond)
        after = beyond.amin(dim=-1, keepdim=True) + shift
    return kth.view(square.dtype), after.view(square.dtype)


def _put_exact(square: Tensor, embeddings: Tensor, t: Tensor, i: Tensor, j: Tensor) -> None:
    """Compute some squared distances again, from differences."""
    at_once = max(1, _FEATURES_AT_ONCE // embeddings.shape[-1])
    for part in torch.arange(len(t), device=square.device).split(at_once):
        a, b = embeddings[t[part], i[part]], embeddings[t[part], j[part]]
        square[t[part], i[part], j[part]] = (a - b).square().sum(dim=-1)


def restore_canceled(square: Tensor, embeddings: Tensor, norms: Tensor) -> Tensor:
    """Put the exact values where a difference of norms has lost its digits, and 0 on the diagonal.

    |a|^2 + |b|^2 - 2ab is as inexact as the norms are large, which matters for near duplicates.
    """
    task, row, column = (square < CANCELED * norms.unsqueeze(-1)).nonzero(as_tuple=True)
    _put_exact(square, embeddings, task, row, column)
    square.diagonal(dim1=-2, dim2=-1).zero_()
    return square
