"""The readers that benchmarks/fuzz.py tries, with samples of the files that they take."""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import savemat

from fspll.annotations import read_annotations, read_answers
from fspll.labeling.new_samples import read_new_vectors
from fuzz import Reader, Sample
from fuzz_files import (
    JSON_WORDS,
    archive,
    as_file,
    checkpoint,
    mat_size,
    model,
    pictures,
    results,
    texts,
    zip_size,
)

CELL_WORDS = (
    *(b'"', b",", b";", b"\t", b"|", b"/", b"\r\n", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"sep=;\n", b"[1,2]", b"{'a'}", b"[{(1,2): 3}]", b'["a"', b"(((((", b"-" * 5000, b"[0x1f]"),
    *(b"label", b"annotator", b"file", b"id", b"'=", b"\xe9", b"1e400", b"label_1,label_2"),
)


# -------------------------------------------------------------------- tables and JSON


def tables() -> Reader:
    samples = texts(
        "file,candidates\na.png,cat|dog\nb.png,dog\n",
        'sample;annotator;label\r\na;1;x\r\nb;1;"y;z"\r\na;2;y\r\n',
        "sep=;\nid;label_1;label_2\n1;a;b\n2;b;b\n",
        'text\tlabel\n"some, text"\t["cat", "dog"]\nother\t{\'fox\'}\n',
        "sample,candidates\n'=x,a/b\ny,a\n",
    )
    samples.append(Sample(("sample,label\nä,ü\n".encode("utf-16"),)))
    return Reader(samples, as_file("s.csv", read_annotations), CELL_WORDS)


def answers() -> Reader:
    samples = texts(
        "sample,answer\na,cat\nb,\n", "file;label\na.png;x\n", "id\tanswer\n1\t'=x\n1\t'=x\n"
    )
    return Reader(samples, as_file("s.csv", read_answers), CELL_WORDS)


def objects() -> Reader:
    rows = [{"file": "a.png", "labels": ["a", "b"]}, {"file": "b.png", "labels": "b", "n": 1.5}]
    samples = texts(json.dumps(rows), "\n".join(map(json.dumps, rows)), json.dumps(rows, indent=1))
    return Reader(samples, as_file("s.json", read_annotations), JSON_WORDS)


def label_studio() -> Reader:
    value = {"from_name": "c", "type": "choices", "value": {"choices": ["a", "b"]}}
    task = {
        "id": 1,
        "data": {"image": "/data/local-files/?d=x/a.png"},
        "annotations": [{"completed_by": 1, "result": [value]}, {"was_cancelled": True}],
    }
    other = {"id": 2, "data": {"image": "b.png"}, "completions": [{"result": [value]}]}
    flat = {"id": 1, "image": "a.png", "choice": {"choices": ["a"]}, "annotation_id": 3}
    samples = texts(json.dumps([task, other]), json.dumps([flat, flat | {"choice": "b"}]))

    def read(path: Path) -> object:
        return read_annotations(path, format="label-studio")

    return Reader(samples, as_file("s.json", read), JSON_WORDS)


def folder_of_classes() -> Reader:
    names = "cat/a.png\ncat/b.jpg\ndog/c.png\nwild/fox/d.gif"
    sample = Sample(
        (names.encode(), b"file,alternatives\na.png,dog\ncat/b.jpg,dog|wild/fox\n"),
        lambda parts: b"\0\0\0".join(parts),
    )

    def read(case: bytes, folder: Path) -> object:
        root = folder / "root"
        names, _, table = case.partition(b"\0\0\0")
        for name in names.decode("utf-8", "surrogateescape").split("\n")[:20]:
            parts = [
                part[:80] for part in name.replace("\0", "").split("/") if part not in ("..", "")
            ]
            path = root.joinpath(*parts[:5])
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError:
                continue
        try:
            if not root.is_dir():
                root.unlink(missing_ok=True)
                root.mkdir()
            (root / "alternatives.csv").write_bytes(table)
            return read_annotations(root)
        finally:
            shutil.rmtree(root)

    return Reader([sample], read, (*CELL_WORDS, b".png", b"\n.", b"../"))


