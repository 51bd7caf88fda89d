"""A folder of one's own images."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import DataError, InputError
from fspll.datasets.folders import load_image_folder

GRAYS = {"cat/a.png": 10, "cat/b.jpg": 40, "dog/c.bmp": 90, "wild/fox/d.webp": 200}


@pytest.fixture
def root(tmp_path):
    for name, gray in GRAYS.items():
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30, 20), (gray, gray, gray)).save(path)
    (tmp_path / "pets" / "cat" / "notes.txt").write_text("not an image")
    return tmp_path / "pets"


def test_a_folder_is_a_class(root):
    pets = load_image_folder(root, size=16, channels=3)
    assert pets.name == "pets"
    assert pets.class_names == ("cat", "dog", "wild/fox")
    assert pets.labels.tolist() == [0, 0, 1, 2]
    assert pets.images.shape == (4, 16, 16, 3)
    np.testing.assert_allclose(pets.images.mean(axis=(1, 2, 3)), list(GRAYS.values()), atol=2)


def test_gray_is_cached_apart_from_color_and_used_again(root):
    calls = []
    load_image_folder(root, size=16, channels=3)
    for _ in range(2):
        gray = load_image_folder(root, size=16, channels=1, progress=lambda *at: calls.append(at))
        assert gray.images.shape == (4, 16, 16)
    assert calls == [(4, 4)]


def test_a_new_image_is_seen(root):
    load_image_folder(root, size=16)
    Image.new("L", (9, 9)).save(root / "dog" / "z.png")
    assert load_image_folder(root, size=16).samples_per_class.tolist() == [2, 2, 1]


def test_a_zip_of_the_same_files_is_the_same(root, tmp_path):
    zipped = load_image_folder(shutil.make_archive(tmp_path / "pets", "zip", root), size=16)
    plain = load_image_folder(root, size=16)
    assert (zipped.name, zipped.class_names) == (plain.name, plain.class_names)
    np.testing.assert_array_equal(zipped.images, plain.images)


def test_errors_name_the_file_and_the_remedy(root, tmp_path):
    (tmp_path / "void").mkdir()
    with pytest.raises(DataError, match=r"nowhere does not exist; expected a folder"):
        load_image_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no image was found in .*void"):
        load_image_folder(tmp_path / "void")
    with pytest.raises(InputError, match=r"channels must be 1 .* not 2"):
        load_image_folder(root, channels=2)
    (root / "dog" / "bad.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(DataError, match=r"dog/bad\.png in .*pets (is not a picture|cannot be)"):
        load_image_folder(root)
    shutil.copy(root / "cat" / "a.png", root / "loose.png")
    with pytest.raises(DataError, match=r"'loose\.png' lies directly in"):
        load_image_folder(root)


# -------------------------------------------------------------------- splits


def make(root, *classes):
    for number, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        Image.new("L", (8, 8), number).save(root / name / "1.png")
    return root


def splits(root):
    return {split: load_image_folder(root, split=split, size=8) for split in ("train", "test")}


def test_a_fifth_of_the_classes_is_for_test_whatever_else_is_in_the_folder(tmp_path):
    names = [f"class{i:02}" for i in range(20)]
    parts = splits(make(tmp_path / "pets", *names))
    assert [part.name for part in parts.values()] == ["pets/train", "pets/test"]
    train, test = (set(part.class_names) for part in parts.values())
    assert (len(train), len(test), train | test) == (16, 4, set(names))
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    assert max(digests[name] for name in test) < min(digests[name] for name in train)
    assert parts["test"].note == (
        "4 of the 20 classes of pets, chosen by a hash of their names; the others are for training"
    )
    # Pictures follow their classes: class i is a picture of gray level i.
    for part in parts.values():
        assert part.images.mean(axis=(1, 2, 3)).tolist() == [int(c[5:]) for c in part.class_names]
    again = splits(make(tmp_path / "copy", *reversed(names)))
    assert set(again["test"].class_names) == test


def test_train_and_test_folders_are_used_as_they_are(tmp_path):
    root = make(tmp_path / "pets", "train/cat", "train/dog", "train/wild/fox", "test/cow", "val/ox")
    parts = splits(root)
    assert parts["train"].class_names == ("cat", "dog", "wild/fox")
    assert parts["test"].class_names == ("cow",)
    assert parts["train"].note == "3 classes of pets/train"
    assert parts["test"].images.mean() == 3
    zipped = splits(shutil.make_archive(tmp_path / "zipped", "zip", root))
    assert zipped["train"].class_names == parts["train"].class_names


def test_train_and_test_may_share_no_class(tmp_path):
    root = make(tmp_path / "pets", "train/cat", "train/dog", "test/cat", "test/cow")
    with pytest.raises(DataError, match=r"class 'cat' is in train/ and in test/ of .*pets; to "):
        load_image_folder(root, split="test")


def test_classes_called_train_and_test_are_classes(tmp_path):
    names = ["train", "test", "bus", "car", "train/old", "test/old"]
    parts = splits(make(tmp_path / "traffic", "bus", "car", *names[:2], *names[4:]))
    assert sorted((*parts["train"].class_names, *parts["test"].class_names)) == sorted(names)


def test_too_few_classes_and_unknown_splits(tmp_path):
    root = make(tmp_path / "pets", "cat", "cow", "dog")
    with pytest.raises(DataError, match=r"pets has 3 classes, which is too few to train on some"):
        load_image_folder(root, split="train")
    assert load_image_folder(root).n_classes == 3
    with pytest.raises(InputError, match="split must be one of train, test, all, not 'val'"):
        load_image_folder(root, split="val")
    make(tmp_path / "pets", "hen")
    assert [part.n_classes for part in splits(root).values()] == [2, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="names of folders are text elsewhere")
def test_a_class_whose_name_is_not_text(root):
    for name in (b"d\xf6g", b"other"):
        shutil.copytree(root / "cat", root / os.fsdecode(name))
    classes = [
        load_image_folder(root, size=8, split=part).class_names for part in ("train", "test")
    ]
    assert sorted(sum(classes, ())) == ["cat", "d\\xf6g", "dog", "other", "wild/fox"]
