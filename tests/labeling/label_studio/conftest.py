"""A small result, and requests as Label Studio 1.23.2 sent them (projects and tokens cut short)."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fspll import label
from fspll.annotations.samples import Annotations

REQUESTS = json.loads((Path(__file__).parent / "requests.json").read_text(encoding="utf-8"))
NAMES = ("IMG_507.jpg", "my cat (1) é.jpg", "cats/b.png", "dogs/b.png", "e.png", "f.png")
SETS = ({"cat", "lynx"}, {"cat"}, {"cat", "lynx"}, {"lynx"}, {"lynx"}, {"cat", "lynx"})
# The last sample is between the groups, the third nearer to one of them.
X = np.array([[0.0], [0.2], [0.9], [5.0], [5.2], [2.6]])


@pytest.fixture(scope="session")
def annotations():
    votes = sparse.csr_array([[float(c in one) for c in ("cat", "lynx")] for one in SETS])
    return Annotations(names=NAMES, origins=NAMES, classes=("cat", "lynx"), features=X, votes=votes)


@pytest.fixture(scope="session")
def result(annotations):
    return label(annotations, progress=False)


@pytest.fixture
def body():
    """Return a function that gives the body of a recorded request, to be changed at will."""
    return lambda name: copy.deepcopy(REQUESTS[name]["body"])
