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

HEADER = ["sample", "label", "confidence", "runner_up", "margin"]


def lines_of(output):
    """Return the lines below the header."""
    header, *lines = (line.split("\t") for line in output.splitlines())
    assert header == HEADER
    return lines


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
    lines = lines_of(output)
    assert [line[:2] for line in lines] == [
        [str(pictures / "4.png"), "wide"],
        [str(pictures / "0.png"), "thin"],
    ]
    assert all(float(line[2]) > 0.5 for line in lines)
    (pictures / "notes.txt").write_text("no picture")
    code, output, _ = run("predict", model, pictures)
    labels = [line[1] for line in lines_of(output)]
    assert labels == ["thin"] * 3 + ["wide"] * 3
    expected = FsPLLClassifier.load(model).predict_proba([pictures / "2.png"]).max()
    assert float(lines_of(output)[2][2]) == pytest.approx(expected, abs=1e-4)


def test_a_table_is_written(run, model, pictures, tmp_path):
    code, output, _ = run("predict", model, pictures, "--out", tmp_path / "new.csv")
    assert code == 0
    assert output == f"6 labels are in {tmp_path / 'new.csv'}\n"
    with (tmp_path / "new.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert list(found[0]) == HEADER
    assert (found[0]["label"], found[0]["runner_up"]) == ("thin", "wide")


def test_damaged_pictures(run, model, pictures):
    (pictures / "1.png").write_text("no picture")
    code, output, complaints = run("predict", model, pictures)
    assert (code, output) == (2, "")
    assert "1 of 6 samples cannot be read" in complaints
    code, output, complaints = run("predict", model, pictures, "--skip-bad")
    assert code == 0
    assert len(lines_of(output)) == 5
    assert complaints.startswith(f"left out: {pictures / '1.png'} is not a picture file")


@pytest.mark.parametrize("standardize", [False, True])
def test_vectors(run, tmp_path, standardize):
    X = np.array([[0.0, 900.0], [0.1, 100.0], [5.0, 500.0], [5.1, 300.0]])
    sets = [{"a"}, {"a", "b"}, {"b"}, {"b"}]
    label((X, sets), standardize=standardize).save(tmp_path / "out")
    np.savez(tmp_path / "new.npz", X=X[[0, 2]], names=np.array(["one", "two"]))
    code, output, _ = run("predict", tmp_path / "out", "--features", tmp_path / "new.npz")
    assert code == 0
    lines = lines_of(output)
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
    lines = [line[:2] for line in lines_of(output)]
    assert lines == [["line 1", "it"], ["line 3", "sales"]]
    (tmp_path / "old.txt").write_bytes(b"no toner, d\xe9sol\xe9\n")
    given = ("predict", tmp_path / "out", "--text", tmp_path / "old.txt")
    code, _, complaints = run(*given)
    assert (code, "line 1: byte 0xE9 is not UTF-8; if" in complaints) == (2, True)
    assert run(*given, "--encoding", "cp1252")[0] == 0
    (tmp_path / "new.csv").write_text("id,message\nx,no toner in the printer\ny,my invoice\n")
    code, output, complaints = run(
        "predict", tmp_path / "out", tmp_path / "new.csv", "--text", "message"
    )
    assert (code, complaints) == (0, "new.csv: 2 samples, samples from 'id', texts from 'message'")
    assert [line[0] for line in lines_of(output)] == ["x", "y"]


def test_a_table_of_pictures(run, model, pictures, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text("sample,photo\nx,4.png\ny,0.png\n")
    code, output, complaints = run("predict", model, table, "--images", pictures)
    assert code == 0
    assert complaints == "new.csv: 2 samples, samples from 'sample', pictures from 'photo'"
    assert [line[:2] for line in lines_of(output)] == [["x", "wide"], ["y", "thin"]]
    code, output, complaints = run("predict", model, table)
    assert (code, output) == (2, "")
    assert "2 pictures of new.csv cannot be found, the first in row 2: 4.png" in complaints
    table.write_text("sample,thing\nx,4.png\ny,0.png\n")
    code, _, complaints = run("predict", model, table, "--images", pictures)
    assert code == 2
    assert "new.csv has no column of pictures that its name shows; say which column holds" in (
        complaints
    )
    assert run("predict", model, table, "--images", pictures, "--file", "thing")[0] == 0


def test_a_table_of_vectors(run, tmp_path):
    X = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 1.0], [5.1, 1.0]])
    label((X, [{"a"}, {"a", "b"}, {"b"}, {"b"}])).save(tmp_path / "out")
    table = tmp_path / "new.csv"
    table.write_text("name,u,v,note\none,0,1,x\ntwo,5,1,y\n")
    given = ("predict", tmp_path / "out")
    code, output, complaints = run(*given, table, "--features-columns", "u:v")
    assert (code, complaints) == (0, "new.csv: 2 samples, 2 features, samples from 'name'")
    assert [line[:2] for line in lines_of(output)] == [["one", "a"], ["two", "b"]]
    table.write_text("u,v\n0,1\n5,1\n")
    assert [line[1] for line in lines_of(run(*given, "--features", table)[1])] == ["a", "b"]
    code, _, complaints = run(*given, "--features", table, "--sheet", "x")
    assert code == 2
    assert "belong to a table of new samples" in complaints


