"""Files that are accepted or refused by their content."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from fspll._common.errors import DataError
from fspll.datasets import DATASETS
from fspll.datasets.omniglot import Archive, check_archive

PNG = b"\x89PNG\r\n\x1a\n"
N_CLASSES = {"train": 64, "val": 16, "test": 20}


@pytest.fixture
def photos(tmp_path):
    """Return a folder in miniImageNet's layout with two photos per class."""
    folder = tmp_path / "mini"
    folder.mkdir()
    with zipfile.ZipFile(folder / "images.zip", "w") as packed:
        for split, n_classes in N_CLASSES.items():
            lines = ["filename,label"]
            for c in range(n_classes):
                for i in range(2):
                    lines.append(f"{split}{c}_{i}.jpg,{split}{c}")
                    packed.writestr(f"images/{split}{c}_{i}.jpg", "photo")
            (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return folder


def see(name, folder, thorough=True):
    return DATASETS.get(name).state(folder, thorough=thorough)


class TestArchive:
    archive = Archive(name="images_x.zip", url="", md5="", n_alphabets=1, n_characters=1)

    def write(self, folder, n_drawings=20):
        character = folder / "Greek" / "character01"
        character.mkdir(parents=True)
        for i in range(n_drawings):
            (character / f"{i:02}.png").write_bytes(PNG)
        return folder

    def test_extracted_folder(self, tmp_path):
        assert check_archive(self.write(tmp_path), self.archive) == 20

    def test_a_missing_drawing_is_seen_by_its_name(self, tmp_path):
        with pytest.raises(DataError, match="has 19 drawings of Greek/character01 where 20 were"):
            check_archive(self.write(tmp_path, 19), self.archive, thorough=False)

    def test_hidden_files_of_desktops_are_ignored(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
            for i in range(20):
                packed.writestr(f"images_x/Greek/character01/{i}.png", PNG)
                packed.writestr(f"__MACOSX/images_x/Greek/character01/._{i}.png", "")
            packed.writestr("images_x/.DS_Store", "")
        assert check_archive(tmp_path / "a.zip", self.archive) == 20

    def test_nothing_there(self, tmp_path):
        with pytest.raises(DataError, match="does not exist"):
            check_archive(tmp_path / "a.zip", self.archive)


class TestMiniImagenet:
    def test_sound(self, photos):
        state = see("mini_imagenet", photos)
        assert (state.word, state.detail) == ("present", "200 photos of 100 classes")

    def test_extracted_photos(self, photos):
        with zipfile.ZipFile(photos / "images.zip") as packed:
            packed.extractall(photos)
        (photos / "images.zip").unlink()
        assert see("mini_imagenet", photos).sound
        (photos / "images" / "val3_1.jpg").write_bytes(b"")
        assert see("mini_imagenet", photos, thorough=False).sound
        assert "the photo 'val3_1.jpg' in" in see("mini_imagenet", photos).detail

    @pytest.mark.parametrize(
        ("split", "change", "message"),
        [
            ("train", lambda text: text.replace("label", "class", 1), "has no column 'label'"),
            ("val", lambda text: text.replace("val0\n", "val1\n"), r"15 classes where 16 were exp"),
            ("test", lambda text: text.replace(",test0\n", ",train0\n"), "is in two splits"),
            ("test", lambda text: text + "no.jpg,test0\n", r"1 of 201 photos .* is 'no\.jpg'"),
        ],
    )
    def test_bad_table(self, photos, split, change, message):
        table = photos / f"{split}.csv"
        table.write_text(change(table.read_text()))
        state = see("mini_imagenet", photos, thorough=False)
        assert state.word == "damaged"
        assert re.search(message, state.detail)

    def test_tampered_photo(self, photos):
        body = (photos / "images.zip").read_bytes()
        (photos / "images.zip").write_bytes(body.replace(b"photo", b"Photo", 1))
        state = see("mini_imagenet", photos)
        assert not state.sound
        assert "is damaged: Bad CRC-32" in state.detail


def test_partial_label_mat(tmp_path):
    target = np.eye(3)
    savemat(
        tmp_path / "lost.mat",
        {"data": np.ones((3, 5)), "target": target, "partial_target": np.ones((3, 3))},
    )
    assert see("lost", tmp_path).detail == "3 samples, 5 features, 3 classes"
    assert see("MSRCv2", tmp_path).word == "absent"
    (tmp_path / "lost.mat").write_bytes(b"not a matrix")
    state = see("lost", tmp_path)
    assert state.word == "damaged"
    assert "is not a whole .mat file" in state.detail
