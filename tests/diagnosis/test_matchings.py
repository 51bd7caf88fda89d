"""Which labels stay possible, and which clusters hang together."""

from __future__ import annotations

import numpy as np

from fspll.diagnosis.matchings import Matchings, split


def matchings(rows, eps=0.01):
    mask = np.array(rows, dtype=bool)
    return Matchings.of(mask, np.arange(len(mask)), len(mask), eps)


def parts(found):
    return [(clusters.tolist(), labels.tolist()) for clusters, labels in found]


def test_labels_that_belong_to_no_matching_are_left_out():
    # The first two clusters share two labels, so the third cannot have either.
    found = matchings([[1, 1, 0], [1, 1, 0], [1, 1, 1]])
    assert found.kept.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert parts(found.parts()) == [([0, 1], [0, 1])]


def test_an_unused_label_joins_the_group_that_could_take_it():
    assert parts(matchings([[1, 1, 0, 0], [0, 0, 1, 0]]).parts()) == [([0], [0, 1])]


def test_contradicting_labels_are_kept_while_they_are_likely_enough():
    rows = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    found = matchings(rows)
    assert found.excess.tolist() == [[0, 0, 1], [0, 0, 1], [2, 1, 0]]
    assert found.kept.all()
    assert matchings(rows, eps=1e-12).kept.tolist() == (found.excess == 0).tolist()


def test_split_follows_long_ways():
    linked = np.eye(5, dtype=bool) | np.eye(5, k=1, dtype=bool)
    linked[2, 3] = False
    assert parts(split(linked)) == [([0, 1, 2], [0, 1, 2]), ([3, 4], [3, 4])]
