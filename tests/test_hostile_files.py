"""Files that are damaged, or made to do harm: each gets one sentence, and little memory."""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from scipy.io import savemat

from fspll._common.errors import DataError, FsPLLError, InputError
from fspll._common.pictures import open_picture
from fspll.annotations import read_annotations, read_answers
from fspll.annotations.numpyfiles import load_arrays
from fspll.datasets import load_image_folder, load_partial_label_mat
from fspll.datasets.archives import ZipSource
from fspll.embeddings import InputSpec, prepare_images
from fspll.labeling.new_samples import read_new_texts, read_new_vectors

NO_ENTRIES = {
    "indptr": np.array([0, 100_000_000, 0]),
    "indices": np.array([], dtype=np.int64),
    "shape": np.array([2, 3]),
    "data": np.array([]),
}


@contextmanager
def little_memory(megabytes=64):
    """Fail when the block takes more than this; Pillow's pixels are not counted."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 2**20


def refused(read, message, kind=DataError):
    with pytest.raises(kind, match=message):
        read()


def npz_of(path, **members):
    """Write members as they are, so that they may be anything."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


def npy_of(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# -------------------------------------------------------------------- sparse matrices


def test_a_sparse_mask_whose_rows_go_back_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", **NO_ENTRIES)
    refused(
        lambda: read_annotations(tmp_path / "s.npz"), "the sparse mask is damaged: its pointers"
    )


def sparse_mat(path, indptr, indices, values, shape, name="partial_target"):
    """Write a level 5 file with dense features of two samples and a sparse matrix as it is."""
    savemat(path, {"data": np.ones((2, 2))})

    def element(kind, content):
        return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)

    body = element(6, struct.pack("<II", 5, len(values)))
    body += element(5, struct.pack("<ii", *shape))
    body += element(1, name.encode())
    body += element(5, np.array(indices, "<i4").tobytes())
    body += element(5, np.array(indptr, "<i4").tobytes())
    body += element(9, np.array(values, "<f8").tobytes())
    with path.open("ab") as file:
        file.write(element(14, body))
    return path


@pytest.mark.parametrize("indptr", [[0, 100_000_000, 0], [0, 2, 1], [0, -5, 0], [3, 3, 3]])
def test_a_sparse_matrix_of_a_mat_file_is_checked_before_it_is_used(tmp_path, indptr):
    path = sparse_mat(tmp_path / "s.mat", indptr, [], [], (3, 2))
    refused(lambda: load_partial_label_mat(path), "s.mat")


def test_sparse_mat_files_are_read(tmp_path):
    path = sparse_mat(tmp_path / "s.mat", [0, 1, 3], [0, 0, 2], [1, 1, 1], (3, 2))
    assert load_partial_label_mat(path).candidates.mask.tolist() == [[1, 0, 0], [1, 0, 1]]
    refused(
        lambda: load_partial_label_mat(
            sparse_mat(tmp_path / "t.mat", [0, 1, 2], [0, 7], [1, 1], (3, 2))
        ),
        "'partial_target' is damaged|not a whole .mat file",
    )


@pytest.mark.parametrize("kind", [sparse.csc_array, sparse.coo_array])
def test_level_4_files_may_be_sparse(tmp_path, kind):
    contents = {"data": np.ones((2, 2)), "partial_target": kind(np.array([[1, 1], [0, 1]]))}
    savemat(tmp_path / "s.mat", contents, format="4")
    assert load_partial_label_mat(tmp_path / "s.mat").candidates.mask.tolist() == [[1, 0], [1, 1]]


# -------------------------------------------------------------------- memory


def test_columns_that_are_only_declared_take_no_memory(tmp_path):
    whole = {"indptr": [0, 1, 2], "indices": [5, 2**31 - 2], "shape": [2, 2**31]}
    np.savez(tmp_path / "s.npz", **{name: np.array(part) for name, part in whole.items()})
    with little_memory():
        assert read_annotations(tmp_path / "s.npz").classes == ("2147483646", "5")


