"""The folder that ``fspll demo`` labels: what is in it, and what may be replaced."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import DataError
from fspll.annotations import read_annotations
from fspll.labeling.example import (
    CLASSES,
    CONFUSED,
    begin_example,
    check_example_folder,
    is_example,
    write_example,
)


def test_pictures_and_candidates(tmp_path):
    truth = write_example(tmp_path)
    read = read_annotations(tmp_path / "labels.csv")
    assert list(read.names) == list(truth)
    assert Counter(truth.values()) == dict.fromkeys(CLASSES, 6)
    with (tmp_path / "labels.csv").open(newline="") as file:
        sets = {row["file"]: row["candidates"].split("|") for row in csv.DictReader(file)}
    for name, names in sets.items():
        assert len(set(names)) == 3
        assert truth[name] in names
        assert names == sorted(names)  # so that the place of the truth says nothing
        assert len({*names} & {*CONFUSED}) in (0, 2)
        with Image.open(tmp_path / "pictures" / name) as picture:
            assert (picture.size, picture.getpixel((0, 0))) == ((84, 84), 255)
    with (tmp_path / "truth.csv").open(newline="") as file:
        assert dict(list(csv.reader(file))[1:]) == truth


def test_file_names_do_not_give_the_truth_away(tmp_path):
    codes = np.array([CLASSES.index(name) for name in write_example(tmp_path).values()])
    assert abs(np.corrcoef(codes, np.arange(len(codes)))[0, 1]) < 0.3
    assert (codes[1:] == codes[:-1]).mean() < 0.25  # 1 in 10 by chance


def test_the_seed_decides(tmp_path):
    first = write_example(tmp_path / "a", seed=1)
    assert write_example(tmp_path / "b", seed=1) == first
    tables = [(tmp_path / name / "labels.csv").read_text() for name in "ab"]
    assert tables[0] == tables[1]
    assert write_example(tmp_path / "b", seed=2) != first


def test_which_folders_may_be_written(tmp_path):
    check_example_folder(tmp_path / "new")
    check_example_folder(tmp_path)
    (tmp_path / "README.txt").write_text("My thesis.\n")
    assert not is_example(tmp_path)
    message = "holds other things than an earlier demo; choose another folder"
    with pytest.raises(DataError, match=message):
        check_example_folder(tmp_path)
    (tmp_path / "README.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=message):
        check_example_folder(tmp_path)
    begin_example(tmp_path)
    assert is_example(tmp_path)
    check_example_folder(tmp_path)
