"""The paper's own figures, as copied."""

from __future__ import annotations

import pytest

from fspll.errors import InputError
from fspll.experiments.published import METHODS, N_SHOT, N_WAY, omniglot


def test_every_method_has_every_setting():
    assert len(METHODS) == 11
    for method in METHODS:
        for n_way in N_WAY:
            for n_shot in N_SHOT:
                for r in (1, 2, 3):
                    mean, std = omniglot(method, n_way, n_shot, r)
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
    assert omniglot(method, n_way, n_shot, r) == printed


def test_what_is_not_printed():
    with pytest.raises(InputError, match="prints nothing for FsPLL, 7-way 5-shot, r = 1"):
        omniglot("FsPLL", 7, 5, 1)