def test_cells_within_cells_take_no_memory(tmp_path):
    def element(content):
        return struct.pack("<II", 14, len(content)) + content

    cell = struct.pack("<IIIIIIiiII", 6, 8, 1, 0, 5, 8, 1, 1, 1, 0)  # one item, no name
    body = element(struct.pack("<II", 6, 8) + bytes(8) + bytes(1_000_000))
    for _ in range(300):
        body = element(cell + body)
    packed = zlib.compress(body, 9)
    savemat(tmp_path / "c.mat", {"data": np.ones((2, 2)), "partial_target": np.eye(2)})
    with (tmp_path / "c.mat").open("ab") as file:
        file.write(struct.pack("<II", 15, len(packed)) + packed)
    with little_memory():
        assert len(load_partial_label_mat(tmp_path / "c.mat")) == 2


def test_a_sparse_matrix_of_features_is_not_made_dense_at_any_size(tmp_path):
    side = 2**14 + 1
    wide = sparse.csc_array((side, side))
    savemat(tmp_path / "s.mat", {"data": wide, "partial_target": np.ones((2, side))})
    with little_memory():
        refused(lambda: load_partial_label_mat(tmp_path / "s.mat"), "too large to be made dense")
    savemat(tmp_path / "s.mat", {"data": np.ones((2, 2)), "partial_target": wide})
    with little_memory():
        refused(lambda: load_partial_label_mat(tmp_path / "s.mat"), "does not fit the 2 rows")


@pytest.mark.parametrize("more", [{}, {"id": 1, "annotation_id": 1, "choice": "a"}])
def test_objects_that_share_no_keys_take_no_memory(tmp_path, more):
    rows = [{"label": "a", f"key {n}": 1} | more for n in range(5_000)]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with little_memory(32):
        found = read_annotations(tmp_path / "s.jsonl", candidates="label")
    assert len(found) in (1, 5_000)
    assert more or "5,000 other columns left out" in found.summary


def test_a_picture_of_too_many_pixels_is_not_decoded(tmp_path, monkeypatch):
    Image.new("1", (9000, 9000)).save(tmp_path / "x.png")
    for read in (
        lambda: prepare_images([tmp_path / "x.png"], InputSpec(16, 1)),
        lambda: open_picture(tmp_path / "x.png", "x").__enter__(),
    ):
        refused(read, "has 9000 x 9000 pixels, more than the 80,000,000 .*FSPLL_MAX_PIXELS")
    monkeypatch.setenv("FSPLL_MAX_PIXELS", "81000000")
    with open_picture(tmp_path / "x.png", "x") as picture:
        assert picture.size == (9000, 9000)
    monkeypatch.setenv("FSPLL_MAX_PIXELS", "many")
    refused(read, "FSPLL_MAX_PIXELS in the environment must be a whole number", InputError)


def test_files_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FSPLL_MAX_BYTES", "10000")
    np.savez_compressed(tmp_path / "s.npz", y=np.eye(100))
    refused(lambda: read_annotations(tmp_path / "s.npz"), "more than the 10,000 .*FSPLL_MAX_BYTES")
    savemat(
        tmp_path / "s.mat",
        {"data": np.ones((99, 99)), "partial_target": np.ones((99, 1))},
        do_compression=True,
    )
    refused(lambda: load_partial_label_mat(tmp_path / "s.mat"), "more than the 10,000 .*allowed")
    np.save(tmp_path / "s.npy", np.eye(100))
    refused(lambda: read_new_vectors(tmp_path / "s.npy"), "more than the 10,000 that are allowed")
    (tmp_path / "s.csv").write_text("sample,label\n" + "a,b\n" * 5000)
    refused(lambda: read_annotations(tmp_path / "s.csv"), "more than the 10,000 that are allowed")


