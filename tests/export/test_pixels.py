"""Pictures in a graph: the same numbers as the library's own resizing, for any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fspll.embeddings.encoders.photos import LITE0, prepare_photos
from fspll.embeddings.inputs import InputSpec, prepare_images
from fspll.export.pixels import Pixels

SHAPES = [(1, 64, 64), (3, 300, 251), (2, 105, 105), (1, 224, 224), (1, 40, 700), (2, 7, 9)]


@pytest.fixture(params=SHAPES, ids=str)
def pixels(request):
    """Noise on light paper in the first picture, on dark paper in the others."""
    n, height, width = request.param
    found = np.random.default_rng(0).integers(0, 256, (n, height, width, 3), dtype=np.uint8)
    found[:, 0], found[:, -1] = 10, 20
    found[0, 0], found[0, -1] = 250, 240
    found[0, :, 0], found[0, :, -1] = 255, 255
    return found


@pytest.mark.parametrize(
    "spec",
    [
        InputSpec(28, 1, "bright-ink"),
        InputSpec(28, 1, "dark-ink"),
        InputSpec(84, 3),
        InputSpec(28, 1),
    ],
    ids=str,
)
def test_drawings_and_pictures_become_what_the_library_makes_of_them(pixels, spec):
    ours, theirs = Pixels(spec)(torch.from_numpy(pixels)), prepare_images(pixels, spec)
    assert ours.shape == theirs.shape
    assert theirs.std() > 0.01
    assert (ours - theirs).abs().max() < 2e-6


def test_photos_are_cropped_and_resized_as_the_library_does_it(pixels):
    ours, theirs = (
        Pixels(LITE0.spec, photos=True, cubic=True)(torch.from_numpy(pixels)),
        prepare_photos(pixels),
    )
    assert ours.shape == theirs.shape
    assert theirs.std() > 0.01
    assert (ours - theirs).abs().max() < 5e-6


def test_half_a_light_border_is_dark_paper():
    """The library asks for the lower median, of an even number of pixels."""
    pixels = torch.zeros(2, 6, 6, 3, dtype=torch.uint8)
    pixels[:, :, :3] = 255
    pixels[1, 0, 3] = 255  # one more than half
    spec = InputSpec(6, 1, "bright-ink")
    ours, theirs = Pixels(spec)(pixels), prepare_images(pixels.numpy(), spec)
    assert ours.round().tolist() == theirs.round().tolist()
    assert ours[0, 0, 3].round().tolist() == [1, 1, 1, 0, 0, 0]
    assert ours[1, 0, 3].round().tolist() == [0, 0, 0, 1, 1, 1]
