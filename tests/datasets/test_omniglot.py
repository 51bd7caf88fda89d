"""Omniglot: the layout, the split, the rotations, and the real thing when it is there."""

from __future__ import annotations

import time
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw

from fspll._common.errors import DataError, InputError
from fspll.datasets.omniglot import load_omniglot

PARTS = {
    "images_background": ["Greek/character01", "Greek/character02", "Arcadian/character01"],
    "images_evaluation": ["Tengwar/character01", "Tengwar/character02"],
}
NAMES = sorted(name for names in PARTS.values() for name in names)


def drawing(character, drawer):
    """A dark bar on white paper near the top; its length tells the character, its place who."""
    picture = Image.new("1", (105, 105), 1)
    top = 8 + drawer
    ImageDraw.Draw(picture).rectangle((0, top, 20 * character + 10, top + 11), fill=0)
    return picture


@pytest.fixture
def root(tmp_path):
    for part, characters in PARTS.items():
        for name in characters:
            folder = tmp_path / part / name
            folder.mkdir(parents=True)
            for drawer in range(20):
                picture = drawing(NAMES.index(name), drawer)
                picture.save(folder / f"{NAMES.index(name):04d}_{drawer + 1:02d}.png")
    return tmp_path


def load(split, root, **kwargs):
    return load_omniglot(split, root=root, n_train_characters=3, **kwargs)


def test_bright_ink_sorted_characters_and_drawers_in_order(root):
    everything = load("all", root, rotations=False)
    assert everything.class_names == tuple(NAMES)
    assert everything.name == "omniglot/all"
    assert everything.images.shape == (100, 28, 28)
    np.testing.assert_array_equal(everything.labels, np.repeat(np.arange(5), 20))
    blocks = everything.images.reshape(5, 20, 28, 28).astype(float)
    ink = blocks.sum(axis=(1, 2, 3))
    assert (np.diff(ink) > 0).all()
    rows = (blocks.sum(axis=3) * np.arange(28)).sum(axis=2) / blocks.sum(axis=(2, 3))
    assert (np.diff(rows, axis=1) > 0).all()
    assert blocks[:, 0, 3, 0].min() > 250  # inside the bar
    assert blocks[:, :, 20:].max() == 0  # paper


def test_strokes_are_solid_and_leave_no_echo_on_the_paper(root):
    images = load("all", root, rotations=False).images.reshape(5, 20, 28, 28)
    widest = images[4, 0]  # its bar fills the rows 8 to 19 and the columns 0 to 90 of 105
    np.testing.assert_array_equal(np.flatnonzero(widest.any(axis=1)), [2, 3, 4, 5])
    np.testing.assert_array_equal(np.flatnonzero(widest.any(axis=0)), np.arange(25))
    assert (widest[3:5, :24] == 255).all()


def test_quarter_turns_are_new_classes_after_the_upright_ones(root):
    upright = load("all", root, rotations=False)
    turned = load("all", root)
    assert turned.n_classes == 20
    assert turned.class_names[:5] == upright.class_names
    assert turned.class_names[6] == "Greek/character01/rot090"
    assert turned.class_names[19] == "Tengwar/character02/rot270"
    assert turned.families == 4 * upright.class_names
    assert turned.class_families().tolist() == list(turned.families)
    blocks = turned.images.reshape(4, 100, 28, 28)
    np.testing.assert_array_equal(blocks[0], upright.images)
    # Counterclockwise: the top of the page comes to lie on the left, then below, then right.
    np.testing.assert_array_equal(blocks[1], upright.images.transpose(0, 2, 1)[:, ::-1])
    np.testing.assert_array_equal(blocks[2], upright.images[:, ::-1, ::-1])
    assert blocks[1][:, :, :14].sum() > blocks[1][:, :, 14:].sum()
    np.testing.assert_array_equal(turned.samples_per_class, 20)


def test_train_and_test_share_no_character(root):
    train, test = load("train", root), load("test", root)
    assert (train.n_classes, test.n_classes) == (12, 8)
    assert set(train.class_names).isdisjoint(test.class_names)
    assert set(train.class_names) | set(test.class_names) == set(load("all", root).class_names)


def test_zips_and_folders_load_alike(root, tmp_path):
    zipped = tmp_path / "zipped"
    zipped.mkdir()
    for part in PARTS:
        with zipfile.ZipFile(zipped / f"{part}.zip", "w") as archive:
            for file in sorted((root / part).rglob("*.png"), reverse=True):
                archive.write(file, file.relative_to(root))
    left, right = load("test", root), load("test", zipped)
    assert left.class_names == right.class_names
    np.testing.assert_array_equal(left.images, right.images)