def test_rows_that_would_all_get_names_are_limited(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "s.npz", y=np.zeros(5_000_000, dtype=np.uint8))
    np.save(tmp_path / "s.npy", np.zeros((5_000_000, 1), dtype=np.uint8))
    message = "has 5,000,000 rows, more than the 4,000,000 that are allowed; set FSPLL_MAX_ROWS"
    with little_memory(100):
        refused(lambda: read_annotations(tmp_path / "s.npz"), message)
        refused(lambda: read_new_vectors(tmp_path / "s.npy"), message)
    monkeypatch.setenv("FSPLL_MAX_ROWS", "1")
    savemat(tmp_path / "s.mat", {"data": np.ones((2, 2)), "partial_target": np.eye(2)})
    refused(lambda: read_annotations(tmp_path / "s.mat"), "has 2 rows, more than the 1 that")


def test_a_member_that_lies_about_its_size_is_not_unpacked(tmp_path):
    content = bytes(200_000_000)
    with zipfile.ZipFile(tmp_path / "s.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("x.png", content)
    whole = (tmp_path / "s.zip").read_bytes()
    size, small = struct.pack("<I", len(content)), struct.pack("<I", 9)
    (tmp_path / "s.zip").write_bytes(whole.replace(size, small))
    with little_memory(16), ZipSource(tmp_path / "s.zip") as source:
        refused(lambda: source.read("x.png"), "'x.png' of .*s.zip is damaged")


@pytest.mark.parametrize(("method", "name"), [(zipfile.ZIP_LZMA, "14"), (zipfile.ZIP_BZIP2, "12")])
def test_only_ordinary_compression_is_unpacked(tmp_path, method, name):
    """Others take memory that the member itself asks for, before its first byte."""
    with zipfile.ZipFile(tmp_path / "s.zip", "w", method) as packed:
        packed.writestr("a/x.png", bytes(100))
    refused(
        lambda: ZipSource(tmp_path / "s.zip"),
        f"'a/x.png' is compressed by method {name}; .*deflate",
    )
    with zipfile.ZipFile(tmp_path / "s.npz", "w", method) as packed:
        packed.writestr("y.npy", npy_of(np.eye(3)))
    refused(lambda: read_annotations(tmp_path / "s.npz"), f"compressed by method {name}")


# -------------------------------------------------------------------- NumPy's files


@pytest.mark.parametrize("dtype", ["<f2", ">f4", ">f8", ">i4", ">u2", np.longdouble])
def test_numbers_of_any_kind_are_read(tmp_path, dtype):
    values = np.array([[1, 0], [1, 1], [0, 1]], dtype=dtype)
    np.savez(tmp_path / "s.npz", X=values, y=values)
    found = read_annotations(tmp_path / "s.npz")
    assert found.votes.toarray().tolist() == values.astype(float).tolist()
    assert found.features.tolist() == values.astype(float).tolist()
    assert found.features.dtype in (np.float32, np.float64)
    (tmp_path / "t.csv").write_text("sample,label\na,1\nb,2\nc,1\n")
    np.save(tmp_path / "s.npy", values)
    for features in (tmp_path / "s.npy", values):
        found = read_annotations(tmp_path / "t.csv", features=features)
        assert found.features.dtype in (np.float32, np.float64)
        assert found.features.dtype.isnative
    assert read_new_vectors(tmp_path / "s.npy").samples.dtype.isnative


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.array(["a", "b"])}, "'data' holds <U1, not numbers"),
        ({"data": np.array([1j, 1])}, "'data' holds complex128, not numbers"),
        ({"data": np.ones((2, 1))}, "the sparse mask is damaged"),
        ({"shape": np.array([2, np.inf])}, "'shape' must be two whole numbers"),
        ({"shape": np.array([2, np.nan])}, "'shape' must be two whole numbers"),
        ({"shape": np.array([2, 3, 4])}, "'shape' must be two whole numbers"),
        ({"shape": np.array(["2", "3"])}, "'shape' must be two whole numbers"),
        ({"shape": np.array([-2, 3])}, "'shape' must be two whole numbers"),
        ({"shape": np.array([2, 1e300])}, "'shape' must be two whole numbers"),
        ({"indptr": np.array([0.0, 1, 2])}, "'indptr' holds float64, not whole numbers"),
        ({"indices": np.array(["a", "b"])}, "'indices' holds <U1, not whole numbers"),
        ({"indices": np.array([0, 7])}, "the sparse mask is damaged: an index is 7"),
        ({"indptr": np.array([0, 2**63 + 5, 2], dtype=np.uint64)}, "the sparse mask is damaged"),
        ({"indptr": np.array(2)}, "the sparse mask is damaged"),
    ],
)
def test_parts_of_a_sparse_mask(tmp_path, change, message):
    whole = {
        "indptr": np.array([0, 1, 2]),
        "indices": np.array([0, 1]),
        "shape": np.array([2, 3]),
        "data": np.ones(2),
    }
    np.savez(tmp_path / "s.npz", **(whole | change))
    refused(lambda: read_annotations(tmp_path / "s.npz"), message)