# -------------------------------------------------------------------- arrays


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_sample(compressed: bool = False, **arrays: Any) -> Sample:
    names = [f"{name}.npy" for name in arrays]

    def pack(parts: Sequence[bytes]) -> bytes:
        file = io.BytesIO()
        kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(file, "w", kind) as packed:
            for name, part in zip(names, parts, strict=True):
                packed.writestr(name, part)
        return file.getvalue()

    return Sample(tuple(npy(array) for array in arrays.values()), pack)


MASK = np.array([[1, 1, 0], [0, 1, 1]])
ARRAY_WORDS = (
    *(b"'<U9'", b"'>f2'", b"'|O'", b"'<f16'", b"'<c8'", b"'<M8[s]'", b"(2,)", b"(-1,)", b"()"),
    *(b"(9999999999,)", b"(0, 4611686018427387904)", b"True", b"'|V8'", b"[('a','<i4')]"),
    *(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY"),
)


def npz() -> Reader:
    parts = sparse.csr_array(MASK)
    samples = [
        npz_sample(
            X=np.eye(2), y=MASK, classes=np.array(["a", "b", "c"]), names=np.array(["x", "y"])
        ),
        npz_sample(indptr=parts.indptr, indices=parts.indices, shape=np.array([2, 3])),
        npz_sample(True, votes=MASK * 2.0, X=np.ones((2, 3), dtype=">f4")),
        npz_sample(y=np.array(["a|b", "c"]), X=np.asfortranarray(np.ones((2, 3), np.float16))),
        npz_sample(y=np.array([1, 0]), classes=np.array(["a", "b"])),
    ]
    file = io.BytesIO()
    sparse.save_npz(file, parts)
    samples.append(Sample((file.getvalue(),)))
    return Reader(samples, as_file("s.npz", read_annotations), ARRAY_WORDS, zip_size)


def vectors() -> Reader:
    arrays = (np.eye(3), np.ones((2, 3), ">f2"), np.ones((2, 2), np.longdouble), np.array(["a"]))
    return Reader(
        [Sample((npy(one),)) for one in arrays], as_file("s.npy", read_new_vectors), ARRAY_WORDS
    )


def mat() -> Reader:
    both = {"data": np.eye(2), "partial_target": MASK.T}
    rest = {
        "target": sparse.csc_array(MASK.T * [[1], [0], [1]]),
        "cell": np.array([[1], "a"], object),
    }
    samples = []
    for contents, options in (
        (both, {}),
        (both | {"partial_target": sparse.csc_array(MASK.T)}, {}),
        (both | rest, {}),
        ({name: sparse.coo_array(one) for name, one in both.items()}, {"format": "4"}),
        (both, {"format": "4"}),
        (both | rest, {"do_compression": True}),
    ):
        file = io.BytesIO()
        savemat(file, contents, **options)
        samples.append(Sample((file.getvalue(),)))
    plain = samples[2].parts[0]

    def pack(parts: Sequence[bytes]) -> bytes:
        packed = zlib.compress(parts[1], 1)
        return parts[0] + struct.pack("<II", 15, len(packed)) + packed

    second = 128 + 8 + struct.unpack_from("<I", plain, 132)[0]
    samples.append(Sample((plain[:second], plain[second:]), pack))
    words = tuple(struct.pack("<I", n) for n in (1, 5, 6, 9, 14, 15, 0x0800, 0x00010005))
    return Reader(samples, as_file("s.mat", read_annotations), words, mat_size)


def readers() -> dict[str, Reader]:
    """Return every reader by its name."""
    return {
        "csv": tables(),
        "answers": answers(),
        "json": objects(),
        "label-studio": label_studio(),
        "npz": npz(),
        "npy": vectors(),
        "mat": mat(),
        "folder": folder_of_classes(),
        "model": model(),
        "checkpoint": checkpoint(),
        "zip": archive(),
        "pictures": pictures(),
        "results": results(),
    }
