"""A tiny set of photos in miniImageNet's layout, and a profile that trains for a moment."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fspll.experiments.jobs import Source
from fspll.experiments.profiles import Profile

PARTS = {"train": 6, "val": 2, "test": 10}
N_EACH = 12
SIZE = 16


def write_photos(root):
    """Write classes that differ in colour, with noise."""
    rng = np.random.default_rng(0)
    (root / "images").mkdir(parents=True)
    label = 0
    for part, n_classes in PARTS.items():
        lines = ["filename,label"]
        for _ in range(n_classes):
            colour = rng.integers(0, 256, 3)
            for i in range(N_EACH):
                pixels = np.clip(colour + rng.normal(0, 25, (SIZE, SIZE, 3)), 0, 255)
                name = f"c{label}_{i}.png"
                Image.fromarray(pixels.astype(np.uint8)).save(root / "images" / name)
                lines.append(f"{name},c{label}")
            label += 1
        (root / f"{part}.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def source(tmp_path):
    return Source("mini-imagenet", str(write_photos(tmp_path / "tiny_photos")), SIZE)


@pytest.fixture
def profile():
    return Profile(
        "tiny",
        "for tests",
        epochs=1,
        n_way=3,
        n_query=1,
        n_tasks=8,
        photo_tasks=8,
        photo_size=SIZE,
        n_ways=(4,),
        n_shots=(3,),
        rs=(1,),
        photo_ways=(4,),
        photo_shots=(3,),
        photo_rs=(1,),
        maml_steps=1,
    )
