"""``fspll predict``: new pictures, texts and vectors through a saved model."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PIL import Image

from fspll import FsPLLClassifier
from fspll.embeddings import InputSpec, build_network, load_embedding, save_checkpoint
from fspll.embeddings.encoders.text import missing_package
from fspll.labeling import label


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for row in range(6):
        pixels = np.zeros((20, 20), dtype=np.uint8)
        pixels[5:15, 3 : 8 if row < 3 else 17] = 250 - row
        Image.fromarray(pixels).save(folder / f"{row}.png")
    return folder


@pytest.fixture
def model(tmp_path, pictures):
    network = build_network("conv4", width=8, size=16, seed=0)
    save_checkpoint(
        tmp_path / "net.safetensors", network, input_spec=InputSpec(16, 1, "bright-ink")
    )
    encoder = load_embedding(tmp_path / "net.safetensors", "cpu")
    sets = [{"thin"}, {"thin", "wide"}, {"thin"}, {"wide"}, {"wide", "thin"}, {"wide"}]
    clf = FsPLLClassifier(embedding=encoder).fit([pictures / f"{i}.png" for i in range(6)], sets)
    clf.save(tmp_path / "model.fspll")
    return tmp_path / "model.fspll"


def test_pictures_and_folders(run, model, pictures):
    code, output, complaints = run("predict", model, pictures / "4.png", pictures / "0.png")
    assert (code, complaints) == (0, "")
    lines = [line.split("\t") for line in output.splitlines()]
    assert [line[:2] for line in lines] == [
        [str(pictures / "4.png"), "wide"],
        [str(pictures / "0.png"), "thin"],
    ]
    assert all(float(line[2]) > 0.5 for line in lines)
    (pictures / "notes.txt").write_text("no picture")
    code, output, _ = run("predict", model, pictures)
    labels = [line.split("\t")[1] for line in output.splitlines()]
    assert labels == ["thin"] * 3 + ["wide"] * 3
    expected = FsPLLClassifier.load(model).predict_proba([pictures / "2.png"]).max()
    assert float(output.splitlines()[2].split("\t")[2]) == pytest.approx(expected, abs=1e-4)


def test_a_table_is_written(run, model, pictures, tmp_path):
    code, output, _ = run("predict", model, pictures, "--out", tmp_path / "new.csv")
    assert code == 0
    assert output == f"6 labels are in {tmp_path / 'new.csv'}\n"
    with (tmp_path / "new.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == ["sample", "label", "probability", "runner_up", "margin"]
    assert (found[0]["label"], found[0]["runner_up"]) == ("thin", "wide")


def test_damaged_pictures(run, model, pictures):
    (pictures / "1.png").write_text("no picture")
    code, output, complaints = run("predict", model, pictures)
    assert (code, output) == (2, "")
    assert "1 of 6 samples cannot be read" in complaints
    code, output, complaints = run("predict", model, pictures, "--skip-bad")
    assert code == 0
    assert len(output.splitlines()) == 5
    assert complaints.startswith(f"left out: {pictures / '1.png'} is not a picture file")


@pytest.mark.parametrize("standardize", [False, True])
def test_vectors(run, tmp_path, standardize):
    X = np.array([[0.0, 900.0], [0.1, 100.0], [5.0, 500.0], [5.1, 300.0]])
    sets = [{"a"}, {"a", "b"}, {"b"}, {"b"}]
    label((X, sets), standardize=standardize).save(tmp_path / "out")
    np.savez(tmp_path / "new.npz", X=X[[0, 2]], names=np.array(["one", "two"]))
    code, output, _ = run("predict", tmp_path / "out", "--features", tmp_path / "new.npz")
    assert code == 0
    lines = [line.split("\t") for line in output.splitlines()]
    assert [line[0] for line in lines] == ["one", "two"]
    expected = label((X, sets), standardize=standardize).classifier.predict(X[[0, 2]])
    assert [line[1] for line in lines] == expected.tolist()
    code, _, complaints = run("predict", tmp_path / "out", tmp_path / "a.png")
    assert code == 2
    assert "made from vectors" in complaints


@pytest.mark.skipif(missing_package() is not None, reason="the extra 'text' is not installed")
def test_texts(run, tmp_path):
    texts = ["the printer is broken", "paper jam in the printer", "refund my money", "wrong bill"]
    sets = [{"it", "sales"}, {"it"}, {"sales"}, {"sales", "it"}]
    label((texts, sets), encoder="text").save(tmp_path / "out")
    (tmp_path / "new.txt").write_text("﻿no toner in the printer\n\nmy invoice is wrong\n", "utf-8")
    code, output, complaints = run("predict", tmp_path / "out", "--text", tmp_path / "new.txt")
    assert (code, complaints) == (0, "")
    lines = [line.split("\t")[:2] for line in output.splitlines()]
    assert lines == [["line 1", "it"], ["line 3", "sales"]]


def test_what_is_refused(run, model, pictures, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text("\n \n")
    np.save(tmp_path / "X.npy", np.zeros((2, 3)))
    for given, message in [
        ([model], "give new samples in one way"),
        ([model, pictures, "--features", tmp_path / "X.npy"], "give new samples in one way"),
        ([model, tmp_path / "empty"], "holds no pictures"),
        ([model, "--text", tmp_path / "blank.txt"], "holds no text"),
        ([model, "--text", tmp_path / "none.txt"], "cannot be read"),
        ([model, "--features", tmp_path / "X.npy"], "made from pictures or texts"),
        ([tmp_path / "none.fspll", pictures], "there is no model file"),
        ([tmp_path / "blank.txt", pictures], "is not a safetensors file"),
    ]:
        code, output, complaints = run("predict", *given)
        assert (code, output) == (2, "")
        assert message in complaints


def test_an_encoder_of_another_width_is_refused(run, model, pictures, tmp_path):
    network = build_network("conv4", width=4, size=16, seed=0)
    path = tmp_path / "other.safetensors"
    save_checkpoint(path, network, input_spec=InputSpec(16, 1, "bright-ink"))
    code, output, complaints = run("predict", model, pictures, "--encoder", path)
    assert (code, output) == (2, "")
    assert "the encoder gives 4 features, but this model was made from 8" in complaints
