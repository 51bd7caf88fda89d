"""Pictures far larger than needed: shrunk while they are read, one at a time."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest
from PIL import Image

from fspll.embeddings import InputSpec, encode_cached, prepare_images
from fspll.embeddings.encoders.photos import prepare_photos

SIZE = 16


def photo(width, height):
    """Return a smooth color picture."""
    y, x = np.mgrid[0:height, 0:width]
    channels = [x * 255 / width, y * 255 / height, 128 + 100 * np.sin(x / width * 9)]
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


def save(picture, path):
    picture.save(path)
    return path


@pytest.mark.parametrize("ending", [".jpg", ".png"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(4 * SIZE - 1, 4 * SIZE - 1), (1000, 1000), (900, 64)])
def test_pictures_of_a_million_pixels_are_resized_as_they_are(tmp_path, ending, channels, size):
    path = save(photo(*size), tmp_path / f"x{ending}")
    with Image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    spec = InputSpec(SIZE, channels)
    assert prepare_images([path], spec).equal(prepare_images(pixels[None], spec))


def test_sides_that_are_not_much_too_long_are_resized_as_they_are():
    picture, spec = photo(1100, 1100), InputSpec(276, 3)
    assert prepare_images([picture], spec).equal(prepare_images(np.asarray(picture)[None], spec))


@pytest.mark.parametrize("ending", [".jpg", ".png", ".gif", ".webp"])
@pytest.mark.parametrize("size", [(1001, 1000), (1300, 847), (40, 26_000)])
def test_larger_ones_look_the_same(tmp_path, ending, size):
    if ending == ".webp" and max(size) > 16_383:
        pytest.skip("WebP has no such pictures")
    path = save(photo(*size), tmp_path / f"x{ending}")
    with Image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"))
    spec = InputSpec(SIZE, 3)
    difference = prepare_images([path], spec) - prepare_images(pixels[None], spec)
    assert not difference.equal(0 * difference)
    assert difference.abs().max() < 0.04
    assert difference.abs().mean() < 0.01


@pytest.mark.parametrize("size", [(1200, 900), (900, 1200), (1600, 1601)])
def test_photos_keep_their_center(size):
    picture = photo(*size)
    difference = prepare_photos([picture]) - prepare_photos(np.asarray(picture)[None])
    assert difference.abs().max() < 0.02


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F"])
def test_every_kind_of_pixels_may_be_large(mode):
    pixels = np.linspace(0, 1, 1001 * 1000).reshape(1001, 1000)
    if mode.startswith("I"):
        kind = np.uint16 if mode == "I;16" else np.int32
        picture = Image.fromarray((pixels * 65535).astype(kind))
    elif mode == "F":
        picture = Image.fromarray(pixels.astype(np.float32))
    else:
        picture = Image.fromarray((pixels * 255).astype(np.uint8)).convert(mode)
    found = prepare_images([picture], InputSpec(SIZE, 1))
    assert found[0, 0, 0].mean() < 0.1  # dark above, light below
    assert found[0, 0, -1].mean() > 0.9


def test_pictures_of_full_size_are_not_held_together(tmp_path):
    path = save(Image.new("L", (2000, 2000)), tmp_path / "x.png")
    tracemalloc.start()
    prepare_images([path] * 8, InputSpec(501, 1))  # too large to be shrunk first
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * 4 * 2000**2  # one of them as floats, and a copy


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("cache", [True, False])
def test_a_pipe_is_left_out_and_not_waited_for(tmp_path, cache):
    os.mkfifo(tmp_path / "pipe.png")
    files = [tmp_path / "pipe.png", save(photo(28, 28), tmp_path / "x.png")]
    found = encode_cached("omniglot-conv4", files, skip_bad=True, cache=cache)
    assert found.kept.tolist() == [1]
    assert [str(one) for one in found.unreadable] == [
        f"{files[0]} is a pipe or a device, not a picture file"
    ]
