"""A folder of one's own images."""

from __future__ import annotations

import shutil

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
