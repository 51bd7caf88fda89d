"""Model files, archives, pictures and results for fuzz.py, and what all its samples share."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from fspll import FsPLLClassifier
from fspll.datasets.archives import ZipSource
from fspll.embeddings import (
    InputSpec,
    build_network,
    load_checkpoint,
    load_embedding,
    prepare_images,
    save_checkpoint,
)
from fspll.experiments.reproduce.store import Figures, Run, Store
from fspll.labeling.report.thumbnails import thumbnail
from fspll.labeling.saving import load_model
from fspll.rectifiers import FsPLLRule
from fuzz import Reader, Sample

JSON_WORDS = (
    *(
        b"true",
        b"null",
        b"[]",
        b"{}",
        b"[[[[[[[[",
        b"NaN",
        b"-Infinity",
        b'"\\ud800"',
        b'"\\u0000"',
    ),
    *(b'"choices"', b'"result"', b'"data"', b'"annotations"', b'"id"', b'{"x":', b"[" * 3000),
)


def as_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Return a reader of bytes that writes them to a file first."""

    def read_bytes(case: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(case)
        return read(path)

    return read_bytes


def texts(*samples: str) -> list[Sample]:
    return [Sample((sample.encode(),)) for sample in samples]


# -------------------------------------------------------------------- models


def tensor_sample(content: bytes) -> Sample:
    """Return the metadata, the rest of the header and the tensors of a safetensors file."""
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8 : 8 + size])
    metadata = header["__metadata__"]["metadata"].encode()

    def pack(parts: Sequence[bytes]) -> bytes:
        start = parts[1]
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            changed = json.loads(start)
            changed["__metadata__"]["metadata"] = parts[0].decode("utf-8", "replace")
            start = json.dumps(changed).encode()
        return struct.pack("<Q", len(start)) + start + parts[2]

    return Sample((metadata, json.dumps(header).encode(), content[8 + size :]), pack)


def samples_of(write: Callable[[Path], object], *others: Callable[[Path], object]) -> list[Sample]:
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for one in (write, *others):
            path = Path(folder) / "file"
            one(path)
            found.append(tensor_sample(path.read_bytes()))
        return found


TENSOR_WORDS = (
    *JSON_WORDS,
    *(b'"F32"', b'"I64"', b'"BOOL"', b'"shape":[0]', b'"data_offsets":[0,0]', b'\\"'),
)


def model() -> Reader:
    X, y = [[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.0]], [{"a"}, {"a", "b"}, {"b"}, {"b", "c"}]
    network = build_network("conv4", width=2, size=16, seed=0)
    encoder = load_embedding(network, "cpu", input_spec=InputSpec(16, 1))
    pictures = np.arange(4 * 256, dtype=np.uint8).reshape(4, 16, 16)
    samples = samples_of(
        FsPLLClassifier().fit(X, y).save,
        FsPLLClassifier(rectifier=FsPLLRule(n_neighbors=2)).fit(X, y).save,
        FsPLLClassifier(rectifier="evidence").fit(X, y).save,
        FsPLLClassifier(rectifier="fspll", embedding=encoder).fit(pictures, y).save,
    )
    return Reader(samples, as_file("s.fspll", load_model), TENSOR_WORDS)


def checkpoint() -> Reader:
    network = build_network("conv4", width=2, size=16, seed=0)

    def write(path: Path) -> None:
        save_checkpoint(path, network, input_spec=InputSpec(16, 1), training={"tasks": 3})

    samples = samples_of(write)
    metadata, header, tensors = samples[0].parts
    loose = json.loads(metadata) | {"sha256": None}  # whose weights may be changed
    samples.append(Sample((json.dumps(loose).encode(), header, tensors), samples[0].pack))
    return Reader(samples, as_file("s.safetensors", load_checkpoint), TENSOR_WORDS)


# -------------------------------------------------------------------- archives and pictures


def archive() -> Reader:
    samples = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as packed:
            packed.writestr("a/x.png", b"first" * 50)
            packed.writestr("a/y.png", bytes(500))
        samples.append(Sample((file.getvalue(),)))

    def read(path: Path) -> None:
        with ZipSource(path) as source:
            for name in source.names:
                source.read(name)

    words = (
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"PK\x06\x06",
        b"PK\x06\x07",
        b"../",
        b"/",
    )
    return Reader(samples, as_file("s.zip", read), words, zip_size)


def zip_size(case: bytes) -> int:
    """Return what the members of a zip unpack to, whatever they declare."""
    total = len(case)
    try:
        with zipfile.ZipFile(io.BytesIO(case)) as packed:
            for info in packed.infolist():
                begin = info.header_offset + 30
                inflate = zlib.decompressobj(-15)
                for at in range(begin, begin + 300):  # names and extra fields come first
                    try:
                        total += len(inflate.decompress(case[at:], 1 << 28))
                        break
                    except zlib.error:
                        inflate = zlib.decompressobj(-15)
    except Exception:
        return total
    return total


