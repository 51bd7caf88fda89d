"""What ``fspll.metalearning`` offers, and what it does not import before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fspll import metalearning


def test_public_names():
    assert dir(metalearning) == ["REGIMES", "Regime", "TrainingPlan", "train"]
    for name in metalearning.__all__:
        assert getattr(metalearning, name) is not None
    with pytest.raises(AttributeError, match=r"'fspll\.metalearning' has no attribute 'trainn'"):
        metalearning.trainn  # noqa: B018


@pytest.mark.parametrize(
    "statement",
    [
        "from fspll.metalearning import REGIMES; 'fspll' in REGIMES or exit(1)",
        "import fspll.candidates, fspll.tasks, fspll.annotations.reading",
    ],
)
def test_names_and_labels_do_not_wait_for_torch(statement):
    code = f"import sys; {statement}; print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
