"""Characters drawn by code: the same everywhere, plausible ink, and classes that mean something."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from fspll._common.errors import InputError
from fspll.datasets.glyphs import SPLITS, load_glyphs
from fspll.datasets.glyphs.alphabets import ALPHABET_SIZE, character
from fspll.datasets.glyphs.handwriting import draw_ink


@pytest.fixture(scope="module")
def glyphs():
    return load_glyphs(40)


def test_one_image_per_class_and_drawer_sorted_by_class(glyphs):
    assert glyphs.images.shape == (800, 28, 28)
    assert glyphs.images.dtype == np.uint8
    assert glyphs.labels.dtype == np.int64
    np.testing.assert_array_equal(glyphs.labels, np.repeat(np.arange(40), 20))
    assert glyphs.name == "glyphs"
    assert glyphs.class_names[0] == "alphabet000/character01"
    assert glyphs.class_names[39] == "alphabet001/character20"
    assert len(set(glyphs.class_names)) == 40


def test_drawings_are_the_same_on_every_machine_and_in_every_version():
    # A change of this number changes what everyone's trained models were trained on.
    digest = hashlib.sha256(load_glyphs(10, 5, seed=3).images.tobytes()).hexdigest()
    assert digest == "f9f9e65891fa184fc9e130f22561ac5ee5b17fdb45d81e2e36aad5da9c96f255"


def test_a_class_does_not_depend_on_what_else_is_asked_for(glyphs):
    images = glyphs.images.reshape(40, 20, 28, 28)
    later = load_glyphs(3, 4, first_class=17)
    np.testing.assert_array_equal(later.images.reshape(3, 4, 28, 28), images[17:20, :4])
    assert later.class_names == glyphs.class_names[17:20]


def test_seeds_give_other_writing_systems(glyphs):
    other = load_glyphs(40, 3, seed=1)
    mine = glyphs.images.reshape(40, 20, 28, 28)[:, :3].reshape(120, 28, 28)
    same = (mine == other.images).all(axis=(1, 2))
    assert not same.any()


def test_splits_are_disjoint_ranges_of_whole_alphabets():
    train, test = SPLITS["train"], SPLITS["test"]
    assert not set(train) & set(test)
    assert all(
        split.start % ALPHABET_SIZE == len(split) % ALPHABET_SIZE == 0 for split in SPLITS.values()
    )
    drawn = load_glyphs(2, 3, split="test", first_class=4)
    assert drawn.name == "glyphs/test"
    by_number = load_glyphs(2, 3, first_class=test.start + 4)
    np.testing.assert_array_equal(drawn.images, by_number.images)
    assert drawn.class_names == by_number.class_names


def test_ink_is_bright_on_dark_and_covers_a_plausible_share(glyphs):
    share = (glyphs.images > 127).mean(axis=(1, 2))
    assert share.min() > 0.01
    assert share.max() < 0.35
    assert 0.05 < share.mean() < 0.15
    assert (glyphs.images.max(axis=(1, 2)) > 200).all()
    gray = (glyphs.images > 0) & (glyphs.images < 255)
    assert gray.mean() > 0.03, "edges are antialiased"


def test_writing_stays_on_the_page():
    border = np.ones((28, 28), dtype=bool)
    border[1:-1, 1:-1] = False
    assert load_glyphs(20, 20, seed=5).images[:, border].mean() < 2.0


@pytest.mark.parametrize("size", [16, 33, 64])
def test_size_scales_the_same_drawing(size):
    small, large = load_glyphs(4, 5).images, load_glyphs(4, 5, size=size).images
    assert large.shape == (20, size, size)
    # The center of the ink, as a share of the page, stays where it is.
    for axis in (1, 2):
        centers = []
        for images in (small, large):
            profile = images.astype(float).sum(axis=3 - axis)
            position = (np.arange(images.shape[1]) + 0.5) / images.shape[1]
            centers.append((profile @ position) / profile.sum(axis=1))
        np.testing.assert_allclose(centers[0], centers[1], atol=0.03)


def test_a_dot_of_ink_has_the_area_of_its_pen():
    points = np.full((1, 1, 1, 2), 9.3, dtype=np.float32)
    radius = np.full((1, 1, 1), 4.0, dtype=np.float32)
    dot = draw_ink(points, radius, np.array([[True]]), 20)[0] / 255.0
    assert dot.sum() == pytest.approx(np.pi * 4.0**2, rel=0.02)
    rows, columns = np.indices(dot.shape)
    assert (dot * rows).sum() / dot.sum() == pytest.approx(9.3, abs=0.02)
    assert (dot * columns).sum() / dot.sum() == pytest.approx(9.3, abs=0.02)
    assert not draw_ink(points, radius, np.array([[False]]), 20).any()


def test_characters_fill_their_box_with_one_to_four_strokes():
    for index in range(30):
        strokes = character(0, index).strokes
        assert 1 <= len(strokes) <= 4
        low, high = strokes.min(axis=(0, 1)), strokes.max(axis=(0, 1))
        np.testing.assert_allclose(low + high, 0.0, atol=1e-9)
        assert (high - low).max() == pytest.approx(2.0)


def _blurred(images: np.ndarray) -> np.ndarray:
    """Average 5x5 pixels, scale to length one, of shape (n, pixels)."""
    smooth = images.astype(float)
    for axis in (1, 2):
        smooth = sum(np.roll(smooth, shift, axis=axis) for shift in range(-2, 3))
    flat = smooth.reshape(len(smooth), -1)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


def _nearest_neighbor_accuracy(images: np.ndarray, labels: np.ndarray) -> float:
    features = _blurred(images)
    likeness = features @ features.T
    np.fill_diagonal(likeness, -1.0)
    return float((labels[likeness.argmax(axis=1)] == labels).mean())


def test_drawings_of_a_class_are_alike_but_not_trivially_so(glyphs):
    accuracy = _nearest_neighbor_accuracy(glyphs.images, glyphs.labels)
    assert 0.5 < accuracy < 0.97  # chance is 1 in 40
    shuffled = np.random.default_rng(0).permutation(glyphs.labels)
    assert _nearest_neighbor_accuracy(glyphs.images, shuffled) < 0.1


def test_a_drawer_has_the_same_hand_in_all_characters(glyphs):
    ink_used = glyphs.images.reshape(40, 20, -1).mean(axis=2)
    relative = ink_used / ink_used.mean(axis=1, keepdims=True)
    # Broad pens and large hands in one half of the characters are so in the other half.
    odd, even = relative[::2].mean(axis=0), relative[1::2].mean(axis=0)
    assert np.corrcoef(odd, even)[0, 1] > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 0}, "n_classes must be a whole number of 1 or more, not 0"),
        ({"n_drawings": 0}, "n_drawings must be a whole number of 1 or more, not 0"),
        ({"size": 7}, "size must be a whole number of 8 or more, not 7"),
        ({"seed": -1}, "seed must be a whole number of 0 or more, not -1"),
        ({"first_class": -2}, "first_class must be a whole number of 0 or more, not -2"),
        ({"split": "dev"}, "split must be one of train, test, not 'dev'"),
        (
            {"n_classes": 10, "first_class": 495, "split": "test"},
            "split 'test' has 500 classes, but classes 495 to 504 were asked for",
        ),
    ],
)
def test_bad_input_is_refused_in_words(arguments, message):
    with pytest.raises(InputError, match=message):
        load_glyphs(**{"n_classes": 2, "n_drawings": 2, **arguments})
