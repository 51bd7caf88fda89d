"""A file that is no picture under a picture's name is refused by every command."""

from __future__ import annotations

import pytest
from PIL import Image

from fspll import FsPLLClassifier
from fspll.embeddings import InputSpec, build_network, load_embedding, save_checkpoint

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n%%EndComments\nshowpage\n"
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
