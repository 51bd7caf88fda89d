"""Decode once: what is written, when it is used again, and what an interruption leaves."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections import namedtuple
from functools import partial

import numpy as np
import pytest
from PIL import Image

from fspll._common.errors import DataError
from fspll._common.files import decoded_dir
from fspll.datasets.cache import CacheEntry, read_picture

SHAPE = (4, 3)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.bin"
    path.write_bytes(b"source")
    return path


def image(value):
    return np.full(SHAPE, value, dtype=np.uint8)


def readers(n):
    return [partial(image, i % 251) for i in range(n)]


def build(source, n=5, **kwargs):
    entry = CacheEntry.of("things-4", [source], size=4)
    return entry, entry.build(readers(n), SHAPE, {"labels": [1, 2]}, **kwargs)


def test_images_keep_their_order_over_many_batches(source):
    entry, built = build(source, n=700)
    again = entry.load()
    assert again.about == built.about == {"labels": [1, 2]}
    np.testing.assert_array_equal(again.images[:, 0, 0], np.arange(700) % 251)
    assert again.images.shape == (700, *SHAPE)


def test_loaded_images_are_a_read_only_map(source):
    images = build(source)[0].load().images
    assert isinstance(images, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        images[0, 0, 0] = 1


def test_a_changed_source_is_decoded_anew_and_the_old_entry_goes(source):
    old, _ = build(source)
    source.write_bytes(b"longer source")
    new = CacheEntry.of("things-4", [source], size=4)
    assert new.load() is None
    assert old.load() is not None
    new.build(readers(2), SHAPE, {})
    assert sorted(decoded_dir().iterdir()) == [new.about_path, new.images_path]


def test_a_touched_source_is_stale(source):
    old, _ = build(source)
    os.utime(source, ns=(1, 1))
    assert CacheEntry.of("things-4", [source], size=4).fingerprint != old.fingerprint


def test_other_settings_and_other_places_are_entries_of_their_own(source, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    copied = shutil.copy2(source, tmp_path / "elsewhere" / source.name)
    names = {
        CacheEntry.of("things-4", [source], size=4).name,
        CacheEntry.of("things-4", [source], size=5).name,
        CacheEntry.of("things-4", [copied], size=4).name,
    }
    assert len(names) == 3


@pytest.mark.parametrize("damage", ["truncated", "empty", "no pixels", "bad JSON", "other shape"])
def test_a_damaged_entry_does_not_load(source, damage):
    entry, _ = build(source)
    pixels, about = entry.images_path, entry.about_path
    if damage == "truncated":
        pixels.write_bytes(pixels.read_bytes()[:-1])
    elif damage == "empty":
        pixels.write_bytes(b"")
    elif damage == "no pixels":
        pixels.unlink()
    elif damage == "bad JSON":
        about.write_text(about.read_text()[:-3])
    else:
        np.save(pixels, np.zeros((6, *SHAPE), dtype=np.uint8))
    assert entry.load() is None
    entry.build(readers(5), SHAPE, {})
    assert entry.load().images[4, 0, 0] == 4


def test_zeros_in_the_pixels_are_noticed_and_decoded_again(source):
    """They would be images like any other, and figures would be measured on them."""
    entry, _ = build(source, n=700)
    whole = entry.images_path.read_bytes()
    half = len(whole) // 2
    entry.images_path.write_bytes(whole[:half] + bytes(len(whole) - half))
    assert entry.load() is None
    build(source, n=700)
    assert entry.images_path.read_bytes() == whole


@pytest.mark.parametrize("name", ["images_path", "about_path"])
@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_no_changed_byte_gets_through(source, name, change):
    entry, built = build(source)
    path = getattr(entry, name)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :])
        found = entry.load()
        if found is not None:  # a blank between values of the JSON became another blank
            np.testing.assert_array_equal(found.images, built.images)
            assert found.about == built.about


def test_a_checksum_is_compared_once_per_process_and_file(source, monkeypatch):
    entry, _ = build(source)
    compared = []
    crc32 = zlib.crc32
    monkeypatch.setattr(zlib, "crc32", lambda *data: compared.append(data) or crc32(*data))
    entry.load()
    assert compared == []  # it was when it was built
    build(source)
    assert entry.load() is not None
    times = len(compared)
    entry.load()
    assert len(compared) == times


@pytest.mark.parametrize("error", [KeyboardInterrupt, DataError])
def test_an_interrupted_decode_leaves_nothing(source, error):
    def stop():
        raise error("stop")

    entry = CacheEntry.of("things-4", [source], size=4)
    with pytest.raises(error, match="stop"):
        entry.build([*readers(300), stop, *readers(300)], SHAPE, {})
    assert list(decoded_dir().iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_the_next_build_removes_what_a_killed_decode_left(source):
    script = (
        "import os, signal, sys; from pathlib import Path; import numpy as np\n"
        "from fspll.datasets.cache import CacheEntry\n"
        "entry = CacheEntry.of('things-4', [Path(sys.argv[1])], size=4)\n"
        "kill = lambda: os.kill(os.getpid(), signal.SIGKILL)\n"
        "entry.build([kill], (4, 3), {})\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(source)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    (left,) = decoded_dir().iterdir()
    assert re.fullmatch(r"\.things-4-.*\.npy\.[0-9a-f]{8}-\d+\.part", left.name)
    stranger = left.with_name(left.name.replace("things-4", "things-5"))
    stranger.touch()
    source.write_bytes(b"another state of the source")
    entry, _ = build(source)
    assert sorted(decoded_dir().iterdir()) == [stranger, entry.about_path, entry.images_path]


def test_a_full_disk_is_noticed_before_decoding(source, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2_000_000))
    entry = CacheEntry.of("things-4", [source], size=4)
    with pytest.raises(DataError, match=r"need 12 MB but .*decoded has only 2 MB free"):
        entry.build([partial(image, 0)] * 1_000_000, SHAPE, {})


def test_a_disk_that_fills_while_decoding_is_reported(source):
    resource = pytest.importorskip("resource")
    entry = CacheEntry.of("things-4", [source], size=4)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(DataError, match=r"cannot write .*things-4.*\.npy: File too large"):
            entry.build(readers(2000), SHAPE, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(decoded_dir().iterdir()) == []


def test_progress_reaches_the_end_and_a_pipe_stays_silent(source, capsys):
    seen = []
    build(source, n=600, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(256, 600), (512, 600), (600, 600)]
    build(source, n=600)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_a_bar(source, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich treat the captured stream as a terminal
    monkeypatch.setenv("COLUMNS", "100")
    build(source, n=600)
    out, err = capsys.readouterr()
    assert out == ""
    assert "decoding things-4" in err


# ---------------------------------------------------------------- read_picture


def encode(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def test_short_side_fits_and_long_side_is_cropped_evenly():
    wide = np.zeros((20, 60, 3), dtype=np.uint8)
    wide[:, 20:40, 1] = 200  # the middle square
    pixels = read_picture(encode(Image.fromarray(wide)), "wide", size=10, channels=3)
    assert pixels.shape == (10, 10, 3)
    np.testing.assert_allclose(pixels[..., 1][:, 1:-1], 200, atol=4)
    assert not pixels[..., [0, 2]].any()


def test_gray_and_color():
    red = Image.new("RGB", (8, 8), (255, 0, 0))
    assert (read_picture(encode(red), "red", size=8, channels=1) == 76).all()
    gray = read_picture(encode(Image.new("L", (8, 8), 90)), "gray", size=8, channels=3)
    assert gray.shape == (8, 8, 3)
    assert (gray == 90).all()


def test_transparent_pixels_are_white():
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    assert (read_picture(encode(clear), "clear", size=8, channels=3) == 255).all()


def test_sixteen_bits_are_scaled_not_clipped():
    deep = Image.fromarray(np.full((8, 8), 0x4000, dtype=np.uint16))
    assert (read_picture(encode(deep), "deep", size=8, channels=1) == 0x40).all()


def test_the_rotation_flag_of_a_camera_is_obeyed():
    upper = np.zeros((16, 16), dtype=np.uint8)
    upper[:8] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by half
    turned = encode(Image.fromarray(upper), "JPEG", exif=exif)
    pixels = read_picture(turned, "photo", size=16, channels=1)
    assert pixels[:8].max() < 30
    assert pixels[8:].min() > 225


def test_large_photos_are_reduced_faithfully():
    ramp = np.tile(np.linspace(0, 255, 800).astype(np.uint8), (800, 1))
    pixels = read_picture(encode(Image.fromarray(ramp), "JPEG"), "ramp", size=20, channels=1)
    np.testing.assert_allclose(pixels[10], (np.arange(20) + 0.5) * 255 / 20, atol=4)


def test_drawings_are_scaled_without_echoes():
    page = np.full((100, 100), 255, dtype=np.uint8)
    page[:, 48:52] = 0  # one stroke, as wide as one pixel of the result
    photo = read_picture(encode(Image.fromarray(page)), "page", size=25, channels=1)
    drawn = read_picture(encode(Image.fromarray(page)), "page", size=25, channels=1, drawing=True)
    assert (drawn[:, 12] == 0).all()
    assert (np.delete(drawn, 12, axis=1) == 255).all()
    assert (np.delete(photo, 12, axis=1) < 255).any()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not an image", "is not a picture file"),
        (encode(Image.effect_noise((64, 64), 80), "JPEG")[:900], "cannot be decoded, .*truncated"),
        (encode(Image.new("1", (10_000, 8_500))), "has 10000 x 8500 pixels, more than"),
    ],
)
def test_unreadable_images_are_named(data, reason):
    with pytest.raises(DataError, match=rf"row 7 {reason}"):
        read_picture(data, "row 7", size=8, channels=1)
