"""miniImageNet's layout: splits as views, and errors that name file, row and column."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import DataError, InputError
from fspll.datasets.mini_imagenet import load_mini_imagenet

CLASSES = {"train": ["n03", "n01"], "val": ["n05"], "test": ["n02", "n04"]}
N_EACH = 3


def gray_of(label, i):
    return int(label[1:]) * 40 + i * 10


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "small_set"
    (root / "images").mkdir(parents=True)
    for part, classes in CLASSES.items():
        lines = ["filename,label"]
        for i in range(N_EACH):  # classes alternate, so that blocks have to be made
            for label in classes:
                gray = gray_of(label, i)
                Image.new("RGB", (50, 40), (gray, 0, gray)).save(root / f"images/{label}_{i}.jpg")
                lines.append(f"{label}_{i}.jpg,{label}")
        (root / f"{part}.csv").write_text("\n".join(lines) + "\n")
    return root


def grays(images):
    return images[..., 0].mean(axis=(1, 2))


@pytest.mark.parametrize(
    ("split", "classes"),
    [
        ("train", ["n01", "n03"]),
        ("val", ["n05"]),
        ("test", ["n02", "n04"]),
        ("meta-train", ["n01", "n03", "n05"]),
    ],
)
def test_splits_are_blocks_of_their_classes(root, split, classes):
    data = load_mini_imagenet(split, root=root)
    assert data.name == f"small_set/{split}"
    assert data.class_names == tuple(classes)
    assert data.images.shape == (N_EACH * len(classes), 84, 84, 3)
    assert data.labels.tolist() == np.repeat(np.arange(len(classes)), N_EACH).tolist()
    expected = [gray_of(label, i) for label in classes for i in range(N_EACH)]
    np.testing.assert_allclose(grays(data.images), expected, atol=3)


def test_splits_are_views_of_one_file_decoded_once(root):
    calls = []
    sets = [
        load_mini_imagenet(split, root=root, progress=lambda *at: calls.append(at))
        for split in ("train", "meta-train", "test")
    ]
    assert calls == [(15, 15)]
    for data in sets:
        assert isinstance(data.images, np.memmap)
        assert not data.images.flags.owndata
        assert not data.images.flags.writeable
    assert len({str(data.images.filename) for data in sets}) == 1


def test_zip_with_or_without_top_folder(root, tmp_path):
    plain = load_mini_imagenet("test", root=root).images
    for base in (".", "images"):
        copy = tmp_path / f"copy{base}"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("images"))
        if base == ".":
            shutil.make_archive(copy / "images", "zip", root / "images")
        else:
            shutil.make_archive(copy / "images", "zip", root, "images")
        np.testing.assert_array_equal(load_mini_imagenet("test", root=copy).images, plain)


def test_an_edited_table_is_read_again(root):
    assert len(load_mini_imagenet("val", root=root)) == 3
    (root / "val.csv").write_text("filename,label\nn05_0.jpg,n05\n")
    assert len(load_mini_imagenet("val", root=root)) == 1


def test_columns_are_found_by_name(root):
    (root / "val.csv").write_text("\ufefflabel,width,filename\nn05,50,n05_2.jpg\n\n", "utf-8")
    data = load_mini_imagenet("val", root=root)
    np.testing.assert_allclose(grays(data.images), [gray_of("n05", 2)], atol=3)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("val", "file,label\nx,y\n", r"val\.csv has no column 'filename'; its first row is 'file,"),
        ("val", "filename,class\nx,y\n", r"val\.csv has no column 'label'"),
        ("val", "", r"val\.csv has no column 'filename'; its first row is ''"),
        ("val", "filename,label\n", r"val\.csv lists no image"),
        ("val", "filename,label\nn05_0.jpg,\n", r"val\.csv, row 2, column 'label': .* empty"),
        (
            "test",
            "filename,label\nn02_0.jpg,n02\ngone.jpg,n02\n",
            r"test\.csv, row 3, column 'filename': 'gone\.jpg' is not in .*images",
        ),
        (
            "test",
            "filename,label\nn02_0.jpg,n02\nn04_0.jpg,n01\n",
            r"test\.csv, row 3, column 'label': class 'n01' is in two splits; "
            r"it is also in .*train\.csv, row 3, column 'label'",
        ),
        (
            "test",
            "filename,label\nn02_0.jpg,n02\nn02_0.jpg,n02\n",
            r"test\.csv, row 3, column 'filename': 'n02_0\.jpg' is listed twice, first in .*row 2",
        ),
    ],
)
def test_bad_tables_are_named_by_row_and_column(root, part, text, message):
    (root / f"{part}.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_mini_imagenet("train", root=root)


@pytest.mark.parametrize(
    ("damage", "message"),
    [("truncated", "cannot be decoded"), ("other bytes", "is not a picture file")],
)
def test_bad_photos_are_named_by_row(root, damage, message):
    path = root / "images" / "n04_1.jpg"
    path.write_bytes(path.read_bytes()[:-30] if damage == "truncated" else b"text")
    with pytest.raises(
        DataError,
        match=rf"test\.csv, row 5, column 'filename': 'n04_1\.jpg' in .* {message}",
    ):
        load_mini_imagenet("train", root=root)


def test_not_utf8(root):
    (root / "val.csv").write_bytes(b"filename,label\n\xff\xfe,x\n")
    with pytest.raises(DataError, match=r"val\.csv cannot be read as a CSV file"):
        load_mini_imagenet("val", root=root)


def test_missing_files_and_wrong_split(root):
    with pytest.raises(InputError, match=r"split must be one of train, .* not 'all'"):
        load_mini_imagenet("all", root=root)
    (root / "val.csv").unlink()
    with pytest.raises(DataError, match=r"val\.csv missing in .*small_set"):
        load_mini_imagenet("val", root=root)
    with pytest.raises(DataError, match=r"images\.zip or images, train\.csv.*FSPLL_"):
        load_mini_imagenet("val")


def test_real_photos_of_the_stand_in(real_data, tmp_path):
    """The first four photos of the first two classes of each split, from the real zip."""
    real = real_data("mini_imagenet_standin/images.zip").parent
    try:
        (tmp_path / "images.zip").symlink_to(real / "images.zip")
    except OSError:
        pytest.skip("this system does not let users make links")
    for part in CLASSES:
        header, *lines = (real / f"{part}.csv").read_text().splitlines()
        some = lines[:4] + lines[300:304]
        (tmp_path / f"{part}.csv").write_text("\n".join([header, *some]))
    data = load_mini_imagenet("meta-train", root=tmp_path)
    assert data.samples_per_class.tolist() == [4, 4, 4, 4]
    assert data.images.shape == (16, 84, 84, 3)
    assert data.images.std(axis=(1, 2, 3)).min() > 10  # photos, not blanks
    assert (data.images[..., 0] != data.images[..., 2]).mean() > 0.3  # in color
