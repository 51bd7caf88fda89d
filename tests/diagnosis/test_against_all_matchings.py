"""Every matching tried in turn: the counts, the ceiling, the groups and the questions agree."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fspll.diagnosis import ceiling, diagnose

EPS = 0.01


def all_matchings(mask, clusters):
    """Return every matching of clusters to labels and the weight of each, the plain way."""
    names, inverse = np.unique(clusters, return_inverse=True)
    matchings = np.array(list(permutations(range(mask.shape[1]), len(names))))
    misses = (~mask)[np.arange(len(mask)), matchings[:, inverse]].sum(axis=1)
    weights = (misses == 0).astype(float) if misses.min() == 0 else EPS ** misses.astype(float)
    return matchings, weights / weights.sum(), misses == misses.min()


def marginals_of(matchings, weights, n_classes):
    shares = np.zeros((matchings.shape[1], n_classes))
    for one, weight in zip(matchings, weights, strict=True):
        shares[np.arange(len(one)), one] += weight
    return shares


def groups_of(matchings, n_classes):
    """Labels of one group are those that clusters take in turn, over the matchings given."""
    group = list(range(n_classes))
    for taken in (set(column) for column in matchings.T.tolist()):
        joined = {group[label] for label in taken}
        group = [min(joined) if own in joined else own for own in group]
    found = [[c for c in range(n_classes) if group[c] == one] for one in set(group)]
    return sorted(labels for labels in found if len(labels) > 1)


def expected_ceiling(matchings, weights, sizes, asked):
    """Return the best expected share of right labels when some clusters' labels are known."""
    total = 0.0
    for answer in {tuple(one) for one in matchings[:, asked].tolist()}:
        same = (matchings[:, asked] == answer).all(axis=1)
        shares = marginals_of(matchings[same], weights[same], matchings.max() + 1)
        total += sizes @ shares.max(axis=1)
    return total / sizes.sum()


@st.composite
def tasks(draw):
    """Candidate sets that may or may not agree with their clusters, K <= l <= 6."""
    n_classes = draw(st.integers(2, 6))
    n_clusters = draw(st.integers(1, n_classes))
    more = draw(st.lists(st.integers(0, n_clusters - 1), max_size=6))
    clusters = np.array([*range(n_clusters), *more])
    mask = draw(hnp.arrays(bool, (len(clusters), n_classes)))
    if draw(st.booleans()):  # agreeing sets are rare by chance
        truth = draw(st.permutations(range(n_classes)))
        mask[np.arange(len(mask)), np.array(truth)[clusters]] = True
    mask[~mask.any(axis=1)] = True
    return mask, clusters


@settings(derandomize=True, deadline=None, max_examples=150)
@given(tasks())
def test_marginals_ceiling_and_groups_are_those_of_all_permutations(task):
    mask, clusters = task
    matchings, weights, best = all_matchings(mask, clusters)
    found = diagnose(mask, clusters, n_ask=0)
    assert found.exact
    assert found.ceiling_error is None
    shares = marginals_of(matchings, weights, mask.shape[1])
    assert np.abs(found.marginals - shares).max() < 1e-6
    right = np.bincount(clusters) @ shares.max(axis=1) / len(clusters)
    assert found.ceiling == pytest.approx(right, abs=1e-6)
    assert ceiling(mask, clusters) == found.ceiling
    assert sorted(found.undecided) == groups_of(matchings[best], mask.shape[1])
    misses = (~mask)[np.arange(len(mask)), matchings[best][:, clusters]].sum(axis=1)
    assert len(found.contradictions) == misses[0]


@settings(derandomize=True, deadline=None, max_examples=50)
@given(tasks())
def test_questions_are_the_best_ones_and_keep_what_they_promise(task):
    mask, clusters = task
    matchings, weights, _ = all_matchings(mask, clusters)
    sizes = np.bincount(clusters)
    found = diagnose(mask, clusters, n_ask=3)
    asked: list[int] = []
    reached = found.ceiling
    for question in found.ask:
        after = {
            k: expected_ceiling(matchings, weights, sizes, [*asked, k])
            for k in range(len(sizes))
            if k not in asked
        }
        cluster = int(clusters[question.sample])
        assert question.ceiling_after == pytest.approx(after[cluster], abs=1e-6)
        assert after[cluster] == pytest.approx(max(after.values()), abs=1e-6)
        assert question.ceiling_after > reached
        reached = question.ceiling_after
        asked.append(cluster)
    if len(found.ask) < 3:  # no other is worth a twentieth of a sample
        rest = [expected_ceiling(matchings, weights, sizes, [*asked, k]) for k in range(len(sizes))]
        assert max(rest) - reached < 0.05 / len(clusters) + 1e-6


@settings(derandomize=True, deadline=None, max_examples=25)
@given(tasks(), st.randoms(use_true_random=False))
def test_the_order_of_classes_samples_and_clusters_does_not_matter(task, random):
    mask, clusters = task
    columns, rows = list(range(mask.shape[1])), list(range(len(mask)))
    random.shuffle(columns)
    random.shuffle(rows)
    one = diagnose(mask, clusters, n_ask=0)
    other = diagnose(mask[rows][:, columns], 7 - clusters[rows], n_ask=0)
    assert np.allclose(other.marginals[::-1], one.marginals[:, columns], atol=1e-9)
    assert other.ceiling == pytest.approx(one.ceiling, abs=1e-9)