def mat_size(case: bytes) -> int:
    """Return what the compressed variables of a .mat file unpack to."""
    total, at = len(case), 0
    while (at := case.find(b"\x78", at)) >= 0:
        with contextlib.suppress(zlib.error):
            total += len(zlib.decompressobj().decompress(case[at:], 1 << 28))
        at += 1
    return total


def pictures() -> Reader:
    color = Image.fromarray(np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3))
    gray = color.convert("L")
    wide = Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30) * 100)
    exif = Image.Exif()
    exif[0x0112] = 6
    saved = [
        (color, "PNG", {"exif": exif}),
        (gray.convert("P"), "PNG", {"transparency": 3}),
        (color.convert("RGBA"), "PNG", {}),
        (wide, "PNG", {}),
        (gray.convert("1"), "PNG", {}),
        (color, "JPEG", {"exif": exif}),
        (color, "JPEG", {"progressive": True}),
        (color.convert("CMYK"), "JPEG", {}),
        (color, "GIF", {"save_all": True, "append_images": [gray.convert("RGB")]}),
        (color, "BMP", {}),
        (gray.convert("P"), "BMP", {}),
        (color, "TIFF", {"exif": exif}),
        (color, "TIFF", {"compression": "tiff_lzw"}),
        (color, "TIFF", {"compression": "tiff_adobe_deflate"}),
        (color, "TIFF", {"compression": "jpeg"}),
        (gray.convert("1"), "TIFF", {"compression": "group4"}),
        (wide, "TIFF", {}),
        (color, "WEBP", {"exif": exif}),
        (color.convert("RGBA"), "WEBP", {"lossless": True}),
        (color, "PPM", {}),
        (gray, "PPM", {}),
        (gray.convert("1"), "PPM", {}),
    ]
    samples = []
    for picture, kind, options in saved:
        file = io.BytesIO()
        picture.save(file, kind, **options)
        content = file.getvalue()
        samples.append(png_sample(content) if kind == "PNG" else Sample((content,)))
    samples += texts("P3\n2 2\n255\n1 2 3 4 5 6 7 8 9 10 11 12\n", "P1\n3 2\n1 0 1 0 1 0\n")

    def read(path: Path) -> object:
        if path.stat().st_size % 4 == 0:
            return thumbnail(path)
        return prepare_images([path], InputSpec(8, 3))

    words = (
        b"IHDR",
        b"IDAT",
        b"tRNS",
        b"PLTE",
        b"eXIf",
        b"\xff\xd8",
        b"\xff\xda",
        b"II*\0",
        b"RIFF",
    )
    return Reader(samples, as_file("s.png", read), words, pixel_size)


def png_sample(content: bytes) -> Sample:
    """Return the chunks of a PNG file, whose check sums are made anew."""
    chunks, at = [], 8
    while at < len(content):
        size = struct.unpack_from(">I", content, at)[0]
        chunks.append(content[at + 4 : at + 8 + size])
        at += size + 12

    def pack(parts: Sequence[bytes]) -> bytes:
        found = content[:8]
        for part in parts:
            found += (
                struct.pack(">I", max(0, len(part) - 4))
                + part
                + struct.pack(">I", zlib.crc32(part))
            )
        return found

    return Sample(tuple(chunks), pack)


def pixel_size(case: bytes) -> int:
    """Return the bytes of a picture's pixels, four for each."""
    try:
        with Image.open(io.BytesIO(case)) as picture:
            return len(case) + 4 * picture.width * picture.height
    except Exception:
        return len(case)


# -------------------------------------------------------------------- results


def results() -> Reader:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.sqlite"
        with Store(path) as store:
            ones = np.ones(3)
            store.add(
                "k", {"method": "PN"}, {"torch": "2"}, Figures(np.arange(3), ones, ones, ones)
            )
            store.add_network("n", {"plan": 1}, {"torch": "2"}, 2.5)
            store.add_run(Run("2026-01-01", "omniglot", "quick", "2", 3.0))
        with sqlite3.connect(path) as plain:
            plain.execute("PRAGMA journal_mode=DELETE")
        plain.close()
        content = path.read_bytes()

    def read(case: bytes, folder: Path) -> None:
        for ending in ("", "-wal", "-shm", "-journal"):
            (folder / f"results.sqlite{ending}").unlink(missing_ok=True)
        path = folder / "results.sqlite"
        path.write_bytes(case)
        with Store(path) as store:
            store.figures("k")
            store.missing("k", 5)
            store.networks()
            store.versions(["k"])
            store.runs()

    return Reader(
        [Sample((content,))], read, (b"NOT NULL", b"TEXT", b"key", b"{}", b'"', b"WITHOUT")
    )
