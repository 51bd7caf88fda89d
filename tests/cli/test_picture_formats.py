"""A file that is no picture under a picture's name is refused by every command, or left out."""

from __future__ import annotations

import csv
import os
import sys

import pytest
from PIL import Image

from fspll import FsPLLClassifier
from fspll.embeddings import InputSpec, build_network, load_embedding, save_checkpoint

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n%%EndComments\nshowpage\n"
DDS = b"DDS " + (124).to_bytes(4, "little") + b"\xff" * 300
AVIF = b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf" + b"\xff" * 300
REFUSED = "is not a picture file of a format that is read here"


@pytest.fixture
def network(tmp_path):
    path = tmp_path / "net.safetensors"
    save_checkpoint(
        path, build_network("conv4", width=4, size=16, seed=0), input_spec=InputSpec(16, 1)
    )
    return path


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for row in range(4):
        Image.new("L", (16, 16), 60 * row).save(folder / f"{row}.png")
    (folder / "x.png").write_bytes(EPS)
    (folder / "y.eps").write_bytes(EPS)
    return folder


def test_label_refuses(run, tmp_path, network, pictures):
    table = tmp_path / "labels.csv"
    rows = ["file,candidates", *(f"{row}.png,{'ab'[row // 2]}" for row in range(4)), "x.png,a|b"]
    table.write_text("\n".join(rows))
    code, _, complaints = run(
        "label", table, "--images", pictures, "--encoder", network, "--out", tmp_path / "out"
    )
    assert code == 2
    assert complaints.startswith("error: 1 of 5 samples cannot be read: ")
    assert f"x.png (labels.csv, row 6) {REFUSED}" in complaints


def test_predict_refuses(run, tmp_path, network, pictures):
    encoder = load_embedding(network, "cpu")
    files = [pictures / f"{row}.png" for row in range(4)]
    clf = FsPLLClassifier(embedding=encoder).fit(files, [{"a"}, {"a"}, {"b"}, {"b"}])
    clf.save(tmp_path / "model.fspll")
    code, _, complaints = run("predict", tmp_path / "model.fspll", pictures)
    assert code == 2
    assert "1 of 5 samples cannot be read" in complaints  # y.eps is not taken for a picture
    assert f"{pictures / 'x.png'} {REFUSED}" in complaints


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a program called gs on the path, as Pillow starts it for EPS; return what it leaves."""
    trace, folder = tmp_path / "was-started", tmp_path / "bin"
    folder.mkdir()
    (folder / "gs").write_text(f"#!/bin/sh\ntouch {trace}\n")
    (folder / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # Pillow looks for it once
    return trace


@pytest.mark.parametrize("content", [EPS, DDS, AVIF, b""], ids=["EPS", "DDS", "AVIF", "empty"])
def test_files_of_other_formats_are_left_out(run, tmp_path, network, pictures, content, program):
    (pictures / "x.png").write_bytes(content)
    table, out = tmp_path / "labels.csv", tmp_path / "out"
    rows = ["file,candidates", *(f"{row}.png,{'ab'[row // 2]}" for row in range(4)), "x.png,a|b"]
    table.write_text("\n".join(rows))
    given = ("--images", pictures, "--encoder", network, "--out", out, "--skip-bad")
    code, _, notes = run("label", table, *given)
    assert code == 0
    assert "1 sample that cannot be read was left out: " in notes
    assert "x.png (labels.csv, row 6)" in notes
    assert len((out / "labels.csv").read_text().splitlines()) == 5
    code, shown, notes = run("predict", out, pictures, "--skip-bad")
    assert code == 0
    assert f"left out: {pictures / 'x.png'} {REFUSED}" in notes
    assert len(shown.splitlines()) == 1 + 4  # the heading first
    assert not program.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_files_whose_names_are_not_text(run, tmp_path, network, pictures):
    root, out = tmp_path / "classes", tmp_path / "out"
    for row in range(4):
        folder = root / os.fsdecode([b"d\xf6g", b"cat"][row // 2])
        folder.mkdir(parents=True, exist_ok=True)
        (pictures / f"{row}.png").rename(folder / os.fsdecode(b"caf\xe9%d.png" % row))
    assert run("label", root, "--images", root, "--encoder", network, "--out", out)[0] == 0
    with (out / "labels.csv").open(encoding="utf-8") as file:
        found = {row["sample"]: row["label"] for row in csv.DictReader(file)}
    assert found == {
        "cat/caf\\xe92.png": "cat",
        "cat/caf\\xe93.png": "cat",
        "d\\xf6g/caf\\xe90.png": "d\\xf6g",
        "d\\xf6g/caf\\xe91.png": "d\\xf6g",
    }
    assert run("predict", out, root, "--out", tmp_path / "p.csv")[0] == 0
    assert "cat/caf\\xe92.png" in (tmp_path / "p.csv").read_text(encoding="utf-8")
    (tmp_path / os.fsdecode(b"\xe9")).mkdir()
    (out / "model.fspll").rename(tmp_path / os.fsdecode(b"\xe9/model.fspll"))
    code, _, complaint = run("predict", tmp_path / os.fsdecode(b"\xe9/model.fspll"), root)
    assert code == 2
    assert complaint.endswith("model.fspll cannot be opened: its name is not UTF-8 text")