def test_second_load_reads_no_drawing(root):
    calls = []
    first = load("train", root, progress=lambda *at: calls.append(at))
    assert calls == [(100, 100)]
    second = load("train", root, progress=lambda *at: calls.append(at))
    assert len(calls) == 1
    np.testing.assert_array_equal(first.images, second.images)
    assert load("train", root, size=14).images.shape[1:] == (14, 14)


def test_missing_data_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FSPLL_DATA", str(tmp_path / "data"))
    message = (
        r"images_background\.zip or images_background, images_evaluation\.zip or "
        r"images_evaluation missing in .*data.omniglot; fetch it into .*data.omniglot with: "
        r"fspll data get omniglot, or set FSPLL_DATA"
    )
    with pytest.raises(DataError, match=message):
        load_omniglot()
    (tmp_path / "data" / "omniglot" / "images_background").mkdir(parents=True)
    with pytest.raises(DataError, match=r"not found: images_evaluation\.zip or"):
        load_omniglot()


def test_a_missing_drawing_names_the_character(root):
    (root / "images_background" / "Greek" / "character02" / "0002_07.png").unlink()
    with pytest.raises(DataError, match=r"'Greek/character02' of .*background has 19 drawings"):
        load("train", root)


def test_an_incomplete_omniglot_is_not_split_silently(root):
    with pytest.raises(DataError, match=r"images_background has 3 characters but .* has 964"):
        load_omniglot("train", root=root)


def test_damaged_drawing_is_named(root):
    (root / "images_evaluation" / "Tengwar" / "character01" / "0003_01.png").write_bytes(b"\x89PNG")
    with pytest.raises(
        DataError, match=r"Tengwar/character01/0003_01\.png in .*not a picture file"
    ):
        load("train", root)


def test_wrong_arguments_and_empty_folders(root, tmp_path):
    with pytest.raises(InputError, match="split must be one of train, test, all, not 'val'"):
        load_omniglot("val", root=root)
    with pytest.raises(InputError, match="size must be a whole number of 1 or more, not 0"):
        load_omniglot(root=root, size=0)
    with pytest.raises(DataError, match="there are 5 characters"):
        load_omniglot(root=root, n_train_characters=5)
    for part in PARTS:
        (tmp_path / "empty" / part).mkdir(parents=True)
    with pytest.raises(DataError, match="no drawing was found"):
        load("all", tmp_path / "empty")


# ---------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("omniglot-cache")


@pytest.fixture
def real_omniglot(real_data, shared_cache, monkeypatch):
    """The real folder, decoded by the first test that asks and cached for the others."""
    root = real_data("omniglot/images_background.zip").parent
    monkeypatch.setenv("HOME", str(shared_cache))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))
    monkeypatch.setenv("LOCALAPPDATA", str(shared_cache))
    load_omniglot("test", root=root)
    return root


def test_real_counts_and_fixed_split(real_omniglot):
    train = load_omniglot("train", root=real_omniglot)
    test = load_omniglot("test", root=real_omniglot)
    assert (train.n_classes, len(train)) == (4800, 96000)
    assert (test.n_classes, len(test)) == (1692, 33840)
    assert set(train.class_names).isdisjoint(test.class_names)
    # The split is part of the benchmark: these names may never change.
    assert test.class_names[:3] == SPLIT_BEGINS
    assert test.class_names[422] == SPLIT_ENDS


SPLIT_BEGINS = (
    "Alphabet_of_the_Magi/character04",
    "Alphabet_of_the_Magi/character15",
    "Angelic/character02",
)
SPLIT_ENDS = "ULOG/character26"


def test_real_drawings_are_bright_ink_on_dark_paper(real_omniglot):
    images = load_omniglot("all", root=real_omniglot, rotations=False).images
    assert images.shape == (32460, 28, 28)
    assert (images == 0).mean() > 0.5
    peaks = images.max(axis=(1, 2))
    assert peaks.min() > 128
    assert np.median(peaks) == 255
    assert ((images > 0) & (images <= 30)).mean() < 0.01  # the paper is clean


def test_real_cached_load_takes_less_than_a_second(real_omniglot):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        assert len(load_omniglot("all", root=real_omniglot)) == 129840
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1
