"""What the grids of these tests are made of."""

from __future__ import annotations

import pytest

from fspll.experiments.reproduce.jobs import Source


@pytest.fixture
def source(tiny_photos):
    return Source("mini-imagenet", str(tiny_photos), 16)


@pytest.fixture
def profile(tiny_profile):
    return tiny_profile