WHOLE = npy_of(np.eye(2))


def declared(shape):
    """Return an array that declares a shape and holds nothing."""
    file = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(file, about)
    return file.getvalue()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (WHOLE.replace(b"{'descr'", b"{'descr\n"), "y.npy.* is not a whole array"),
        (WHOLE.replace(b"(2, 2)", b"(2, -"), "y.npy.* is not a whole array"),
        (WHOLE.replace(b"(2, 2)", b"[[[[[["), "y.npy.* is not a whole array"),
        (WHOLE.replace(b"(2, 2)", b"(9**9)"), "y.npy.* is not a whole array"),
        (WHOLE.replace(b"'<f8'", b"'|O8'"), "holds Python objects"),
        (WHOLE.replace(b"'<f8'", b"'|V0'"), "y.npy"),
        (WHOLE.replace(b"(2, 2), }", b"(1<<62,),"), "y.npy.* is not a whole array"),
        (declared((10**19,)), "y.npy.* is not a whole array"),
        (declared((2**40, 2)), "y.npy.* is not a whole array: it declares an array of shape"),
        (declared((-1,)), "y.npy.* is not a whole array: its header is damaged"),
        (declared((2**62, 0)), "y.npy|has no columns|not \\("),
        (WHOLE[:-8], "y.npy.* is not a whole array"),
        (WHOLE[:9], "y.npy.* is not a whole array"),
        (b"\x93NUMPY\x09\x00" + WHOLE[8:], "y.npy.* is not a whole array"),
    ],
)
def test_members_with_broken_headers(tmp_path, member, message):
    path = npz_of(tmp_path / "s.npz", **{"y.npy": member})
    with little_memory():
        refused(lambda: read_annotations(path), message)
    (tmp_path / "y.npy").write_bytes(member)
    with little_memory():
        refused(lambda: read_new_vectors(tmp_path / "y.npy"), message)


def test_members_that_are_no_arrays_are_left_alone(tmp_path):
    path = npz_of(tmp_path / "s.npz", **{"y": b"raw", "readme.txt": b"text", "mask.npy": WHOLE})
    assert list(load_arrays(path)) == ["mask"]
    assert len(read_annotations(path)) == 2
    path = npz_of(tmp_path / "s.npz", y=b"raw")
    refused(lambda: read_annotations(path), "no array of candidates .*; it has none at all")


