"""Equal runs write equal files, byte for byte, whatever order sets and hash maps have."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def twice(tmp_path):
    """Return a function that runs a command in two processes, each into a folder of its own."""

    def run(*arguments):
        folders = [tmp_path / "one", tmp_path / "two"]
        for seed, folder in enumerate(folders, start=1):
            subprocess.run(
                [sys.executable, "-m", "fspll", *map(str, arguments), "--out", folder],
                env={**os.environ, "PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": "1"},
                check=True,
                capture_output=True,
            )
        return [{path.name: path.read_bytes() for path in one.iterdir()} for one in folders]

    return run


def assert_equal(one, two):
    assert set(one) == set(two)
    assert [name for name in one if one[name] != two[name]] == []


def test_labels(twice, tmp_path):
    rng = np.random.default_rng(0)
    truth, centers = rng.integers(4, size=40), 3 * rng.normal(size=(4, 5))
    np.save(tmp_path / "X.npy", centers[truth] + rng.normal(size=(40, 5)))
    rows = [f"s{i},c{c};c{(c + rng.integers(1, 4)) % 4}" for i, c in enumerate(truth)]
    (tmp_path / "sets.csv").write_text("\n".join(["sample,candidates", *rows]) + "\n")
    one, two = twice("label", tmp_path / "sets.csv", "--features", tmp_path / "X.npy")
    assert {"labels.csv", "review.csv", "model.fspll", "report.html"} <= set(one)
    assert_equal(one, two)


def test_training(twice, tmp_path):
    for number in range(5):
        (tmp_path / "pets" / f"pet{number}").mkdir(parents=True)
        for i in range(4):
            picture = Image.new("L", (16, 16), 40 * number + i)
            picture.save(tmp_path / "pets" / f"pet{number}" / f"{i}.png")
    options = "--n-way 2 --n-shot 2 --n-query 1 --tasks 3 --epochs 1 --device cpu"
    one, two = twice("train", "--dataset", tmp_path / "pets", *options.split())
    assert set(one) == {"model.safetensors", "state.safetensors", "log.jsonl"}
    assert_equal(one, two)
