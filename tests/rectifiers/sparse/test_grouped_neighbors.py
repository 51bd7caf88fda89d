"""The grouped search against a plain loop, and what it does where there is little to find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from fspll.rectifiers.sparse import cells, grouped_neighbors
from fspll.rectifiers.sparse.cells import cells_of
from fspll.rectifiers.sparse.entries import Entries
from fspll.rectifiers.sparse.grouped_neighbors import nearest_in_groups


def loop_neighbors(e, mask, k):
    """List, for each sample, (distance, sample) of the k nearest that share a label."""
    result = []
    for i in range(len(e)):
        others = [
            (float(((e[i] - e[j]) ** 2).sum()), j)
            for j in range(len(e))
            if j != i and (mask[i] & mask[j]).any()
        ]
        result.append(sorted(others)[:k])
    return result


def found_neighbors(entries, neighbors):
    """List the same from links, and check that links join entries of one class."""
    links = neighbors.links.tocoo()
    assert (entries.label[links.row] == entries.label[links.col]).all()
    found = [set() for _ in range(entries.n_samples)]
    for a, b, square in zip(links.row, links.col, links.data, strict=True):
        found[entries.row[a]].add((float(square), int(entries.row[b])))
    return [sorted(some) for some in found]


@st.composite
def problems(draw):
    n, n_classes, m = draw(st.integers(1, 14)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    mask = rng.random((n, n_classes)) < draw(st.sampled_from([0.1, 0.4, 1.0]))
    mask[np.arange(n), rng.integers(0, n_classes, n)] = True
    features = rng.normal(size=(n, m))
    if draw(st.booleans()):  # duplicates
        features[rng.integers(0, n, n // 3)] = features[0]
    return features, mask, draw(st.integers(1, 6))


@given(problems())
@settings(max_examples=150, deadline=None)
def test_as_the_loop(problem):
    features, mask, k = problem
    entries = Entries.of(sparse.csr_array(mask))
    neighbors = nearest_in_groups(features, entries, k)
    found = found_neighbors(entries, neighbors)
    expected = loop_neighbors(features, mask, k)
    assert neighbors.n_found.tolist() == [len(some) for some in expected]
    for one, other in zip(found, expected, strict=True):
        assert [j for _, j in one] == [j for _, j in other]
        assert np.allclose([d for d, _ in one], [d for d, _ in other], rtol=1e-12, atol=0)


@given(problems())
@settings(max_examples=50, deadline=None)
def test_one_link_for_every_shared_label(problem):
    features, mask, k = problem
    entries = Entries.of(sparse.csr_array(mask))
    links = nearest_in_groups(features, entries, k).links.tocoo()
    pairs, counts = np.unique(
        np.stack([entries.row[links.row], entries.row[links.col]]), axis=1, return_counts=True
    )
    assert counts.tolist() == [(mask[i] & mask[j]).sum() for i, j in pairs.T]


@given(problems())
@settings(max_examples=50, deadline=None)
def test_the_edge_is_the_first_that_is_no_neighbor(problem):
    features, mask, k = problem
    neighbors = nearest_in_groups(features, Entries.of(sparse.csr_array(mask)), k)
    longer = loop_neighbors(features, mask, k + 1)
    expected = [some[k][0] if len(some) > k else np.inf for some in longer]
    assert np.allclose(neighbors.edge, expected, rtol=1e-12, atol=0)


def test_a_sample_alone_with_its_label_has_no_neighbor():
    entries = Entries.of(sparse.csr_array([[1, 0, 0], [0, 1, 0], [0, 1, 0]]))
    neighbors = nearest_in_groups(np.array([[0.0], [0.1], [9.0]]), entries, 4)
    assert neighbors.n_found.tolist() == [0, 1, 1]
    assert neighbors.links.nnz == 2
    assert np.isinf(neighbors.edge).all()


def test_many_equal_samples_are_neighbors_of_each_other():
    entries = Entries.of(sparse.csr_array(np.ones((40, 2), dtype=bool)))
    neighbors = nearest_in_groups(np.full((40, 3), 0.1, dtype=np.float32), entries, 5)
    assert neighbors.n_found.tolist() == [5] * 40
    assert (neighbors.links.data == 0).all()
    links = neighbors.links.tocoo()
    assert (entries.row[links.row] != entries.row[links.col]).all()


def test_far_from_the_origin_float32_finds_the_same(clusters):
    features, candidates, _ = clusters(200, 20)
    entries = Entries.of(candidates)
    features = np.round(features * 64) / 64  # so that the shift rounds nothing
    near = nearest_in_groups(features, entries, 3)
    far = nearest_in_groups(features + np.float32(2048), entries, 3)
    assert (near.links != far.links).nnz == 0


@pytest.mark.parametrize("limit", [1, 50, 1 << 22])
def test_blocks_change_nothing(clusters, monkeypatch, limit):
    features, candidates, _ = clusters(150, 12, dtype=np.float64)
    entries = Entries.of(candidates)
    expected = nearest_in_groups(features, entries, 3)
    monkeypatch.setattr(grouped_neighbors, "PAIRS_AT_ONCE", limit)
    monkeypatch.setattr(grouped_neighbors, "_FOUND_AT_ONCE", limit)
    found = nearest_in_groups(features, entries, 3)
    assert (found.links != expected.links).nnz == 0
    assert np.array_equal(found.edge, expected.edge)


# -------------------------------------------------------------------- groups that are split


def test_cells_hold_every_entry_of_a_split_group_once(clusters, monkeypatch):
    monkeypatch.setattr(cells, "WHOLE_GROUP", 60)
    monkeypatch.setattr(cells, "CELL", 30)
    features, candidates, _ = clusters(300, 10, r=2)
    entries = Entries.of(candidates)
    large = entries.class_sizes > 60
    assert large.any()
    for turn, some in enumerate(cells_of(features, entries)):
        expected = np.flatnonzero(large[entries.label] | (turn == 0))
        assert np.array_equal(np.sort(some.entry), expected)
        sizes = np.diff(some.start)
        labels = entries.label[some.entry]
        assert all(len(set(part)) == 1 for part in np.split(labels, some.start[1:-1]))
        assert (sizes[large[labels[some.start[:-1]]]] <= 30).all()
    assert turn == cells.SPLITTINGS - 1


def test_equal_samples_can_be_split():
    entries = Entries.of(sparse.csr_array(np.ones((cells.WHOLE_GROUP + 1, 1), dtype=bool)))
    features = np.zeros((cells.WHOLE_GROUP + 1, 2), dtype=np.float32)
    neighbors = nearest_in_groups(features, entries, 2)
    assert (neighbors.n_found == 2).all()


def test_split_groups_find_most_neighbors(clusters, monkeypatch):
    features, candidates, _ = clusters(3000, 5, m=8, r=2, noise=0.7)
    entries = Entries.of(candidates)
    exact = nearest_in_groups(features, entries, 5).links
    monkeypatch.setattr(cells, "WHOLE_GROUP", 500)
    monkeypatch.setattr(cells, "CELL", 250)
    found = nearest_in_groups(features, entries, 5).links
    both = (exact.astype(bool).multiply(found.astype(bool))).nnz
    assert 0.85 < both / exact.nnz < 1
    assert (found != nearest_in_groups(features, entries, 5).links).nnz == 0  # the same seed
    assert (found != nearest_in_groups(features, entries, 5, seed=1).links).nnz > 0
