"""The one picture decoder: which files it opens, and that no other program is ever started."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

import fspll
from fspll._common.errors import DataError
from fspll._common.pictures import FORMATS, HEIC_SUFFIXES, SUFFIXES, open_picture
from fspll.datasets.cache import read_picture
from fspll.embeddings import InputSpec, prepare_images
from fspll.labeling.report.thumbnails import thumbnail

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n%%EndComments\nshowpage\n"
WMF = b"\xd7\xcd\xc6\x9a\x00\x00" + bytes(16) + b"\x01\x00\t\x00" + bytes(40)


@pytest.fixture
def interpreter(tmp_path, monkeypatch):
    """Put a program called gs on the path, as Pillow starts it for EPS; return what it leaves."""
    folder, trace = tmp_path / "bin", tmp_path / "was-started"
    folder.mkdir()
    program = folder / "gs"
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # Pillow looks for it once
    return trace


def refused(source, message, **options):
    with pytest.raises(DataError, match=message), open_picture(source, "x", **options):
        pass


def test_no_file_starts_another_program(tmp_path, interpreter):
    path = tmp_path / "x.png"
    path.write_bytes(EPS)
    with Image.open(path) as unsafe, pytest.raises(OSError):  # what the decoder has to prevent
        unsafe.load()
    assert interpreter.exists()
    interpreter.unlink()
    with pytest.raises(DataError, match="is not a picture file"):
        prepare_images([path], InputSpec(16, 1))
    with pytest.raises(DataError, match="x is not a picture file"):
        read_picture(EPS, "x", size=16, channels=1)
    assert thumbnail(path) is None
    assert not interpreter.exists()


@pytest.mark.parametrize("content", [EPS, WMF, b"", b"8BPS", b"text"])
def test_other_formats_are_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "x.png"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught, open_picture(path, "picture 3"):
        pass
    assert str(caught.value) == (
        "picture 3 is not a picture file of a format that is read here "
        "(PNG, JPEG, GIF, BMP, TIFF, WEBP, PPM)"
    )


@pytest.mark.parametrize("suffix", [one for one in SUFFIXES if one not in HEIC_SUFFIXES])
def test_every_listed_suffix_can_be_read(tmp_path, suffix):
    mode = "1" if suffix == ".pbm" else "L"
    path = tmp_path / f"x{suffix}"
    Image.new(mode, (6, 4), 1).save(path, Image.registered_extensions()[suffix])
    with open_picture(path, "x") as picture:
        assert picture.size == (6, 4)
        assert picture.format in FORMATS


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_the_way_their_camera_says(kind, orientation):
    pixels = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, exif=exif)
    with Image.open(io.BytesIO(file.getvalue())) as plain:
        expected = np.asarray(ImageOps.exif_transpose(plain))
    with open_picture(io.BytesIO(file.getvalue()), "x") as picture:
        assert picture.size == ((4, 6) if orientation > 4 else (6, 4))
        np.testing.assert_array_equal(np.asarray(picture), expected)


def test_pixels_are_bounded(monkeypatch):
    file = io.BytesIO()
    Image.new("1", (300, 200)).save(file, "PNG")
    monkeypatch.setenv("FSPLL_MAX_PIXELS", "59999")
    refused(file, "^x has 300 x 200 pixels, more than the 59,999 that")
    monkeypatch.setenv("FSPLL_MAX_PIXELS", "60000")
    with open_picture(file, "x") as picture:
        assert picture.size == (300, 200)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20_000)  # Pillow refuses twice as many
    refused(file, "^x cannot be opened: .*exceeds limit")


def test_what_goes_wrong_while_pixels_are_read_is_about_the_file(tmp_path):
    file = io.BytesIO()
    Image.effect_noise((64, 64), 80).save(file, "JPEG")
    cut = io.BytesIO(file.getvalue()[:900])
    refused(cut, "^x cannot be decoded, so it is damaged or cut short")
    refused(tmp_path, "^x is a folder")
    refused(tmp_path / "none.png", "^x does not exist")


def test_no_other_module_opens_pictures():
    root = Path(fspll.__file__).parent
    opening = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"\bImage\.open\(", path.read_text(encoding="utf-8"))
    ]
    assert opening == ["_common/pictures.py"]
