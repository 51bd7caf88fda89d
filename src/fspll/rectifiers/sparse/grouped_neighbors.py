"""The k nearest samples among those that share a candidate label, entry by entry.

A neighbor that shares no label with a sample adds nothing to it: neither to Eq. (3) of the paper
nor to what neighbors' candidate sets say about a label. So the search is kept inside groups: for
every class the samples that have it as a candidate. The k nearest of a sample are those of the
union of its groups, and each is linked to it once for every label they share.

Shapes: n samples, m features, z entries, B cells, P places in a cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from fspll.rectifiers.sparse.cells import Cells, cells_of
from fspll.rectifiers.sparse.centering import blocks, shared_tensor
from fspll.rectifiers.sparse.entries import Entries

PAIRS_AT_ONCE = 1 << 22  # distances in memory at once, but for a single cell of more
_FEATURES_AT_ONCE = 1 << 23
_FOUND_AT_ONCE = 1 << 22  # neighbors in memory at once while lists are merged
_SPARE = 4  # found beyond need by products of norms, before exact distances decide


class Neighbors(NamedTuple):
    """Who is near whom, by links from an entry to another sample's entry of the same class.

    ``links[a, b]`` is the squared distance of the samples of the entries a and b, two entries of
    one class. Squared distances may be zero: only the pattern says who is a neighbor.
    """

    links: sparse.csr_array  # (z, z)
    n_found: np.ndarray  # (n,) neighbors of each sample: k, or all others of its groups
    edge: np.ndarray  # (n,) squared distance of the first that is no neighbor; infinite if none


def nearest_in_groups(embeddings: np.ndarray, entries: Entries, k: int, seed: int = 0) -> Neighbors:
    """Find the k nearest samples of each sample among those that share a label with it.

    Exact where no class is a candidate of more than 4096 samples (``WHOLE_GROUP`` in
    :mod:`fspll.rectifiers.sparse.cells`), up to the rounding of products of norms; approximate for
    larger groups. Of samples at the same distance as the k-th, those that come first.

    Memory: (k + 1) distances and numbers per entry, and blocks of a fixed size.

    Parameters
    ----------
    embeddings : float ndarray of shape (n, m)
    entries : Entries
    k : int
        1 or more.
    seed : int
        Of the random choices that split large groups.
    """
    other = np.full((len(entries), k + 1), -1, dtype=np.int64 if len(entries) >> 31 else np.int32)
    square = np.full((len(entries), k + 1), np.inf, dtype=embeddings.dtype)
    for turn, cells in enumerate(cells_of(embeddings, entries, seed)):
        for entry, found, away in _search(embeddings, entries.row, cells, k + 1):
            if turn > 0:
                found = np.concatenate([other[entry], found], axis=1)
                away = np.concatenate([square[entry], away], axis=1)
                found, away = _first_distinct(found, away, k + 1)
            other[entry, : found.shape[1]] = found
            square[entry, : away.shape[1]] = away
    return _merge(entries, other, square, k)


# -------------------------------------------------------------------- inside cells


def _search(
    embeddings: np.ndarray, row: np.ndarray, cells: Cells, k: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield entries (E,), the k nearest entries of their cells (E, <=k), and how far they are."""
    e = shared_tensor(embeddings)
    for chosen in _batches(np.diff(cells.start), embeddings.shape[1]):
        start, size = cells.start[chosen], np.diff(cells.start)[chosen]
        place = np.arange(size.max())
        real = place < size[:, None]
        entry = cells.entry[start[:, None] + np.minimum(place, size[:, None] - 1)]
        found, square = _nearest(e[torch.from_numpy(row[entry])], torch.from_numpy(real), k)
        number = np.take_along_axis(entry[:, None, :], found.numpy(), axis=2)
        away = square.numpy()
        number[np.isinf(away)] = -1
        yield entry[real], number[real], away[real]


