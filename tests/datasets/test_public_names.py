"""The public names of the room: all there, and light to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fspll import datasets


def test_every_public_name_is_there():
    for name in datasets.__all__:
        assert getattr(datasets, name) is not None
    assert datasets.ImageSet.__module__ == "fspll.datasets.base"
    assert datasets.load_omniglot is datasets.omniglot.load_omniglot


def test_other_names_are_refused_as_usual():
    with pytest.raises(AttributeError, match=r"'fspll\.datasets' has no attribute 'load_all'"):
        datasets.load_all  # noqa: B018


def test_pictures_load_without_torch_and_scikit_learn():
    code = (
        "import sys; from fspll.datasets import ImageSet, load_image_folder, load_omniglot; "
        "print({'torch', 'sklearn', 'scipy', 'PIL', 'rich'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "set()\n"
