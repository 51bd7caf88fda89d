"""Pictures: every shape of the same picture, polarity, and a sentence for what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fspll._common.errors import InputError, InputTypeError
from fspll.embeddings import InputSpec, prepare_images

GRAY, COLOR = InputSpec(16, 1), InputSpec(16, 3)
INK = InputSpec(16, 1, "bright-ink")


@pytest.fixture
def gray():
    return np.random.default_rng(0).integers(0, 256, (2, 20, 24), dtype=np.uint8)


@pytest.fixture
def color():
    return np.random.default_rng(0).integers(0, 256, (2, 20, 24, 3), dtype=np.uint8)


def drawing(size=20):
    """A bright stroke on dark paper."""
    image = np.zeros((size, size), dtype=np.uint8)
    image[size // 4 : -size // 4, size // 2] = 255
    return image


def files(folder: Path, images: np.ndarray) -> list[Path]:
    paths = [folder / f"{index}.png" for index in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image).save(path)
    return paths


@pytest.mark.parametrize("spec", [GRAY, COLOR, INK, InputSpec(32, 1)])
def test_one_gray_picture_in_every_shape(tmp_path, gray, spec):
    unit = gray.astype(np.float32) / np.float32(255)
    read_only = gray.copy()
    read_only.flags.writeable = False
    paths = files(tmp_path, gray)
    shapes = {
        "paths": paths,
        "strings": [str(path) for path in paths],
        "array of strings": np.array([str(path) for path in paths]),
        "PIL": [Image.open(path) for path in paths],
        "RGB copies": np.repeat(gray[..., None], 3, axis=-1),
        "list of arrays": list(gray),
        "mixed": [paths[0], torch.from_numpy(gray[1])],
        "channels last": gray[..., None],
        "channels first": gray[:, None],
        "float": unit,
        "float64": unit.astype(np.float64),
        "tensor": torch.from_numpy(unit)[:, None],
        "uint8 tensor": torch.from_numpy(gray),
        "read-only": read_only,
        "negative strides": gray[:, ::-1][:, ::-1],
        "opaque": np.stack([gray] * 3 + [np.full_like(gray, 255)], axis=-1),
    }
    expected = prepare_images(gray, spec)
    assert expected.shape == (2, spec.channels, spec.size, spec.size)
    assert expected.dtype == torch.float32
    for name, X in shapes.items():
        torch.testing.assert_close(
            prepare_images(X, spec), expected, atol=3e-7, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("spec", [GRAY, COLOR])
def test_one_color_picture_in_every_shape(tmp_path, color, spec):
    expected = prepare_images(color, spec)
    first = np.moveaxis(color, -1, 1)
    for X in (
        files(tmp_path, color),
        [Image.fromarray(image) for image in color],
        list(color),
        first,
        list(first),
        torch.from_numpy(first / np.float32(255)),
    ):
        assert torch.equal(prepare_images(X, spec), expected)


def test_no_resizing_keeps_values_exactly(gray):
    square = gray[:, :16, :16]
    assert torch.equal(prepare_images(square, GRAY)[:, 0] * 255, torch.from_numpy(square).float())


def test_gray_is_the_luma_of_pillow(color):
    square = color[:, :16, :16]
    pillow = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in square])
    found = prepare_images(square, GRAY)[:, 0].numpy() * 255
    assert np.abs(found - pillow).max() <= 1  # Pillow rounds to whole numbers


def test_resizing_is_antialiased():
    checks = np.indices((64, 64)).sum(axis=0) % 2 == 0
    small = prepare_images(checks[None], GRAY)
    assert (small[..., 1:-1, 1:-1] - 0.5).abs().max() < 0.02


def test_pictures_of_a_list_may_differ_in_size_and_channels(gray, color):
    X = [gray[0], color[0, :10], gray[1, :, :7]]
    found = prepare_images(X, COLOR)
    for index, image in enumerate(X):
        assert torch.equal(found[index], prepare_images([image], COLOR)[0])


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I;16", "I"])
def test_pil_modes_of_a_white_picture_with_a_black_corner(mode):
    base = np.full((16, 16), 255, dtype=np.uint8)
    base[:4, :4] = 0
    if mode.startswith("I"):
        wide = base.astype(np.uint16) * 257
        image = Image.fromarray(wide if mode == "I;16" else wide.astype(np.int32))
    else:
        image = Image.fromarray(base).convert("RGB").convert(mode)
    assert image.mode == mode
    expected = torch.from_numpy(base / np.float32(255))[None, None]
    torch.testing.assert_close(prepare_images([image], GRAY), expected, atol=1e-6, rtol=0)


def test_transparency_shows_white_paper():
    clear = np.zeros((1, 16, 16, 4), dtype=np.uint8)
    clear[0, 3:5, 3:5, 3] = 255  # an opaque black spot on nothing
    expected = torch.ones(1, 3, 16, 16)
    expected[..., 3:5, 3:5] = 0
    assert torch.equal(prepare_images(clear, COLOR), expected)
    assert torch.equal(prepare_images([Image.fromarray(clear[0])], COLOR), expected)


def test_camera_orientation_is_honored(tmp_path, gray):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    Image.fromarray(gray[0]).save(tmp_path / "a.png", exif=exif)
    upright = np.rot90(gray[0], k=-1)[None]
    assert torch.equal(prepare_images([tmp_path / "a.png"], GRAY), prepare_images(upright, GRAY))


def test_polarity_is_recognized_picture_by_picture():
    bright = drawing()
    expected = prepare_images(bright[None], GRAY)[0]
    found = prepare_images(np.stack([bright, 255 - bright]), INK)
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(found[1], expected, atol=1e-6, rtol=0)
    dark = prepare_images(np.stack([bright, 255 - bright]), InputSpec(16, 1, "dark-ink"))
    torch.testing.assert_close(dark, 1 - found, atol=1e-6, rtol=0)


def test_polarity_can_be_said():
    bright = drawing()[None]
    as_is = prepare_images(bright, GRAY)
    assert torch.equal(prepare_images(255 - bright, INK, "dark-ink"), prepare_images(bright, INK))
    assert torch.equal(prepare_images(bright, INK, "bright-ink"), as_is)
    # Told wrongly, it obeys.
    torch.testing.assert_close(prepare_images(bright, INK, "dark-ink"), 1 - as_is)


def test_photos_are_never_inverted(gray):
    light = np.full((1, 16, 16), 250, dtype=np.uint8)
    assert prepare_images(light, GRAY).min() > 0.9
    with pytest.raises(InputError, match="is not one of ink drawings"):
        prepare_images(light, GRAY, "dark-ink")
    with pytest.raises(InputError, match="polarity must be 'auto', 'bright-ink' or 'dark-ink'"):
        prepare_images(light, INK, "dark")


def with_value(value):
    X = np.zeros((4, 8, 8), dtype=np.float32)
    X[2, 3, 3] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("a.png", r"X is one picture \('a.png'\); wrap it in a list"),
        (Path("a.png"), r"X is one picture .* wrap it in a list"),
        (Image.new("L", (8, 8)), "X is one picture .a PIL image.; wrap it in a list"),
        (
            np.zeros((8, 8)),
            r"X of shape \(8, 8\) is one gray picture .* wrap one picture",
        ),
        (np.zeros((8, 8, 3)), r"\(8, 8, 3\) is one color picture; wrap it in a list"),
        (torch.zeros(8, 8, 4), r"\(8, 8, 4\) is one color picture; wrap it in a list"),
        (np.zeros(8), r"X has shape \(8,\); pictures come as \(n, H, W\)"),
        (np.zeros((2, 2, 8, 8, 3)), r"X has shape \(2, 2, 8, 8, 3\)"),
        (np.float32(1), r"X has shape \(\)"),
        (np.zeros((4, 3, 8, 3)), r"X of shape \(4, 3, 8, 3\) may have its channels first or last"),
        ([np.zeros((3, 8, 3))], r"picture 0 of shape \(3, 8, 3\) may have its channels"),
        (np.zeros((4, 8, 8, 2)), r"X of shape \(4, 8, 8, 2\) has no channel axis"),
        ([np.zeros((8, 8)), np.zeros(8)], r"picture 1 has shape \(8,\); one picture is"),
        ([], "X is empty; at least one picture is needed"),
        (np.zeros((0, 8, 8)), "X is empty"),
        (np.zeros((2, 0, 8)), r"X has shape \(2, 0, 8\), which holds no pixels"),
        (with_value(255.0), "picture 2 has float values from 0 to 255; float pictures go from 0"),
        (with_value(-0.5), "picture 2 has float values from -0.5 to 0;"),
        (list(with_value(1.5)), "picture 2 has float values from 0 to 1.5;"),
        (with_value(np.nan), "picture 2 holds NaN or infinite values"),
        (with_value(np.inf), "picture 2 holds NaN or infinite values"),
        (np.zeros((2, 8, 8), dtype=int), "values of type int64; pictures are uint8"),
        ([["a", "b"]], "picture 0 has shape"),
    ],
)
def test_bad_values(X, message):
    with pytest.raises(InputError, match=message):
        prepare_images(X, GRAY)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({"a": 1}, "not a dict"),
        (iter([]), "not a list_iterator"),
        (None, "not a NoneType"),
        ([np.zeros((8, 8)), None], "picture 1 is a NoneType; a picture is a path"),
    ],
)
def test_bad_types(X, message):
    with pytest.raises(InputTypeError, match=message):
        prepare_images(X, GRAY)


def test_rounding_outside_the_unit_range_is_forgiven():
    assert prepare_images(with_value(1 + 1e-7), GRAY).max() <= 1


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "bmp", "tif"])
def test_truncated_files(tmp_path, color, ending):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    Image.fromarray(color[0]).save(whole)
    path.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    with pytest.raises(InputError, match=r"picture 1 \(.*cut\.\w+\)") as caught:
        prepare_images([whole, path], GRAY)
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "empty.png").touch()
    for name, message in {
        "text.png": "is not a picture file",
        "empty.png": "is not a picture file",
        "none.png": "does not exist",
        "": "is a folder, not a picture file",
    }.items():
        with pytest.raises(InputError, match=rf"picture 0 \(.*{name}\) {message}"):
            prepare_images([tmp_path / name], GRAY)


def test_index_counts_from_the_first_picture_of_the_caller():
    with pytest.raises(InputError, match="picture 42 holds NaN"):
        prepare_images(with_value(np.nan), GRAY, first_index=40)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 1), "size of an input must be a whole number of 1 or more, not 0"),
        ((28.0, 1), "size of an input .* not 28.0"),
        ((28, 4), "channels of an input must be 1 or 3, not 4"),
        ((28, 1, "ink"), "polarity of an input must be None or one of"),
    ],
)
def test_bad_specs(values, message):
    with pytest.raises(InputError, match=message):
        InputSpec(*values)
