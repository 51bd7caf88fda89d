"""Model files: what is written comes back, and every broken file gets one sentence."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from fspll._common import tensorfiles
from fspll._common.errors import CheckpointError, DataError, InputTypeError
from fspll._common.tensorfiles import FileFormat, as_json

KIND = FileFormat("fspll-test", version=3, noun="a test")
TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([True, False])}
METADATA = {"name": "Löwe 🦁", "numbers": [1, 2.5, None], "nested": {"yes": True}}


@pytest.fixture
def path(tmp_path):
    KIND.write(tmp_path / "model.fspll", TENSORS, METADATA)
    return tmp_path / "model.fspll"


def header(**changes):
    whole = {"format": "fspll-test", "format_version": "3", "metadata": json.dumps(METADATA)}
    return {name: text for name, text in (whole | changes).items() if text is not None}


def refuse(path, message, kind=KIND):
    """Check that the file is refused with one line that names it."""
    with pytest.raises(CheckpointError, match=message) as caught:
        kind.read(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_round_trip(path):
    tensors, metadata = KIND.read(path)
    assert metadata == METADATA
    assert {name: tensor.dtype for name, tensor in tensors.items()} == {
        "a": torch.float32,
        "b": torch.bool,
    }
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert KIND.read(str(path), with_tensors=False) == ({}, METADATA)


def test_tensors_in_any_memory_layout(tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    shared = {"turned": base.T, "part": base[1:, ::2], "same": base, "grad": base.requires_grad_()}
    KIND.write(tmp_path / "x", shared, {})
    tensors = KIND.read(tmp_path / "x")[0]
    assert all(torch.equal(tensors[name], shared[name].detach()) for name in shared)
    assert not tensors["grad"].requires_grad


def test_what_was_read_does_not_depend_on_the_file(path):
    tensors = KIND.read(path)[0]
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert torch.equal(tensors["a"], TENSORS["a"])


def test_an_older_format_is_read(path, tmp_path):
    save_file(TENSORS, tmp_path / "old", metadata=header(format_version="1"))
    assert KIND.read(tmp_path / "old")[1] == METADATA


# -------------------------------------------------------------------- writing


@pytest.mark.parametrize("accident", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch, accident):
    before = path.read_bytes()

    def stop_halfway(contents, beside, metadata):
        beside.write_bytes(before[:20])
        raise accident

    monkeypatch.setattr(tensorfiles, "save_file", stop_halfway)
    with pytest.raises(accident):
        KIND.write(path, TENSORS, {"new": True})
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["model.fspll"]


def test_a_full_disk_is_a_sentence_and_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(contents, beside, metadata):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensorfiles, "save_file", full)
    with pytest.raises(DataError, match=r"cannot write .*model\.fspll: No space left"):
        KIND.write(path, TENSORS, {})
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written(path):
    with pytest.raises(DataError, match=r"cannot write .*model\.fspll/below/new: "):
        KIND.write(path / "below" / "new", TENSORS, {})
    with pytest.raises(DataError, match="cannot write"):
        KIND.write(path.parent, TENSORS, {})  # a folder


def test_metadata_must_be_json(tmp_path):
    with pytest.raises(InputTypeError, match="the settings cannot be written as JSON: Object of"):
        KIND.write(tmp_path / "x", TENSORS, {"a": {1, 2}})
    with pytest.raises(InputTypeError, match="the training settings cannot be written as JSON"):
        as_json({"rate": float("nan")}, "the training settings")
    assert not (tmp_path / "x").exists()
    assert as_json({"pair": (1, 2), 3: "x"}) == {"pair": [1, 2], "3": "x"}


SAME = """
import sys, torch
from fspll._common.tensorfiles import FileFormat
tensors = {name: torch.arange(3.0) for name in {"a", "b", "c", "d"}}
FileFormat("fspll-test", 3, "a test").write(sys.argv[1], tensors, {"x": 1})
"""


def test_equal_contents_make_equal_files_in_any_process(tmp_path):
    """The order of a set, and of a Rust hash map, is another one in every process."""
    for number in range(4):
        seed = {**os.environ, "PYTHONHASHSEED": str(number + 1)}
        subprocess.run([sys.executable, "-c", SAME, tmp_path / str(number)], env=seed, check=True)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_a_write_uses_no_file_but_the_one_beside(path):
    """A killed process then leaves nothing under a name that nobody recognizes."""
    large = {"a": torch.zeros(1 << 22)}
    done, seen = threading.Event(), set()

    def watch():
        while not done.is_set():
            seen.update(entry.name for entry in path.parent.iterdir())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(5):
        KIND.write(path, large, {})
    done.set()
    watcher.join()
    foreign = [name for name in seen if name != path.name and not name.endswith(".part")]
    assert foreign == []


@pytest.mark.parametrize("dtype", tensorfiles.TYPES.values())
def test_every_type_in_every_shape_comes_back(tmp_path, dtype):
    kind = next(kind for kind, name in tensorfiles.TYPES.items() if name == dtype)
    shapes = {"scalar": (), "none": (0, 3), "odd": (3, 1, 5), "Löwe": (2,)}
    tensors = {name: (torch.rand(shape) * 3).to(kind) for name, shape in shapes.items()}
    KIND.write(tmp_path / "x", tensors | {"b": torch.tensor([True])}, {})
    found = KIND.read(tmp_path / "x")[0]
    for name, tensor in tensors.items():
        assert found[name].dtype == kind
        assert torch.equal(found[name], tensor)


def test_types_that_no_file_holds(tmp_path):
    with pytest.raises(InputTypeError, match=r"z is torch\.complex128, which a model file cannot"):
        KIND.write(tmp_path / "x", {"z": torch.zeros(1, dtype=torch.complex128)}, {})
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------- broken files


def test_missing_file(tmp_path):
    refuse(tmp_path / "nothing.fspll", "there is no model file .*nothing.fspll$")
    refuse(tmp_path / "nothing" / "below.fspll", "there is no model file")


def test_what_is_no_file(tmp_path):
    refuse(tmp_path, "is a folder, not a model file")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        end = os.open(tmp_path / "pipe", os.O_RDWR)  # so that nobody waits here if this fails
        try:
            refuse(tmp_path / "pipe", "is a pipe or a device, not a model file")
        finally:
            os.close(end)
    refuse(tmp_path / ("x" * 5000), "cannot be read: .*File name too long")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is empty"),
        (b"P", "is not a safetensors file"),
        (b"hello, this is a text and nothing else", "is not a safetensors file"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "is not a safetensors file"),
        (
            pickle.dumps({"weights": [1, 2]}),
            "looks like a pickle or a torch.save file, which fspll",
        ),
        (b"PK\x03\x04" + bytes(60), "looks like a pickle or a torch.save file"),
        (bytes(1000), "is not a safetensors file"),
        (struct.pack("<Q", 2**63) + b"{", "is damaged or cut short"),
        (struct.pack("<Q", 10) + b"{\xff\xfe\xfd\xfc\xfb\xfa}  ", "is damaged or cut short"),
    ],
    ids=["empty", "short", "text", "PNG", "pickle", "zip", "zeros", "huge header", "no UTF-8"],
)
def test_foreign_files(tmp_path, contents, message):
    (tmp_path / "file").write_bytes(contents)
    refuse(tmp_path / "file", message)


def test_a_file_cut_anywhere_or_too_long(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refuse(path, "is empty" if not length else "is damaged or cut short|is not a safetensors")
    path.write_bytes(whole + b"more")
    refuse(path, "is damaged or cut short")


def test_tensors_larger_than_the_file_are_not_allocated(tmp_path):
    claim = {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    text = json.dumps(claim | {"__metadata__": header()}).encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    refuse(tmp_path / "file", "is damaged or cut short")


DEEP = "[" * 100_000

HEADERS = {
    "another kind": (
        {"format": "fspll-embedding"},
        "is a safetensors file, but not a test that fspll saved",
    ),
    "no kind": ({"format": None}, "but not a test that fspll saved"),
    "newer": (
        {"format_version": "4"},
        r"has format version 4, but this fspll \S+ reads up to 3; install a newer fspll",
    ),
    "no version": ({"format_version": None}, "is damaged: its format version is ''"),
    "strange version": ({"format_version": "three"}, "is damaged: its format version is 'three'"),
    "endless version": ({"format_version": "9" * 9999}, "its format version is '9{20}'$"),
    "negative version": ({"format_version": "-1"}, "is damaged: its format version is '-1'"),
    "no metadata": ({"metadata": None}, "is damaged: its metadata is not JSON"),
    "half the metadata": ({"metadata": '{"a": [1, 2'}, "is damaged: its metadata is not JSON"),
    "endless brackets": ({"metadata": DEEP}, "is damaged: its metadata is not JSON"),
    "endless number": ({"metadata": "9" * 9999}, "is damaged: its metadata is not JSON"),
    "list": ({"metadata": "[1]"}, "is damaged: its metadata is not a JSON object"),
}


@pytest.mark.parametrize(("changes", "message"), HEADERS.values(), ids=HEADERS)
def test_broken_headers(tmp_path, changes, message):
    save_file(TENSORS, tmp_path / "file", metadata=header(**changes))
    refuse(tmp_path / "file", message)


def test_a_safetensors_file_of_somebody_else(tmp_path):
    save_file(TENSORS, tmp_path / "file")
    refuse(tmp_path / "file", "is a safetensors file, but not a test that fspll saved")


WHOLE = save(TENSORS, metadata=header())


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_any_damage_is_an_error_of_ours_or_none(tmp_path_factory, position, noise):
    path = tmp_path_factory.getbasetemp() / "noise.fspll"
    path.write_bytes(WHOLE[:position] + noise + WHOLE[position + len(noise) :])
    sentence = f"{path} was read"  # when the noise fell into values, or changed nothing
    try:
        KIND.read(path)
    except CheckpointError as error:
        sentence = str(error)
    assert str(path) in sentence
    assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F8_E8M0", "F8_E4M3", "C64", "BF16", "Z9"])
def test_unusual_number_types_are_read_or_refused(tmp_path, dtype):
    bits = {"F4": 4, "F6_E2M3": 6, "BF16": 16, "C64": 64}.get(dtype, 8)
    entry = {"dtype": dtype, "shape": [8], "data_offsets": [0, bits]}
    text = json.dumps({"a": entry, "__metadata__": header()}).encode()
    (tmp_path / "file").write_bytes(struct.pack("<Q", len(text)) + text + bytes(bits))
    try:
        shape = KIND.read(tmp_path / "file")[0]["a"].shape
    except CheckpointError:  # of a type that this torch does not know
        assert dtype in ("F4", "F6_E2M3", "F8_E8M0", "Z9")
    else:
        assert shape[0] in (4, 8)  # two of F4 make one element


def test_a_written_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").touch()
    tensorfiles.FileFormat("fspll-test", 1, "a test").write(tmp_path / "file", TENSORS, {})
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode
