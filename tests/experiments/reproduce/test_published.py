"""The paper's own figures, as copied."""

from __future__ import annotations

import pytest

from fspll.experiments.reproduce.published import (
    METHODS,
    N_SHOT,
    N_WAY,
    NOISE_GAINS,
    R,
    best_n_neighbors,
    find,
)


def test_every_method_has_every_setting():
    assert len(METHODS) == 11
    for method in METHODS:
        for n_way in N_WAY:
            for n_shot in N_SHOT:
                for r in R:
                    mean, std = find(method, n_way, n_shot, r)
                    assert 0 < std < mean < 1 or method == "MAML+"


@pytest.mark.parametrize(
    ("method", "n_way", "n_shot", "r", "printed"),
    [
        ("FsPLL", 30, 10, 2, (0.602, 0.038)),  # ".602" with its dot outside the bold face
        ("FsPLL", 5, 5, 3, (0.591, 0.118)),
        ("FsPLL+", 5, 10, 3, (0.996, 0.011)),
        ("PL-ECOC", 20, 5, 3, (0.079, 0.024)),
        ("MAML+", 30, 10, 2, (0.679, 0.450)),
    ],
)
def test_some_cells(method, n_way, n_shot, r, printed):
    assert find(method, n_way, n_shot, r) == printed


def test_find_says_nothing_where_nothing_is_printed():
    assert find("FsPLL", 5, 5, 1) == (0.892, 0.083)
    assert find("FsPLL++", 10, 5, 2) is None
    assert find("FsPLL", 7, 5, 1) is None
    assert find("FsPLL", 15, 5, 1) is None  # of the miniImageNet figures, which have no numbers


@pytest.mark.parametrize(("pair", "gain"), NOISE_GAINS.items())
def test_gains_of_the_noise_study_follow_from_the_table(pair, gain):
    better, worse = (find(method, 10, 5, 2).mean for method in pair)
    assert better / worse - 1 == pytest.approx(gain, abs=0.01)


def test_fspll_is_the_best_of_its_group_in_print():
    for n_way in N_WAY:
        for n_shot in N_SHOT:
            for r in R:
                means = {name: find(name, n_way, n_shot, r).mean for name in METHODS}
                plain = {name: mean for name, mean in means.items() if not name.endswith("+")}
                assert max(plain, key=plain.get) == "FsPLL"
                assert max(means, key=means.get) == "FsPLL+"


def test_the_papers_number_of_neighbors():
    assert best_n_neighbors(5) == 4
