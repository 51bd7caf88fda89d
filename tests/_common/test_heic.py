"""HEIC pictures of phones: read through an optional package, or refused in a sentence."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import DataError, MissingPackageError
from fspll._common.pictures import HEIC_SUFFIXES, has_picture_suffix, open_picture


@pytest.fixture(scope="module")
def photo():
    """The bytes of a picture that is red on the left and blue on the right."""
    heif = pytest.importorskip("pillow_heif", reason="the extra heic is not installed")
    pixels = np.zeros((32, 48, 3), dtype=np.uint8)
    pixels[:, :24, 0] = pixels[:, 24:, 2] = 255
    made = io.BytesIO()
    try:
        heif.from_pillow(Image.fromarray(pixels)).save(made, quality=95)
    except (RuntimeError, ValueError) as error:
        pytest.skip(f"this build of pillow_heif cannot write HEIC: {error}")
    return made.getvalue()


@pytest.mark.parametrize("suffix", [*HEIC_SUFFIXES, ".jpg"])
def test_a_photo_of_a_phone_is_read_whatever_its_name(tmp_path, photo, suffix):
    path = tmp_path / f"photo{suffix}"
    path.write_bytes(photo)
    assert has_picture_suffix(path.name)
    for source in (path, str(path), io.BytesIO(photo)):
        with open_picture(source, "photo") as picture:
            pixels = np.asarray(picture.convert("RGB")).astype(int)
        assert pixels.shape == (32, 48, 3)
        assert abs(pixels[16, 4] - [255, 0, 0]).max() < 40
        assert abs(pixels[16, 44] - [0, 0, 255]).max() < 40


def test_a_damaged_one_is_refused(photo):
    with (
        pytest.raises(DataError, match=r"x (cannot be|is not a picture)"),
        open_picture(io.BytesIO(photo[: len(photo) // 2]), "x"),
    ):
        pass


def test_the_absent_package_is_named(tmp_path, monkeypatch):
    path = tmp_path / "x.heic"
    path.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with (
        pytest.raises(
            MissingPackageError,
            match=r"x\.heic is a HEIC picture: it needs the package 'pillow_heif', which is not "
            r"installed; install it with: pip install 'fspll\[heic\]'",
        ),
        open_picture(path, "x.heic"),
    ):
        pass