def test_another_kind_of_sample_is_refused(run, model, tmp_path):
    (tmp_path / "new.txt").write_text("a text\n")
    code, output, complaints = run("predict", model, "--text", tmp_path / "new.txt")
    assert (code, output) == (2, "")
    assert complaints == (
        "error: this model was made from pictures; give it samples of that kind, not texts"
    )


def test_what_is_refused(run, model, pictures, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text("\n \n")
    np.save(tmp_path / "X.npy", np.zeros((2, 3)))
    for given, message in [
        ([model], "no new samples were given: after the model, name files of pictures or a table"),
        ([pictures], "there is no model file"),
        ([model, pictures, "--features", tmp_path / "X.npy"], "give new samples in one way"),
        ([model, tmp_path / "empty"], "holds no pictures"),
        ([model, "--text", tmp_path / "blank.txt"], "blank.txt is empty"),
        ([model, "--text", tmp_path / "none.txt"], "none.txt does not exist"),
        (
            [model, "--features", tmp_path / "X.npy"],
            "made from pictures; give it samples of that kind, not vectors",
        ),
        ([tmp_path / "none.fspll", pictures], "there is no model file"),
        ([tmp_path / "blank.txt", pictures], "is not a safetensors file"),
    ]:
        code, output, complaints = run("predict", *given)
        assert (code, output) == (2, "")
        assert message in complaints


@pytest.mark.parametrize("target", ["picture", "model", "link", "features", "text", "encoder"])
def test_what_is_read_is_never_overwritten(run, model, pictures, tmp_path, target):
    np.save(tmp_path / "X.npy", np.zeros((2, 3)))
    (tmp_path / "texts.txt").write_text("one\n")
    (tmp_path / "link").symlink_to(model)
    given, out = {
        "picture": ([pictures], pictures / "2.png"),
        "model": ([pictures], model),
        "link": ([pictures], tmp_path / "link"),
        "features": (["--features", tmp_path / "X.npy"], tmp_path / "X.npy"),
        "text": (["--text", tmp_path / "texts.txt"], tmp_path / "texts.txt"),
        "encoder": (
            [pictures, "--encoder", tmp_path / "net.safetensors"],
            tmp_path / "net.safetensors",
        ),
    }[target]
    before = out.read_bytes()
    code, output, complaints = run("predict", model, *given, "--out", out)
    assert (code, output) == (2, "")
    assert complaints == (
        f"error: {out} is read here, and would be overwritten; write to another file"
    )
    assert out.read_bytes() == before


@pytest.mark.parametrize("name", ["model.fspll", "labels.csv", "review.csv"])
def test_the_folder_of_a_result_keeps_its_files(run, tmp_path, name):
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    label((X, [{"a"}, {"a", "b"}, {"b"}, {"b"}])).save(tmp_path / "out")
    np.save(tmp_path / "X.npy", X)
    before = (tmp_path / "out" / name).read_bytes()
    new = ("predict", tmp_path / "out", "--features", tmp_path / "X.npy", "--out")
    code, _, complaints = run(*new, tmp_path / "out" / name)
    assert code == 2
    assert f"{name} is read here, and would be overwritten" in complaints
    assert (tmp_path / "out" / name).read_bytes() == before
    for _ in range(2):  # a table of its own may be replaced
        assert run(*new, tmp_path / "out" / "new.csv")[0] == 0


def test_an_encoder_of_another_width_is_refused(run, model, pictures, tmp_path):
    network = build_network("conv4", width=4, size=16, seed=0)
    path = tmp_path / "other.safetensors"
    save_checkpoint(path, network, input_spec=InputSpec(16, 1, "bright-ink"))
    code, output, complaints = run("predict", model, pictures, "--encoder", path)
    assert (code, output) == (2, "")
    assert "the encoder gives 4 features, but this model was made from 8" in complaints