def _batches(sizes: np.ndarray, n_features: int) -> Iterator[np.ndarray]:
    """Yield cells of similar size together, as many as blocks of a fixed size hold."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 1]
    a = 0
    while a < len(order):
        # The size of the last cell is that of all: grow while the whole still fits.
        b = a + 1
        step = 1
        while step:
            then = min(b + step, len(order))
            largest = int(sizes[order[then - 1]])
            room = max(
                largest**2 * (then - a) / PAIRS_AT_ONCE,
                largest * n_features * (then - a) / _FEATURES_AT_ONCE,
            )
            if then > b and room <= 1:
                b, step = then, step * 2
            else:
                step //= 2
        yield order[a:b]
        a = b


def _nearest(e: Tensor, real: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return places and squared distances of the k nearest others, (B, P, <=k) each.

    In ascending order of distance, then of place; infinitely far where there is no other.
    """
    # Exact distances come from the features as they are: a pair is as far in all of its groups.
    flat = e.reshape(-1, e.shape[-1])
    e = e - e[:, :1]  # whole numbers stay whole, and equal distances equal
    norms = e.square().sum(dim=-1)
    column = norms.masked_fill(~real, torch.inf).unsqueeze(-2)
    square = torch.baddbmm(column, e, e.transpose(-1, -2), alpha=-2)  # less the row's own norm
    square.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    wanted = min(k + _SPARE, e.shape[1] - 1)
    near = square.topk(wanted, dim=-1, largest=False, sorted=False)
    place = near.indices.sort(dim=-1).values
    none = square.gather(-1, place).isinf()
    del square
    first = torch.arange(0, len(flat), e.shape[1]).view(-1, 1)  # row of each cell's first place
    exact = torch.empty_like(place, dtype=e.dtype)
    for slot in range(wanted):
        there = flat.index_select(0, (place[..., slot] + first).flatten())
        exact[..., slot] = there.sub_(flat).square_().sum(dim=-1).view(place.shape[:-1])
    exact, order = exact.masked_fill_(none, torch.inf).sort(dim=-1, stable=True)
    return place.gather(-1, order)[..., :k], exact[..., :k]


# -------------------------------------------------------------------- over the labels of a sample


def _first_distinct(number: np.ndarray, square: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Return the k nearest distinct numbers of each row, (R, w) to (R, k), in ascending order.

    Equal numbers have equal distances; -1 is nobody.
    """
    numbers, away = torch.from_numpy(number), torch.from_numpy(square)
    numbers, order = numbers.sort(dim=-1, stable=True)
    away = away.gather(-1, order)
    again = numbers[:, 1:] == numbers[:, :-1]
    numbers[:, 1:].masked_fill_(again, -1)
    away[:, 1:].masked_fill_(again, torch.inf)
    away, order = away.sort(dim=-1, stable=True)
    return numbers.gather(-1, order)[:, :k].numpy(), away[:, :k].numpy()


def _merge(entries: Entries, other: np.ndarray, square: np.ndarray, k: int) -> Neighbors:
    """Keep, of the nearest in each group (z, k + 1), those that are nearest in the union.

    Whoever is among the k nearest of the union is so in every group that he belongs to: a limit a
    sample is all that is needed.
    """
    n = entries.n_samples
    count = np.zeros(n, dtype=np.int64)
    edge = np.full(n, np.inf, dtype=square.dtype)
    limit = np.full(n, -1, dtype=square.dtype)  # of the distance
    last = np.full(n, -1, dtype=np.int64)  # sample at that distance that still counts
    for size in np.unique(entries.sizes):
        samples = np.flatnonzero(entries.sizes == size)
        for a, b in blocks(len(samples), max(1, _FOUND_AT_ONCE // int(size * (k + 1)))):
            some = samples[a:b]
            entry = entries.start[some, None] + np.arange(size)
            found = other[entry].reshape(len(some), -1)
            sample = np.where(found >= 0, entries.row[found], -1)
            away = square[entry].reshape(len(some), -1)
            sample, away = _first_distinct(sample, away, k + 1)
            count[some] = np.minimum((sample >= 0).sum(axis=1), k)
            edge[some] = away[:, k]
            known = count[some] > 0
            which = np.flatnonzero(known), count[some][known] - 1
            limit[some[known]], last[some[known]] = away[which], sample[which]
    return Neighbors(_links(entries, other, square, limit, last), count, edge)


def _links(
    entries: Entries, other: np.ndarray, square: np.ndarray, limit: np.ndarray, last: np.ndarray
) -> sparse.csr_array:
    """Return the links that lie within the limits of their samples, (z, z).

    What is kept is moved to the front of the arrays, so that they are not held twice.
    """
    z, width = other.shape
    numbers, distances, end = other.reshape(-1), square.reshape(-1), 0
    count = np.zeros(z + 1, dtype=np.int64)
    for a, b in blocks(z, max(1, _FOUND_AT_ONCE // width)):
        found, away, mine = other[a:b], square[a:b], entries.row[a:b, None]
        tie = (away == limit[mine]) & (entries.row[found] <= last[mine])
        kept = (found >= 0) & ((away < limit[mine]) | tie)
        count[a + 1 : b + 1] = kept.sum(axis=1)
        then = end + int(count[a + 1 : b + 1].sum())
        numbers[end:then], distances[end:then] = found[kept], away[kept]
        end = then
    start = np.cumsum(count)
    return sparse.csr_array((distances[:end].copy(), numbers[:end].copy(), start), shape=(z, z))