def test_damaged_and_encrypted_archives(tmp_path):
    np.savez_compressed(tmp_path / "s.npz", y=np.eye(9))
    whole = (tmp_path / "s.npz").read_bytes()
    locked = bytearray(whole)
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[whole.index(signature) + at] |= 1
    (tmp_path / "s.npz").write_bytes(locked)
    refused(lambda: read_annotations(tmp_path / "s.npz"), "'y.npy' is encrypted")
    middle = whole.index(b"y.npy") + 40
    (tmp_path / "s.npz").write_bytes(whole[:middle] + b"\xff\xff\xff" + whole[middle + 3 :])
    refused(lambda: read_annotations(tmp_path / "s.npz"), "member 'y.npy' of .* is damaged")


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
@pytest.mark.parametrize("key", ["y", "names", "classes"])
def test_texts_with_codes_of_no_letter(tmp_path, code, key):
    text = np.array([code, ord("b")], dtype=np.uint32).view("<U1")
    arrays = {"y": np.eye(2)} | {key: text}
    with zipfile.ZipFile(tmp_path / "s.npz", "w") as packed:
        for name, array in arrays.items():
            packed.writestr(f"{name}.npy", npy_of(array))
    refused(
        lambda: read_annotations(tmp_path / "s.npz"), f"s.npz, '{key}' holds a code of no letter"
    )


# -------------------------------------------------------------------- cells and JSON


BIG = "0x" + "f" * 6000


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (f"[{BIG}]", "row 2, column 'label': a number of thousands of digits is not a label"),
        ("[{(1,2): 3}]", "row 2, column 'label': .*dict.* is not a label"),
        (f"[{{1: {BIG}}}]", "row 2, column 'label': .*dict.* is not a label"),
        (f"{{{BIG}, 1}}", "a number of thousands of digits is not a label"),
        (f"{{({BIG}, 1)}}", "is not a label"),
    ],
)
def test_cells_that_are_no_labels(tmp_path, cell, message):
    (tmp_path / "s.csv").write_text(f'sample,label\na,"{cell}"\nb,"{cell}"\n')
    refused(lambda: read_annotations(tmp_path / "s.csv"), message)


@pytest.mark.parametrize("result", [True, 3, {"value": 1}, "text"])
def test_label_studio_results_are_lists(tmp_path, result):
    task = {"id": 4, "data": {"image": "a.png"}, "annotations": [{"result": result}]}
    (tmp_path / "s.json").write_text(json.dumps([task]))
    refused(
        lambda: read_annotations(tmp_path / "s.json"),
        "s.json, task 4: 'result' is .*; expected a list",
    )


# -------------------------------------------------------------------- pipes and devices


@pytest.fixture
def pipe(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe.png")
    return tmp_path / "pipe.png"


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (read_annotations, "a file"),
        (lambda path: read_annotations(path, format="json"), "a file"),
        (lambda path: read_annotations(path, format="npz"), "a NumPy file"),
        (lambda path: read_annotations(path, format="mat"), "a .mat file"),
        (read_answers, "a file"),
        (read_new_vectors, "a file"),
        (read_new_texts, "a file"),
        (lambda path: prepare_images([path], InputSpec(16, 1)), "a picture file"),
        (ZipSource, "a zip file"),
    ],
)
def test_pipes_and_devices_are_not_waited_for(pipe, read, kind):
    refused(lambda: read(pipe), f"is a pipe or a device, not {kind}", FsPLLError)
    refused(lambda: read(type(pipe)("/dev/zero")), "/dev/zero.* is a pipe or a device", FsPLLError)


def test_a_pipe_in_a_folder_of_pictures(pipe):
    (pipe.parent / "cat").mkdir()
    pipe.rename(pipe.parent / "cat" / "pipe.png")
    refused(lambda: load_image_folder(pipe.parent), "cat/pipe.png is a pipe or a device")


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")  # noqa: PTH110
def test_a_table_on_standard_input_is_not_read_as_empty(monkeypatch):
    read, write = os.pipe()
    os.write(write, b"sample,label\na,b\n")
    os.close(write)
    refused(lambda: read_annotations(f"/dev/fd/{read}"), "is a pipe or a device, not a file")
    os.close(read)
